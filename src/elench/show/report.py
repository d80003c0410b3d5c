"""`elench report`: one or several runs as one HTML file that anybody can open, read on a phone, print and send."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from elench.errors import UsageError
from elench.records.joining import reopen
from elench.records.record import Record, Reject
from elench.records.source import Source, as_source
from elench.runs import Outcome, Run

BAD_SHOWN = 5
"""Bad lines of the record file that are reported one by one."""


@dataclass(frozen=True)
class ReportRecord:
    """A scored record of one of the runs."""

    run: int
    outcome: Outcome
    record: Record
    """Where the record file is not at hand, one with nothing but id and system."""
    judge: str
    """question, answer or summary; empty where that is not known."""
    system: str | None
    """The system as the report calls it: with several runs, the run's name, and its system where it has several."""


@dataclass(frozen=True)
class View:
    """What the report is about: the rows of all runs."""

    runs: Sequence[Run]
    names: Sequence[str]
    rows: Sequence[ReportRecord]
    warnings: Sequence[str] = ()

    @property
    def specs(self) -> list[str]:
        return list(dict.fromkeys(spec for run in self.runs for spec in run.specs))

    @property
    def judges(self) -> list[str]:
        return list(dict.fromkeys(row.judge for row in self.rows))


def load_view(paths: Sequence[Path], records: Path | None = None) -> View:
    """Read the runs and the record files they were made from."""
    runs, warnings = [], []
    for path in paths:
        run, bad = _with_records(Run.read(path), records)
        runs.append(run)
        warnings += bad
    names = _names(paths)
    rows = []
    for k, run in enumerate(runs):
        several = len(run.systems) > 1
        for outcome in run.scored:
            record = outcome.record or Record(id=outcome.id, system=outcome.system)
            system = outcome.system
            if len(runs) > 1:
                system = f"{names[k]} · {outcome.system}" if several and outcome.system else names[k]
            rows.append(ReportRecord(k, outcome, record, _judge(outcome.record, run), system))
    return View(runs, names, rows, warnings)


def _names(paths: Sequence[Path]) -> list[str]:
    """A short name per run: the file's, or with its folder where several files are called the same."""
    stems = [path.stem for path in paths]
    if len(set(stems)) == len(stems):
        return stems
    longer = [f"{path.resolve().parent.name}/{path.stem}" for path in paths]
    return longer if len(set(longer)) == len(longer) else [f"run {k}" for k in range(1, len(paths) + 1)]


def _judge(record: Record | None, run: Run) -> str:
    if record is None:
        return ""
    return record.judge or str(run.header.get("judging") or "") or record.guess_judge()


def _with_records(run: Run, given: Path | None) -> tuple[Run, list[str]]:
    """The run with its records, and what is wrong with the record file."""
    source = _given(given, run) if given else find_records(run)
    if source is None:
        told = f"{run.path}: the record file was not found, so its texts are left out: give --records"
        return run, [told]
    items = list(source.read())
    bad = _bad_lines(source, [item for item in items if isinstance(item, Reject)])
    if given and bad and not any(isinstance(item, Record) for item in items):
        raise UsageError(f"{bad[0]}; no line of the file is a record")
    joined = run.with_records(items)
    missing = sum(outcome.record is None for outcome in joined.scored)
    if given and missing == len(joined.scored):
        raise UsageError(f"{given}: no record scored in {run.path} is in it; give the file that was scored")
    if missing:
        bad.append(
            f"{source}: {missing} of {len(joined.scored)} scored records are not in it: their texts are left out"
        )
    return joined, bad


def _given(path: Path, run: Run) -> Source:
    """The file named with --records, read with the run's --map where it has those columns."""
    try:
        return as_source(path, run.header.get("map"))
    except UsageError:
        return as_source(path)


def find_records(run: Run) -> Source | None:
    """The records of a run, also when the report is made from another folder: its files at the path that was given to
    `score`, seen from the folder it ran in, from here, or from any folder above the run, or beside the run; where the
    hash is known, it decides."""
    written = str(run.header.get("path", ""))
    if not written or run.path is None:
        return None
    here = run.path.resolve()
    ran_in = str(run.header.get("folder", ""))
    wanted = run.header.get("input", {}).get("sha256")

    def found(name: str) -> Path | None:
        files = [p for p in _candidates(Path(name), here, ran_in) if p.is_file() and p.resolve() != here]
        same = [p for p in files if wanted and hashlib.sha256(p.read_bytes()).hexdigest() == wanted]
        return next(iter(same or files), None)

    return reopen(run.header.get("source", {"file": written}), run.header.get("map", {}), found)


def _candidates(written: Path, run: Path, ran_in: str) -> Iterator[Path]:
    yield Path(ran_in) / written
    yield written
    for folder in run.parents:
        yield folder / written
    yield run.parent / written.name


def _bad_lines(path: Source, rejects: Sequence[Reject]) -> list[str]:
    """The lines of a record file that are not valid records: the first few, and how many more there are."""
    told = [f"{path}:{reject.line}: {reject.reason}" for reject in rejects[:BAD_SHOWN]]
    more = len(rejects) - len(told)
    return [*told, f"{path}: {more} more lines are not valid records"] if more else told


def build(view: View, draws: int = 1000, seed: int = 0) -> str:
    """The report as HTML."""
    from elench.show.page import Section, note, page
    from elench.show.report_agreement import agreement, disagreements, perturbations
    from elench.show.report_records import examples, explorer, packed
    from elench.show.report_systems import judge_sections, signatures

    parts: list[Section] = [*judge_sections(view, draws, seed)]
    for judge in view.judges:
        chosen = replace(view, rows=[row for row in view.rows if row.judge == judge])
        parts += agreement(chosen, judge, draws, seed)
        parts += disagreements(chosen, judge)
    parts += perturbations(view)
    tail = [*examples(view), *signatures(view)]
    title = "elench: " + " and ".join(str(run.header.get("input", {}).get("file", "")) or name
                                      for run, name in zip(view.runs[:1], view.names, strict=False))  # fmt: skip
    version = view.runs[0].header.get("elench", "")
    several = f"{len(view.runs)} runs ({', '.join(view.names)}), " if len(view.runs) > 1 else ""
    subtitle = f"{several}{len(view.rows)} scored records, {len(view.specs)} metrics, elench {version}".strip(", ")
    warned = "".join(map(note, view.warnings))
    if warned and parts:
        parts[0] = Section(parts[0].title, warned + parts[0].html)
    static = len(page(title, subtitle, [*parts, *tail]).encode())
    data, told = packed(view, static)
    return page(title, subtitle, [*parts, explorer(view, told), *tail], data)
