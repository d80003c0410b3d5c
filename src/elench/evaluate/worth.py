"""What does a difference buy? From rated data: how often people prefer the system that a metric prefers.

Two things are estimated from a rated file and one metric, for every comparison of two systems:

* P(people prefer A | the metric's difference, n): pairs of systems on samples of n items are drawn from the rated file,
  and the share of them in which the ratings agree in sign with the metric is regressed on the metric's difference;
* the difference in ratings itself, prediction-powered: few ratings and the metric's scores of everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from elench.engine.result import Result
from elench.errors import UsageError
from elench.evaluate.compare import Column, Comparison
from elench.evaluate.judgements import Judgements, from_records
from elench.grid import Grid
from elench.stats.estimation import prediction_powered

Array = NDArray[np.float64]
SAMPLES = 4000
FEWEST_ITEMS = 10


@dataclass(frozen=True)
class Preference:
    """How far a metric's difference can be trusted."""

    metric: str
    dimension: str
    first: str
    second: str
    difference: float
    n: int
    agree: float
    """P(people rate the metric's winner higher on as many items)"""
    low: float
    high: float
    pairs: int
    """Pairs of systems in the rated file"""
    items: int


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


def with_preferences(found: Comparison, rated: Result) -> Comparison:
    """The comparison with what its differences buy, by the ratings of other (or the same) records."""
    records = [
        replace(o.record, extra={**o.record.extra, "scores": {spec: score.value for spec, score in o.scores.items()}})
        for o in rated.scored
        if o.record is not None
    ]
    table = from_records(records, "rated records")
    preferred, powered = preferences(found, table, found.seed), powered_differences(found, table)
    note = (
        "People agree: logistic regression through ½ on draws of as many items from the rated systems; interval by "
        "leaving out one rated system at a time."
    )
    extra = {**found.extra, "preferences": [asdict(p) for p in preferred], "powered": [asdict(p) for p in powered]}
    return replace(
        found, added=(*found.added, *worth_grids(preferred, powered)), extra=extra, notes=[*found.notes, note]
    )


def preferences(found: Comparison, rated: Judgements, seed: int = 0) -> list[Preference]:
    """For every pair of the comparison and every dimension of the rated file."""
    out = []
    for column in found.columns:
        if column.metric not in rated.metrics:
            continue
        for dimension in rated.dimensions:
            out += _of_metric(column, rated.choose([column.metric], [dimension]), dimension, seed)
    if not out:
        raise UsageError(f"{rated.source}: no scores of {', '.join(c.metric for c in found.columns)}, or no ratings")
    return out


def _of_metric(column: Column, one: Judgements, dimension: str, seed: int) -> list[Preference]:
    cells = _cells(one)
    if cells is None:
        raise UsageError(
            f"{one.source}: preferences need at least two systems rated on the same {FEWEST_ITEMS} items or more "
            "(give the records `group` or shared ids)"
        )
    score, human = cells[..., 0], cells[..., 1]
    sign = 1.0 if column.higher_is_better else -1.0
    gaps, wins, drawn = _samples(score * sign, human, column.n, seed)
    out = []
    for pair in column.pairs:
        lead = pair.difference * sign
        first, second = (pair.first, pair.second) if lead >= 0 else (pair.second, pair.first)
        agree, low, high = _agreement(gaps, wins, drawn, abs(lead), score.shape[1])
        out.append(
            Preference(
                column.metric, dimension, first, second, abs(lead), pair.n, agree, low, high,
                score.shape[1] * (score.shape[1] - 1) // 2, len(score),
            )
        )  # fmt: skip
    return out


def _cells(one: Judgements) -> Array | None:
    """items × systems × (score, rating) of items that every system has; mean where a cell has several records."""
    ids: dict[str, set[str | None]] = {}
    for record in one.records:
        ids.setdefault(record.id, set()).add(record.system)
    shared = any(len(systems) > 1 for systems in ids.values())
    keys = [record.id if shared else record.group for record in one.records]
    table: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for k, (key, record) in enumerate(zip(keys, one.records, strict=True)):
        value = float(one.scores[k, 0]), float(one.human[k, 0])
        if key is not None and record.system is not None and np.isfinite(value).all():
            table.setdefault(key, {}).setdefault(record.system, []).append(value)
    systems = sorted({system for row in table.values() for system in row})
    complete = [row for row in table.values() if all(system in row for system in systems)]
    if len(systems) < 2 or len(complete) < FEWEST_ITEMS:
        return None
    return np.array([[np.mean(row[system], axis=0) for system in systems] for row in complete])


def _samples(score: Array, human: Array, n: int, seed: int) -> tuple[Array, Array, Array]:
    """Draws of n items (with replacement): the metric's lead of its winner, whether people agree, and which pair."""
    rng = np.random.default_rng(seed)
    pairs = list(combinations(range(score.shape[1]), 2))
    each = max(20, SAMPLES // len(pairs))
    gaps, wins, which = [], [], []
    for k, (i, j) in enumerate(pairs):
        items = rng.integers(0, len(score), size=(each, n))
        lead = (score[:, i] - score[:, j])[items].mean(axis=1)
        people = (human[:, i] - human[:, j])[items].mean(axis=1)
        gaps.append(np.abs(lead))
        wins.append(np.where(people == 0, 0.5, np.sign(people) == np.where(lead == 0, 1, np.sign(lead))))
        which.append(np.full(each, k))
    return np.concatenate(gaps), np.concatenate(wins).astype(np.float64), np.concatenate(which)


def _agreement(gaps: Array, wins: Array, which: Array, lead: float, systems: int) -> tuple[float, float, float]:
    """P(people agree) at a lead by logistic regression through ½ at no lead, and its interval over pairs of systems:
    systems are left out one by one (those of the rated file are a sample)."""
    from scipy.stats import t

    slope = _slope(gaps, wins)
    pairs = list(combinations(range(systems), 2))
    without = []
    for s in range(systems):
        kept = np.isin(which, [k for k, pair in enumerate(pairs) if s not in pair])
        without.append(_slope(gaps[kept], wins[kept]) if kept.any() else slope)
    error = float(np.sqrt((systems - 1) / systems * ((np.array(without) - np.mean(without)) ** 2).sum()))
    reach = float(t.ppf(0.975, max(1, systems - 1))) * error
    low, middle, high = (_logistic(b * lead) for b in (slope - reach, slope, slope + reach))
    return middle, low, high


def _logistic(x: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(x, -30, 30))))


def _slope(gaps: Array, wins: Array) -> float:
    """Maximum likelihood of P = 1 / (1 + exp(-slope · gap)), by Newton's method."""
    scale = float(gaps.mean()) or 1.0
    x, slope = gaps / scale, 0.0
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(slope * x, -30, 30)))
        step = float((x * (wins - p)).sum() / max(1e-9, float((x**2 * p * (1 - p)).sum()) + 1e-3))
        slope = float(np.clip(slope + step, -50, 50))
        if abs(step) < 1e-8:
            break
    return slope / scale


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
    return PoweredDifference(
        metric, dimension, first, second, got.value, got.low, got.high, got.rated, saved, got.reason
    )


def worth_grids(preferred: Sequence[Preference], powered: Sequence[PoweredDifference]) -> list[Grid]:
    """The tables of `elench compare --rated`."""
    rows = tuple(
        (f"{p.first} over {p.second}", p.metric, p.dimension, f"{p.difference:+.4f}", str(p.n),
         f"{p.agree:.0%} [{p.low:.0%}, {p.high:.0%}]", str(p.pairs))
        for p in preferred
    )  # fmt: skip
    header = ("pair", "metric", "dimension", "difference", "items", "people agree", "rated pairs")
    grids = [Grid("What the differences buy: P(people prefer the metric's winner)", header, rows, "lll")]
    known = tuple(
        (f"{p.first} − {p.second}", p.metric, p.dimension,
         "–" if p.difference is None else f"{p.difference:+.3f}",
         "–" if p.low is None or p.high is None else f"{p.low:+.3f} … {p.high:+.3f}",
         str(p.rated), "–" if p.saved is None else str(p.saved), p.reason or "")
        for p in powered
    )  # fmt: skip
    if known:
        head = ("pair", "metric", "dimension", "difference in ratings", "95 % interval", "rated", "saved", "note")
        grids.append(
            Grid("Prediction-powered differences in ratings, and ratings saved by the metric", head, known, "lll")
        )
    return grids
