"""`quaestor report`: a run as one HTML file that anybody can open, read on a phone, print and send."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quaestor.engine.journal import beside
from quaestor.errors import UsageError
from quaestor.meta.judgements import score_lines
from quaestor.records import Record, Reject, read

BAD_SHOWN = 5
"""Bad lines of the record file that are told one by one."""


@dataclass(frozen=True)
class Run:
    """A finished run: its output lines, its meta file, and the records it was about where they are at hand."""

    name: str
    lines: Sequence[dict[str, Any]]
    meta: dict[str, Any]
    records: dict[tuple[str, str | None], Record]
    warnings: Sequence[str] = ()
    """What was wrong with the record file, a line each."""

    @property
    def specs(self) -> list[str]:
        return list(dict.fromkeys(spec for line in self.lines for spec in line["scores"]))

    def record(self, line: dict[str, Any]) -> Record | None:
        return self.records.get((line["id"], line.get("system")))


def load_run(path: Path, records: Path | None = None) -> Run:
    """Read OUT.jsonl, OUT.meta.json and the record file that the run was about."""
    if not path.is_file():
        raise UsageError(f"{path}: no such file; give the output of quaestor score")
    lines = [{**line, "id": str(line["id"])} for _, line in score_lines(path)]
    if not lines:
        raise UsageError(f"{path}: no scores in it")
    meta = _meta(beside(path, ".meta.json"))
    source = records or Path(meta.get("path", ""))
    if not source.is_file():
        return Run(path.name, lines, meta, {})
    items = list(read(source))
    found = {(r.id, r.system): r for r in items if isinstance(r, Record)}
    bad = _bad_lines(source, [item for item in items if isinstance(item, Reject)])
    if records and bad and not found:
        raise UsageError(f"{bad[0]}; no line of the file is a record")
    missing = sum((line["id"], line.get("system")) not in found for line in lines)
    if records and missing == len(lines):
        raise UsageError(f"{records}: no record scored in {path} is in it; give the file that was scored")
    told = [f"{source}: {missing} of {len(lines)} scored records are not in it: their texts are left out"]
    return Run(path.name, lines, meta, found, [*bad, *told] if missing else bad)


def _bad_lines(path: Path, rejects: Sequence[Reject]) -> list[str]:
    """The lines of a record file that are no records: the first few, and how many more there are."""
    told = [f"{path}:{reject.line}: {reject.reason}" for reject in rejects[:BAD_SHOWN]]
    more = len(rejects) - len(told)
    return [*told, f"{path}: {more} more lines are no records"] if more else told


def _meta(path: Path) -> dict[str, Any]:
    try:
        meta = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read ({error}); remove it to make the report without it") from None
    if not isinstance(meta, dict):
        raise UsageError(f"{path}: not the meta file of quaestor score; remove it to make the report without it")
    return meta


def build(run: Run, draws: int = 1000, seed: int = 0) -> str:
    """The report of a run as HTML."""
    from quaestor.report.items import disagreements, examples
    from quaestor.report.page import page
    from quaestor.report.tables import agreement, overview, perturbations, signatures, systems

    parts = [
        overview(run), *systems(run, draws, seed), *agreement(run, draws, seed), *perturbations(run, draws, seed),
        *disagreements(run), *examples(run), *signatures(run),
    ]  # fmt: skip
    source = run.meta.get("input", {}).get("file", run.name)
    subtitle = f"{len(run.lines)} records, {len(run.specs)} metrics, quaestor {run.meta.get('quaestor', '')}"
    return page(f"quaestor: {source}", subtitle, parts)
