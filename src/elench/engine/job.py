"""`elench score`: a file of records in, a run on disk out."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from elench.engine.progress_bar import ProgressBar
from elench.engine.session import Session, check_metrics
from elench.errors import UsageError
from elench.metrics.base import Metric
from elench.records import formats
from elench.records.source import Source, as_source, refusing
from elench.runs import Outcome, RunWriter, Summary
from elench.runs.writer import finished


@dataclass
class Job:
    """Everything `elench score` was asked to do."""

    path: Path | Source
    metrics: list[Metric]
    out: Path | None = None
    session: Session = field(default_factory=Session)
    strict: bool = False
    """Stop at the first row that is not a record."""
    resume: bool = False
    explain: bool = False
    """Write the evidence into the output."""
    on_outcome: Callable[[Outcome], None] | None = None
    """Called with each outcome; how --explain prints."""


def score_file(job: Job) -> dict[str, Any]:
    """Run the job; the header of the run, which is also written to OUT.meta.json."""
    started = time.monotonic()
    check_metrics(job.metrics)
    source = as_source(job.path).for_metrics(job.metrics)  # a bad file is reported before a model is loaded
    job.session.explain = job.explain or job.on_outcome is not None
    identity, lines = fingerprint(source.path)
    identity["file"] = Path(source.name).name  # not that of a temporary file
    header = {
        "input": identity, "signatures": job.session.signatures(job.metrics, source.judging), "explain": job.explain,
        "strict": job.strict, "map": dict(source.mapping), "any_language": source.any_language,
    }  # fmt: skip
    if job.out:
        check_output(job.out, source.path)
        done = finished(job.out, header) if job.resume else None
        if done:
            return done
    writer = RunWriter(job.out, job.metrics, header, job.resume) if job.out else None
    try:
        summary = _score(job, source, writer, lines)
    except BaseException:
        if writer:
            writer.close()
        raise
    meta = {
        "elench": version("elench"), "path": str(source), "folder": str(Path.cwd()), **header,
        "source": dict(source.origin), "judging": source.judging, "judges": source.kinds(),
        "records": summary.records, "rejected": summary.rejected, "first_reject": summary.first_reject,
        "metrics": summary.to_object(),
        "seconds": round(time.monotonic() - started, 3),
    }  # fmt: skip
    if writer:
        writer.finish(meta)
    return meta


def _score(job: Job, source: Source, writer: RunWriter | None, lines: int) -> Summary:
    summary = writer.summary if writer else Summary(job.metrics)
    skip = writer.rows if writer else 0
    rows = refusing(source.read(), f"{source}:") if job.strict else source.read()
    with ProgressBar(source.name, lines, skip, len(job.metrics)) as progress:
        for outcomes in job.session.windows(rows, job.metrics, skip, progress.one_done):
            if writer:
                writer.append(outcomes)
            for outcome in outcomes:
                if not writer:
                    summary.add(outcome)
                if job.on_outcome:
                    job.on_outcome(outcome)
            progress.window_done(len(outcomes))
    return summary


def check_output(out: Path, source: Path) -> None:
    """Refuse an output file that cannot be written, before anything is computed."""
    if out.suffix not in formats.WRITERS:
        raise UsageError(f"{out}: cannot write this kind of file; use one of {', '.join(formats.WRITERS)}")
    if out.resolve() == source.resolve():
        raise UsageError(f"{out}: this is the input file; choose another output file")
    if not out.parent.is_dir():
        raise UsageError(f"{out}: its folder does not exist")


def fingerprint(path: Path) -> tuple[dict[str, object], int]:
    """What identifies the input (name, size, hash of all of it), and its number of lines (0: not a text file)."""
    digest, lines, size = hashlib.sha256(), 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            lines += block.count(b"\n")
            size += len(block)
    return {"file": path.name, "bytes": size, "sha256": digest.hexdigest()}, 0 if path.suffix == ".parquet" else lines
