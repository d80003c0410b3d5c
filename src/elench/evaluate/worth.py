"""What does a difference buy? From rated data: how often people prefer the system that a metric prefers.

Two things are estimated from a rated file and one metric, for every comparison of two systems:

* P(people prefer A | the metric's difference, n): from how the rated systems differ in the metric and in ratings
  (`stats.preference`);
* the mean ratings and their differences, prediction-powered: the ratings of some outputs and the metric's scores of all
  that are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from elench.engine.result import Result
from elench.errors import UsageError
from elench.evaluate.compare import Comparison, MetricComparison
from elench.evaluate.judgements import Judgements, from_records
from elench.evaluate.meta_sections import MetaSection, estimates
from elench.grid import Grid
from elench.records.record import Record
from elench.stats.estimation import FEWEST, prediction_powered
from elench.stats.preference import agreement
from elench.stats.resampling_plan import codes

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Preference:
    """How far a metric's difference can be trusted."""

    metric: str
    dimension: str
    first: str
    second: str
    difference: float
    n: int
    agree: float | None
    """P(people rate the metric's winner higher on as many items)"""
    low: float | None
    high: float | None
    systems: int
    """Rated systems that share items with others"""
    items: int
    reason: str | None
    """Why there is no value or no interval"""


@dataclass(frozen=True)
class PoweredDifference:
    """The difference in ratings of two systems with the help of a metric."""

    metric: str
    dimension: str
    first: str
    second: str
    difference: float | None
    low: float | None
    high: float | None
    rated: int
    saved: int | None
    """How many ratings of each system the metric saves at the same width"""
    reason: str | None


Row = TypeVar("Row", Preference, PoweredDifference)


def with_preferences(found: Comparison, rated: Result, compared: Result) -> Comparison:
    """The comparison with what its differences buy, by the ratings of other (or the same) records; for systems of which
    some outputs are rated, also their mean ratings and differences with the help of the scores of all outputs."""
    own = _scored_records(rated)
    table = from_records(own, "rated records")
    known = {(record.id, record.system) for record in own}
    unrated = [r for r in _scored_records(compared) if (r.id, r.system) not in known]
    whole = from_records([*own, *(replace(r, human={}, ratings={}) for r in unrated)], "rated and compared records")
    preferred, powered = preferences(found, table), powered_differences(found, whole)
    means = corrected_means(found, whole)
    notes = [
        "People agree: probability that people rate the metric's winner higher on as many items, if the pair is like "
        "those of the rated systems (bivariate normal differences); 95 % interval: generalised pivotal quantities of "
        "the same model over the rated systems.",
        *dict.fromkeys(note for section in means.values() for note in section.notes),
    ]
    extra = {
        "preferences": [asdict(p) for p in preferred],
        "powered": [asdict(p) for p in powered],
        "means": {metric: section.content for metric, section in means.items()},
    }
    grids = (
        *worth_grids(preferred, powered, found.most),
        *(grid for section in means.values() for grid in section.grids),
    )
    return replace(found, added=(*found.added, *grids), extra={**found.extra, **extra}, notes=[*found.notes, *notes])


def corrected_means(found: Comparison, whole: Judgements) -> dict[str, MetaSection]:
    """Prediction-powered mean ratings of the compared systems that have ratings, by metric."""
    rated = {system for system, row in zip(whole.systems, whole.human, strict=True) if np.isfinite(row).any()}
    own = whole.where([system in rated and system in found.systems for system in whole.systems])
    return {c.metric: estimates(own, c.metric) for c in found.columns if own.records and c.metric in own.metrics}


def _scored_records(result: Result) -> list[Record]:
    """Records that carry their scores."""
    return [
        replace(o.record, extra={**o.record.extra, "scores": {spec: score.value for spec, score in o.scores.items()}})
        for o in result.scored
        if o.record is not None
    ]


def preferences(found: Comparison, rated: Judgements) -> list[Preference]:
    """For every pair of the comparison and every dimension of the rated file."""
    out = []
    for column in found.columns:
        if column.metric not in rated.metrics:
            continue
        for dimension in rated.dimensions:
            out += _of_metric(column, rated.choose([column.metric], [dimension]), dimension)
    if not out:
        raise UsageError(f"{rated.source}: no scores of {', '.join(c.metric for c in found.columns)}, or no ratings")
    return out


def _of_metric(column: MetricComparison, one: Judgements, dimension: str) -> list[Preference]:
    records = one.records
    ids: dict[str, set[str | None]] = {}
    for record in records:
        ids.setdefault(record.id, set()).add(record.system)
    shared = any(len(systems) > 1 for systems in ids.values())
    items = [record.id if shared else record.group for record in records]
    known = np.isfinite(one.scores[:, 0]) & np.isfinite(one.human[:, 0])
    rows = [k for k, r in enumerate(records) if known[k] and items[k] is not None and r.system is not None]
    per_item: dict[str | None, set[str | None]] = {}
    for k in rows:
        per_item.setdefault(items[k], set()).add(records[k].system)
    rows = [k for k in rows if len(per_item[items[k]]) > 1]
    sign = 1.0 if column.higher_is_better else -1.0
    leads = np.array([abs(pair.difference) for pair in column.pairs])
    item, system = codes([items[k] for k in rows]), codes([records[k].system for k in rows])
    group = codes([records[k].group or f"item {items[k]}" for k in rows])
    found = agreement(one.scores[rows, 0] * sign, one.human[rows, 0], item, system, group, leads, column.n)
    out = []
    for pair, chance in zip(column.pairs, found, strict=True):
        ahead = pair.difference * sign >= 0
        first, second = (pair.first, pair.second) if ahead else (pair.second, pair.first)
        out.append(
            Preference(
                column.metric, dimension, first, second, abs(pair.difference), pair.n, chance.value, chance.low,
                chance.high, chance.systems, chance.items, chance.reason,
            )
        )  # fmt: skip
    return out


def powered_differences(found: Comparison, rated: Judgements) -> list[PoweredDifference]:
    """Differences in ratings where both systems of a pair are in the rated file, some of their outputs rated."""
    out = []
    systems = set(rated.systems)
    for column in found.columns:
        for pair in column.pairs:
            if column.metric in rated.metrics and {pair.first, pair.second} <= systems:
                out += [_powered(column.metric, pair.first, pair.second, rated, d) for d in rated.dimensions]
    return out


def _powered(metric: str, first: str, second: str, rated: Judgements, dimension: str) -> PoweredDifference:
    one = rated.choose([metric], [dimension])
    place: dict[str, dict[str, int]] = {first: {}, second: {}}
    for k, record in enumerate(one.records):
        if record.system in place:
            place[record.system].setdefault(record.id if record.group is None else f"{record.group}\n{record.id}", k)
    keys = [key for key in place[first] if key in place[second]]
    if not keys:  # ids differ between systems: pair by group
        place = {s: {one.records[k].group or "": k for k in rows.values()} for s, rows in place.items()}
        keys = [key for key in place[first] if key and key in place[second]]
    a, b = [place[first][key] for key in keys], [place[second][key] for key in keys]
    human, score = one.human[a, 0] - one.human[b, 0], one.scores[a, 0] - one.scores[b, 0]
    groups = [one.records[k].group or key for k, key in zip(a, keys, strict=True)]
    got = prediction_powered(human, score, groups=groups)
    saved = None if got.worth is None else max(0, round(got.rated * (got.worth - 1)))
    reason = got.reason
    if got.value is None:
        reason = f"only {got.rated} items are rated for both systems; rate the same items of both (at least {FEWEST})"
    return PoweredDifference(metric, dimension, first, second, got.value, got.low, got.high, got.rated, saved, reason)


def _share(p: Preference) -> str:
    if p.agree is None:
        return "–"
    ends = "–" if p.low is None or p.high is None else f"{_percent(p.low)}, {_percent(p.high)}"
    return f"{_percent(p.agree)} [{ends}]"


def _percent(share: float) -> str:
    """A probability; an estimate is never certain."""
    return ">99%" if share > 0.99 else "<1%" if share < 0.01 else f"{share:.0%}"


def worth_grids(
    preferred: Sequence[Preference], powered: Sequence[PoweredDifference], most: int | None = None
) -> list[Grid]:
    """The tables of `elench compare --rated`: per metric and dimension the `most` pairs with the largest difference."""
    shown = _largest(preferred, most)
    rows = tuple(
        (f"{p.first} over {p.second}", p.metric, p.dimension, f"{p.difference:+.4f}", str(p.n),
         _share(p), f"{p.systems} systems × {p.items} items", p.reason or "")
        for p in shown
    )  # fmt: skip
    header = ("pair", "metric", "dimension", "difference", "items", "people agree", "rated", "note")
    title = f"What the differences buy: P(people prefer the metric's winner){_more(preferred, shown)}"
    grids = [Grid(title, header, rows, "lll")]
    kept = _largest(powered, most)
    known = tuple(
        (f"{p.first} − {p.second}", p.metric, p.dimension,
         "–" if p.difference is None else f"{p.difference:+.3f}",
         "–" if p.low is None or p.high is None else f"{p.low:+.3f} … {p.high:+.3f}",
         str(p.rated), "–" if p.saved is None else str(p.saved), p.reason or "")
        for p in kept
    )  # fmt: skip
    if known:
        head = ("pair", "metric", "dimension", "difference in ratings", "95 % interval", "rated", "saved", "note")
        title = f"Prediction-powered differences in ratings, and ratings saved by the metric{_more(powered, kept)}"
        grids.append(Grid(title, head, known, "lll"))
    return grids


def _largest(rows: Sequence[Row], most: int | None) -> list[Row]:
    """Rows by metric and dimension, in each the largest differences first."""
    parts: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        parts.setdefault((row.metric, row.dimension), []).append(row)
    return [row for part in parts.values() for row in sorted(part, key=lambda r: -abs(r.difference or 0.0))[:most]]


def _more(rows: Sequence[Row], shown: Sequence[Row]) -> str:
    return f" ({len(rows) - len(shown)} more with --pairs)" if len(shown) < len(rows) else ""
