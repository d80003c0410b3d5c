"""Scores a file of records into an output file: reading, rejects, windows, journal, summary."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from quaestor import formats
from quaestor.engine.drive import Driver
from quaestor.engine.journal import Journal, beside, input_print
from quaestor.engine.progress import Progress
from quaestor.engine.tally import Tally
from quaestor.engine.windows import Outcome, gather_corpora, score_window, windows
from quaestor.engine.workers import open_cache, score_windows
from quaestor.errors import Unscored, UsageError
from quaestor.metrics.base import Metric
from quaestor.models.base import ModelSet
from quaestor.records import Record, Reject, read


@dataclass
class Job:
    """Everything `quaestor score` was asked to do."""

    path: Path
    metrics: list[Metric]
    out: Path | None = None
    models: ModelSet = field(default_factory=ModelSet)
    explain: bool = False
    strict: bool = False
    resume: bool = False
    workers: int = 1
    cached: bool = True
    engine: str = "local"
    address: str | None = None
    """Of the Ray cluster; None starts one here."""
    on_outcome: Any = None
    """Called with (record, outcome) for each scored record; how --explain prints."""


def signature(metric: Metric, models: ModelSet) -> str:
    """Everything that could change the number, on one line."""
    parts = [metric.spec(full=True), f"quaestor {version('quaestor')}"]
    roles = metric.roles_needed()
    parts += [models.fingerprint(role) for role in roles]
    if roles:
        parts.append(f"dtype={models.dtype}")
    return " | ".join(parts)


def checked_rows(path: Path, metrics: Sequence[Metric], strict: bool) -> Iterator[Record | Reject]:
    """Records and rejects of a file; a record that lacks a field for every metric that applies to it is a reject."""
    for item in read(path):
        if isinstance(item, Record):
            item = _with_fields(item, metrics, strict)
        if strict and isinstance(item, Reject):
            raise UsageError(f"{path}:{item.line}: {item.reason}")
        yield item


def _with_fields(record: Record, metrics: Sequence[Metric], strict: bool) -> Record | Reject:
    missing = {metric: metric.missing(record) for metric in metrics}
    lacking = [m for m, name in missing.items() if name]
    if not lacking:
        return record
    applies = [m for m in metrics if _applies(m, record)]
    if strict or len(lacking) == len(applies):
        names = list(dict.fromkeys(str(missing[m]) for m in lacking))
        fields = " and ".join(f"'{name}'" for name in names)
        needed = ", ".join(map(str, lacking))
        reason = f"field {fields} is missing: {needed} needs it; add it or choose other metrics"
        return Reject(record.line, reason, record.to_object())
    return record


def _applies(metric: Metric, record: Record) -> bool:
    try:
        metric.judged(record)
    except Unscored:
        return False
    return True


def score_file(job: Job) -> dict[str, Any]:
    """Run the job; the summary that is also written to OUT.meta.json."""
    started = time.monotonic()
    specs = [str(m) for m in job.metrics]
    if len(set(specs)) < len(specs):
        raise UsageError(f"a metric is named twice: {', '.join(specs)}")
    next(iter(read(job.path)))  # a missing or empty file is told before any model is loaded
    signatures = {spec: signature(m, job.models) for spec, m in zip(specs, job.metrics, strict=True)}
    header = {"input": input_print(job.path), "signatures": signatures, "explain": job.explain, "strict": job.strict}
    work = job.out if job.out is None or job.out.suffix == ".jsonl" else job.out.with_name(job.out.name + ".part.jsonl")
    if job.out and work:
        if job.out.suffix not in formats.WRITERS:
            raise UsageError(f"{job.out}: cannot write this kind of file; use one of {', '.join(formats.WRITERS)}")
        if job.out.resolve() == job.path.resolve():
            raise UsageError(f"{job.out}: this is the input file; choose another output file")
        if not job.out.parent.is_dir():
            raise UsageError(f"{job.out}: its folder does not exist")
        done = _finished(job.out, header) if job.resume else None
        if done:
            return done
    journal = Journal(work, header, job.resume) if work else None
    try:
        tally, rejected = _score_all(job, journal, specs)
    except BaseException:
        if journal:
            journal.close()
        raise
    seconds = time.monotonic() - started
    meta = {
        "quaestor": version("quaestor"),
        "path": str(job.path),
        **header,
        "records": sum(s.n + s.unscored for s in (tally.sums[specs[0]].get(""),) if s),
        "rejected": rejected,
        "metrics": tally.summary(),
        "seconds": round(seconds, 3),
    }
    if journal and job.out and work:
        if work != job.out:
            rows = (formats.flatten(row) for _, row in formats.read_jsonl(work) if isinstance(row, dict))
            formats.WRITERS[job.out.suffix](rows, job.out)
        journal.finish(beside(job.out, ".meta.json"), meta)
        if work != job.out:
            work.unlink()
            if rejected:
                beside(work, ".rejects.jsonl").replace(beside(job.out, ".rejects.jsonl"))
    return meta


def _finished(out: Path, header: dict[str, Any]) -> dict[str, Any] | None:
    """The summary of a run that is complete already, when it was the same run."""
    meta_path = beside(out, ".meta.json")
    if not (out.exists() and meta_path.exists()) or beside(out, ".journal.jsonl").exists():
        return None
    meta: dict[str, Any] = json.loads(meta_path.read_text(encoding="utf-8"))
    return meta if all(meta.get(k) == json.loads(json.dumps(v)) for k, v in header.items()) else None


def _score_all(job: Job, journal: Journal | None, specs: list[str]) -> tuple[Tally, int]:
    driver = Driver(job.models, open_cache(job.metrics) if job.cached else None)
    first = (r for r in checked_rows(job.path, job.metrics, job.strict) if isinstance(r, Record))
    corpora = gather_corpora(first, job.metrics, driver)
    tally = Tally(job.metrics, journal.state if journal else None)
    rows = checked_rows(job.path, job.metrics, job.strict)
    skipped = journal.rows if journal else 0
    for _ in islice(rows, skipped):
        pass
    rejected = journal.rejected if journal else 0
    with Progress(job.path, skipped, len(specs)) as progress:
        groups: list[list[Record | Reject]] = []

        def records_of(items: Iterator[list[Record | Reject]]) -> Iterator[list[Record]]:
            for window in items:
                groups.append(window)
                yield [item for item in window if isinstance(item, Record)]

        for outcomes in _outcomes(job, driver, corpora, records_of(windows(rows)), progress):
            window = groups.pop(0)
            rejects = [item for item in window if isinstance(item, Reject)]
            rejected += len(rejects)
            for outcome in outcomes:
                tally.add(outcome)
            if journal:
                journal.append(
                    [outcome.to_object(specs, job.explain) for outcome in outcomes],
                    [{"line": r.line, "reason": r.reason, "record": r.raw} for r in rejects],
                    tally.state(),
                )
            if job.on_outcome:
                for record, outcome in zip((r for r in window if isinstance(r, Record)), outcomes, strict=True):
                    job.on_outcome(record, outcome)
            progress.window_done(len(window), len(outcomes))
    return tally, rejected


def _outcomes(
    job: Job, driver: Driver, corpora: Any, groups: Iterator[list[Record]], progress: Progress
) -> Iterator[list[Outcome]]:
    if job.engine == "ray":
        from quaestor.engine.ray import score_windows_on_ray

        yield from score_windows_on_ray(groups, job.metrics, job.models, corpora, job.workers, job.cached, job.address)
    elif job.workers > 1:
        yield from score_windows(groups, job.metrics, job.models, corpora, job.workers, job.cached)
    else:
        for group in groups:
            yield score_window(group, job.metrics, driver, corpora, progress.one_done)
