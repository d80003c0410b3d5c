"""A finished run: its header, its outcomes, its rejects, and the corpus scores that follow from its counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from elench.errors import UsageError
from elench.records import formats
from elench.records.record import Record, Reject
from elench.runs.summary import Outcome, Summary, Sums, known
from elench.runs.writer import beside

TABLES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class Run:
    """What `elench score` wrote, or what `elench.score` gave back: outcomes in input order, rejects included (a run
    that is read back has them at the end)."""

    outcomes: Sequence[Outcome]
    specs: Sequence[str]
    """The metrics, as canonical specs: the columns of the run."""
    header: Mapping[str, Any] = field(default_factory=dict)
    """OUT.meta.json: version, input, signatures, counts, means. Empty where that file is gone."""
    path: Path | None = None

    @property
    def scored(self) -> list[Outcome]:
        """The outcomes that are records: all but the rejects."""
        return [outcome for outcome in self.outcomes if outcome.reject is None]

    @property
    def rejects(self) -> list[Reject]:
        """Rows of the input that are not valid records."""
        return [outcome.reject for outcome in self.outcomes if outcome.reject]

    @property
    def records(self) -> list[Record]:
        """The records that were scored, where they are at hand."""
        return [outcome.record for outcome in self.outcomes if outcome.record]

    @property
    def systems(self) -> list[str]:
        """The systems, in the order of their first record."""
        return list(dict.fromkeys(o.system for o in self.outcomes if o.system is not None))

    @property
    def signatures(self) -> Mapping[str, str]:
        """Everything that could change a number, per metric."""
        found: Mapping[str, str] = self.header.get("signatures", {})
        return found

    def values(self, spec: str, system: str | None = None) -> list[float | None]:
        """Scores in input order, of one system or all; None where unscored or rejected."""
        return [o.value(spec) for o in self.outcomes if system is None or o.system == system]

    @property
    def unscored(self) -> dict[str, dict[str, str]]:
        """{metric: {id: reason}} of what has no number."""
        return {s: {o.id: why for o in self.outcomes if (why := o.reason(s)) is not None} for s in self.specs}

    def counts(self, spec: str, system: str | None = None) -> list[tuple[float, ...]] | None:
        """The sufficient statistics of each scored record, whose sums give the corpus score; None if it has none."""
        chosen = [o for o in self.scored if spec in o.scores and (system is None or o.system == system)]
        counts = [o.scores[spec].counts for o in chosen]
        return counts if any(counts) else None

    def corpus_score(self, spec: str, system: str | None = None) -> float | None:
        """The score of the whole run, or of one system: from the summed counts, else the mean; None without a score.

        It is the number that `elench score` prints; `report`, `compare`, `meta`, `auc` and `gate` print the same.
        """
        sums = Sums()
        for outcome in self.scored:
            if spec in outcome.scores and (system is None or outcome.system == system):
                sums.add(outcome.scores[spec].value, outcome.scores[spec].counts)
        return sums.corpus_score(known(spec))

    def summary(self) -> dict[str, Any]:
        """Per metric: n, unscored and why, mean with 95 % interval, corpus score, and the same per system."""
        summary = Summary(self.specs)
        for outcome in self.outcomes:
            summary.add(outcome)
        return summary.to_object()

    def with_records(self, source: str | Path | Iterable[Record | Reject]) -> Run:
        """The same run with the records it was about, matched by id and system."""
        if isinstance(source, str | Path):
            from elench.records.record import read

            source = read(source)
        found = {(r.id, r.system): r for r in source if isinstance(r, Record)}
        joined = [o if o.reject else replace(o, record=found.get((o.id, o.system))) for o in self.outcomes]
        return replace(self, outcomes=joined)

    @classmethod
    def read(cls, path: str | Path) -> Run:
        """Read the output of `elench score`: OUT.jsonl, .csv or .parquet, with its meta and reject files if present."""
        path = Path(path)
        if not path.is_file():
            problem = "is a folder" if path.is_dir() else "no such file"
            raise UsageError(f"{path}: {problem}; give the output of elench score")
        if beside(path, ".journal.jsonl").exists():
            raise UsageError(f"{path}: this run is not complete; finish it with elench score … --resume")
        outcomes: list[Outcome] = []
        specs: dict[str, None] = {}
        for line in _read_lines(path):
            outcomes.append(Outcome.from_object(line))
            specs.update(dict.fromkeys((*line["scores"], *(line.get("unscored") or ()))))
        if not outcomes:
            raise UsageError(f"{path}: no scores in it")
        header = _read_header(beside(path, ".meta.json"))
        order = [spec for spec in header.get("metrics", {}) if spec in specs]  # as they were asked for
        outcomes += [Outcome.rejected(reject) for reject in _read_rejects(beside(path, ".rejects.jsonl"))]
        return cls(outcomes, [*order, *(s for s in specs if s not in order)], header, path)


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The checked lines of an output of `elench score`."""
    suffix = path.suffix.lower()
    read = formats.READERS[suffix] if suffix in TABLES else formats.read_jsonl
    seen: dict[tuple[str, str | None], int] = {}
    for number, row in read(path):
        where = f"{path}:{number}"
        if isinstance(row, Reject):
            raise UsageError(f"{where}: {row.reason}")
        line = _nested(row, where) if suffix in TABLES else row
        _check(line, where)
        key = (str(line["id"]), line.get("system"))
        if key in seen:
            also = f" of system {key[1]!r}" if key[1] else ""
            raise UsageError(f"{where}: duplicate id {key[0]!r}{also}, also on line {seen[key]}")
        seen[key] = number
        yield line


def _nested(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A row of a table, in which {scores: {bleu: 1}} is the column scores.bleu, as a line."""
    line: dict[str, Any] = {"scores": {}, "unscored": {}}
    for name, cell in row.items():
        outer, dot, spec = name.partition(".")
        if cell in (None, ""):
            continue
        try:
            if dot and outer == "scores":
                line["scores"][spec] = float(cell)
            elif dot and outer == "unscored":
                line["unscored"][spec] = str(cell)
            else:
                line[name] = json.loads(cell) if name in ("counts", "evidence") else cell
        except (ValueError, TypeError):
            raise UsageError(f"{where}: column {name!r}: not {'a number' if outer == 'scores' else 'JSON'}") from None
    return line


def _check(line: Mapping[str, Any], where: str) -> None:
    if "id" not in line or not isinstance(line.get("scores"), dict):
        raise UsageError(f"{where}: not a line of elench score (needs 'id' and the object 'scores')")
    if not isinstance(line.get("system"), str | None):
        raise UsageError(f"{where}: field 'system' must be a string, not {type(line['system']).__name__}")
    for name, value in line["scores"].items():
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise UsageError(f"{where}: score {name!r} must be a number or null, not {json.dumps(value)[:60]}")
        if isinstance(value, int) and abs(value) > 10**300:
            raise UsageError(f"{where}: score {name!r} is too large")
    for name in ("unscored", "counts", "evidence"):
        if not isinstance(line.get(name), dict | None):
            raise UsageError(f"{where}: field {name!r} must be an object, not {type(line[name]).__name__}")
    for name, counts in (line.get("counts") or {}).items():
        if not isinstance(counts, list) or not all(isinstance(c, int | float) for c in counts):
            raise UsageError(f"{where}: counts of {name!r} must be a list of numbers")


def _read_header(path: Path) -> dict[str, Any]:
    try:
        header = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read ({error}); remove it to continue without it") from None
    if not isinstance(header, dict) or not all(isinstance(header.get(k, {}), dict) for k in ("metrics", "signatures")):
        raise UsageError(f"{path}: not the meta file of elench score; remove it to continue without it")
    return header


def _read_rejects(path: Path) -> Iterator[Reject]:
    for _, row in formats.read_jsonl(path) if path.exists() else ():
        if isinstance(row, dict) and isinstance(row.get("line"), int):
            yield Reject(row["line"], str(row.get("reason")), row.get("record"))
