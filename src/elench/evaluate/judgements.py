"""Human ratings and metric scores of the same records, lined up: what every meta-evaluation starts from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.records.record import Record, read_records
from elench.records.source import Source
from elench.runs import Run

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Judgements:
    """A table: one row per record, a column per metric and per human dimension; NaN where nothing was given."""

    records: Sequence[Record]
    metrics: tuple[str, ...]
    scores: Array
    """records × metrics"""
    kinds: Mapping[str, str]
    """metric → "metric" (a score file), "peer" (came with the records) or "sanity" (a baseline that must be beaten)"""
    dimensions: tuple[str, ...]
    human: Array
    """records × dimensions"""
    source: str = "records"
    notes: tuple[str, ...] = field(default=())
    """Counted remarks: what was missing, unmatched, averaged."""

    @property
    def systems(self) -> list[str | None]:
        return [record.system for record in self.records]

    @property
    def groups(self) -> list[str | None]:
        """What is drawn together: the group (same context); without one the id, where several systems share it."""
        systems: dict[str, set[str | None]] = {}
        for record in self.records:
            systems.setdefault(record.id, set()).add(record.system)
        return [
            record.group if record.group is not None else (f"id {record.id}" if len(systems[record.id]) > 1 else None)
            for record in self.records
        ]

    @property
    def items(self) -> list[str]:
        """The same with a name for every record: one that shares its group with no other is its own group."""
        return [f"record {k}" if group is None else f"group {group}" for k, group in enumerate(self.groups)]

    def where(self, keep: Sequence[bool] | NDArray[np.bool_]) -> Judgements:
        """The same table with only some of its records."""
        mask = np.asarray(keep, dtype=bool)
        kept = [record for record, stays in zip(self.records, mask, strict=True) if stays]
        return replace(self, records=kept, scores=self.scores[mask], human=self.human[mask])

    def with_metrics(self, names: Sequence[str], columns: Array, kind: str, notes: Iterable[str] = ()) -> Judgements:
        """The same table with more metrics; a name already there is kept as it is."""
        new = [k for k, name in enumerate(names) if name not in self.metrics]
        return replace(
            self,
            metrics=self.metrics + tuple(names[k] for k in new),
            scores=np.concatenate([self.scores, columns[:, new]], axis=1),
            kinds={**self.kinds, **{names[k]: kind for k in new}},
            notes=self.notes + tuple(notes),
        )

    def choose(self, metrics: Sequence[str] = (), dimensions: Sequence[str] = ()) -> Judgements:
        """The same table with only the named metrics and dimensions (all where none is named)."""
        m = [_position(name, self.metrics, "metric", self.source) for name in metrics] or range(len(self.metrics))
        d = [_position(x, self.dimensions, "human dimension", self.source) for x in dimensions] or range(
            len(self.dimensions)
        )
        return replace(
            self,
            metrics=tuple(self.metrics[k] for k in m),
            scores=self.scores[:, list(m)],
            dimensions=tuple(self.dimensions[k] for k in d),
            human=self.human[:, list(d)],
        )


def load(path: str | Path | Source, score_files: Sequence[str | Path] = ()) -> Judgements:
    """Records with human ratings from a file, with the score files of `elench score` joined by id and system."""
    table = from_records(list(read_records(path)), source=str(path))
    for file in score_files:
        table = join_scores(table, file)
    return table


def from_records(records: Sequence[Record], source: str = "records") -> Judgements:
    """Line up the ratings of records with the scores they already carry (`peers`, `scores`)."""
    if not records:
        raise UsageError(f"{source}: no records")
    human = [_ratings(record) for record in records]
    dimensions = _names(human)
    if not dimensions:
        raise UsageError(f"{source}: no record has `human` or `ratings`: nothing to compare metrics with")
    own = [_object(record.extra.get("scores"), source, record) for record in records]
    peers = [dict(record.peers or {}) for record in records]
    own_names = _names(own)
    peer_names = tuple(name if name not in own_names else f"{name} (peer)" for name in _names(peers))
    scores = np.concatenate([_matrix(own, own_names), _matrix(peers, _names(peers))], axis=1)
    kinds = {**dict.fromkeys(own_names, "metric"), **dict.fromkeys(peer_names, "peer")}
    ratings = _matrix(human, dimensions)
    notes = [
        f"{count} of {len(records)} records have no usable {name} rating."
        for name, count in zip(dimensions, np.isnan(ratings).sum(axis=0).tolist(), strict=True)
        if count
    ]
    return Judgements(records, own_names + peer_names, scores, kinds, dimensions, ratings, source, tuple(notes))


def join_scores(table: Judgements, path: str | Path) -> Judgements:
    """Add the columns of one output of `elench score`."""
    place = _places(table)
    run = Run.read(path)
    rows: dict[int, dict[str, float | None]] = {}
    unknown = 0
    for outcome in run.scored:
        k = place.get((outcome.id, outcome.system))
        if k is None:
            unknown += 1
        else:
            rows[k] = {spec: outcome.value(spec) for spec in run.specs}
    if not rows:
        raise UsageError(f"{path}: no id of this file is in {table.source}; are they about the same records?")
    columns = [rows.get(k, {}) for k in range(len(table.records))]
    names = run.specs
    both = [name for name in names if table.kinds.get(name) == "metric"]
    if both:
        raise UsageError(f"{path}: {both[0]!r} is already given by another score file or by the records")
    names_new = [name if name not in table.metrics else f"{name} (scored)" for name in names]
    notes = []
    if unknown:
        notes.append(f"{unknown} lines of {path} are about records that are not in {table.source}: left out.")
    if len(rows) < len(table.records):
        notes.append(f"{len(table.records) - len(rows)} of {len(table.records)} records have no line in {path}.")
    return table.with_metrics(names_new, _matrix(columns, names), "metric", notes)


def with_directions(table: Judgements, lower: Sequence[str] = ()) -> Judgements:
    """The table with reversed signs where less is better: metrics that declare it, and those named in `lower`."""
    from elench.metrics import higher_is_better

    for name in lower:
        _position(name, table.metrics, "metric", table.source)
    turned = [name for name in table.metrics if name in lower or not higher_is_better(name)]
    if not turned:
        return table
    sign = np.array([-1.0 if name in turned else 1.0 for name in table.metrics])
    note = f"Lower is better, so counted with reversed sign: {', '.join(turned)}."
    return replace(table, scores=table.scores * sign, notes=(*table.notes, note))


def _places(table: Judgements) -> dict[tuple[str, str | None], int]:
    place: dict[tuple[str, str | None], int] = {}
    for k, record in enumerate(table.records):
        key = (record.id, record.system)
        if key in place:
            raise UsageError(f"{table.source}: duplicate id {record.id!r} (system {record.system!r}); cannot join")
        place[key] = k
    ids = [record.id for record in table.records]
    if len(set(ids)) == len(ids):  # a score file without systems still joins where ids alone are unique
        place.update({(record.id, None): k for k, record in enumerate(table.records)})
    return place


def _ratings(record: Record) -> dict[str, object]:
    """`human`, and where a dimension has only single `ratings`, their mean."""
    means = {name: _mean(values) for name, values in (record.ratings or {}).items()}
    return {**means, **(record.human or {})}


def _mean(values: Any) -> float:
    numbers = [v for v in (values if isinstance(values, list | tuple) else [values]) if _is_number(v)]
    return sum(numbers) / len(numbers) if numbers else math.nan


def _object(value: object, source: str, record: Record) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageError(f"{source}: record {record.id!r}: `scores` is not an object of metric: number")
    return value


def _names(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in rows for name in row))


def _matrix(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Array:
    out = np.full((len(rows), len(names)), np.nan)
    for k, row in enumerate(rows):
        for j, name in enumerate(names):
            if _is_number(row.get(name)):
                out[k, j] = row[name]
    return out


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _position(name: str, names: Sequence[str], what: str, source: str) -> int:
    if name not in names:
        known = f"there are: {', '.join(names)}" if names else "there are none"
        score = f"; score it first: elench score {source} -m '{name}' -o scores.jsonl, then give --scores scores.jsonl"
        raise UsageError(f"{source}: no {what} {name!r}; {known}{score if what == 'metric' else ''}")
    return names.index(name)
