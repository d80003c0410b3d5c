"""How well metrics follow people: correlations at segment, group and system level, with intervals.

* segment: all records pooled;
* group: within each group of records about the same context, then averaged over groups;
* system: between the means of systems.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quaestor.errors import UsageError
from quaestor.meta import weighted
from quaestor.meta.judgements import Judgements
from quaestor.meta.pairwise import all_pairs, calibrated_accuracy, pairs_within
from quaestor.meta.resampling import Part, Resamples, codes, fisher_interval, interval, resample

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

COEFFICIENTS = ("pearson", "spearman", "kendall-b", "kendall-c", "accuracy")
LEVELS = ("segment", "group", "system")
FEWEST = 3
"""Fewer records, groups' members or systems than this give no correlation."""
FEWEST_DRAWN = 5
"""Fewer units to draw from than this give no interval and no verdict: four points often lie on a line by chance."""


class Coefficient(NamedTuple):
    """One coefficient of one pair of lists."""

    value: float | None
    n: int
    """Pairs that both lists have."""
    reason: str | None
    """Why there is no value."""


def coefficient(x: ArrayLike, y: ArrayLike, name: str = "pearson") -> Coefficient:
    """Pearson, Spearman, Kendall (tau-b, tau-c) or calibrated accuracy of two lists; gaps (NaN) are left out."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise UsageError(f"two lists of the same length are needed, not {a.shape} and {b.shape}")
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both, None], b[both, None]
    reason = _why_undefined(a[:, 0], b[:, 0])
    if reason:
        return Coefficient(None, len(a), reason)
    return Coefficient(float(_values(a, b, name)[0, 0]), len(a), None)


@dataclass(frozen=True)
class Estimates:
    """Every coefficient of every metric with every dimension, and its bootstrap draws."""

    level: str
    metrics: tuple[str, ...]
    dimensions: tuple[str, ...]
    n: Ints
    """metrics × dimensions: what was correlated (records, groups averaged, or systems)"""
    records: Ints
    """metrics × dimensions: records with both score and rating"""
    values: dict[str, Array]
    low: dict[str, Array]
    high: dict[str, Array]
    draws: dict[str, tuple[Part, ...]]
    """coefficient → per kind of resampling: draws × metrics × dimensions; a row is one resample for all metrics"""
    epsilon: Array
    """Tie threshold of the accuracy"""
    reasons: dict[tuple[int, int], str]
    """(metric, dimension) → why there is no number"""
    method: str


def correlate(
    table: Judgements,
    level: str = "segment",
    *,
    over: str = "items",
    draws: int = 1000,
    seed: int = 0,
    coefficients: tuple[str, ...] = COEFFICIENTS,
    method: str = "bootstrap",
) -> Estimates:
    """Correlate every metric of a table with every human dimension."""
    if level not in LEVELS:
        raise UsageError(f"no level {level!r}: choose {', '.join(LEVELS)}")
    if level == "system":
        _check_systems(table)
    if over not in ("items", "systems", "both"):
        raise UsageError(f"cannot resample {over!r}: choose items, systems or both")
    run = {"segment": _segment, "group": _group, "system": _system}[level]
    shape = (len(table.metrics), len(table.dimensions))
    values = {name: np.full(shape, np.nan) for name in coefficients}
    epsilon = np.full(shape, np.nan)
    n, records = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    parts: list[tuple[int, dict[str, Array]]] = []
    for k, kind in enumerate(_kinds(over)):
        samples = resample(table.items, [s or "" for s in table.systems], kind, draws, seed + k)
        drawn = {name: np.full((draws, *shape), np.nan) for name in coefficients}
        parts.append((samples.units, drawn))
        for rows, ms, ds in _complete(table.scores, table.human):
            at = np.ix_(np.array(ms), np.array(ds))
            records[at] = len(rows)
            if len(rows) < FEWEST:
                continue
            x, y = table.scores[np.ix_(rows, np.array(ms))], table.human[np.ix_(rows, np.array(ds))]
            n[at], block, block_draws, epsilon[at] = run(x, y, rows, samples, coefficients)
            drawn_from = len(np.unique((samples.item_of if kind == "items" else samples.system_of)[rows]))
            few = np.broadcast_to((n[at] < FEWEST) | (drawn_from < FEWEST_DRAWN), n[at].shape)
            for name in coefficients:
                values[name][at] = block[name]
                drawn[name][:, at[0], at[1]] = np.where(few, np.nan, block_draws[name])
    joined = {name: tuple(Part(drawn[name], units) for units, drawn in parts) for name in coefficients}
    low, high = {}, {}
    for name in coefficients:
        ranks_of_systems = level == "system" and over == "systems" and name not in ("pearson", "accuracy")
        if ranks_of_systems or (method == "fisher" and name != "accuracy"):  # few systems tie when drawn: too wide
            low[name], high[name] = fisher_interval(values[name], n, name)
        else:
            scale = "logit" if name == "accuracy" else "fisher"
            low[name], high[name] = interval(values[name], joined[name], scale=scale)
    reasons = _reasons(table, level, values[coefficients[0]], records)
    drawn_units = " and ".join(f"{units} {kind}" for (units, _), kind in zip(parts, _kinds(over), strict=True))
    text = f"bootstrap over {drawn_units}, {draws} draws, seed {seed}" if method == "bootstrap" else "Fisher"
    return Estimates(
        level, table.metrics, table.dimensions, n, records, values, low, high, joined, epsilon, reasons, text
    )  # fmt: skip


def _kinds(over: str) -> tuple[str, ...]:
    return ("items", "systems") if over == "both" else (over,)


Block = tuple[Ints | int, dict[str, Array], dict[str, Array], Array]


def _segment(x: Array, y: Array, rows: Ints, samples: Resamples, names: tuple[str, ...]) -> Block:
    weights = samples.weights[:, rows]
    values, draws = {}, {}
    epsilon = np.full((x.shape[1], y.shape[1]), np.nan)
    vary = _vary(x, y)
    for name in names:
        if name in ("pearson", "spearman"):
            values[name] = _values(x, y, name)
            draws[name] = getattr(weighted, name)(x, y, weights)
            continue
        if name == "accuracy":
            values[name], epsilon, influence = calibrated_accuracy(x, y, all_pairs(len(x)))
            values[name] = np.where(vary, values[name], np.nan)
        else:
            values[name], influence = weighted.kendall_influence(x, y, name[-1])
        draws[name] = _linear(values[name], influence, weights)
    return len(rows), values, draws, epsilon


def _group(x: Array, y: Array, rows: Ints, samples: Resamples, names: tuple[str, ...]) -> Block:
    group = samples.item_of[rows]
    n_draws, shape = len(samples.weights), (x.shape[1], y.shape[1])
    fixed_systems = bool((samples.systems == 1).all())
    values, draws, counted = {}, {}, np.zeros(shape, dtype=np.int64)
    epsilon = np.full(shape, np.nan)
    members = [np.flatnonzero(group == g) for g in np.unique(group)]
    members = [m for m in members if len(m) >= FEWEST]
    for m in members:
        counted = counted + _vary(x[m], y[m])
    for name in names:
        if name == "accuracy":
            values[name], epsilon, influence = calibrated_accuracy(x, y, pairs_within(group))
            values[name] = np.where(counted > 0, values[name], np.nan)
            draws[name] = _linear(values[name], influence, samples.weights[:, rows])
            continue
        total, seen = np.zeros((n_draws, *shape)), np.zeros((n_draws, *shape))
        mean, own_count = np.zeros(shape), np.zeros(shape, dtype=np.int64)
        for m in members:
            own = _values(x[m], y[m], name)
            defined = np.isfinite(own)
            mean, own_count = mean + np.where(defined, own, 0.0), own_count + defined
            drawn = (
                own[None] if fixed_systems else _small(name, x[m], y[m], samples.systems[:, samples.system_of[rows[m]]])
            )
            times = samples.items[:, group[m[0]]][:, None, None]
            total += times * np.where(np.isfinite(drawn), drawn, 0.0)
            seen += times * np.isfinite(drawn)
        with np.errstate(invalid="ignore", divide="ignore"):
            values[name], draws[name] = mean / own_count, total / seen
    return counted, values, draws, epsilon


def _system(x: Array, y: Array, rows: Ints, samples: Resamples, names: tuple[str, ...]) -> Block:
    system = codes(samples.system_of[rows].tolist())
    n = int(system.max()) + 1
    member = (system[:, None] == np.arange(n)).astype(np.float64)
    size = member.sum(axis=0)[:, None]
    mean_x, mean_y = member.T @ x / size, member.T @ y / size
    weights = samples.weights[:, rows]
    first = np.array([int(np.flatnonzero(system == s)[0]) for s in range(n)])
    times = samples.systems[:, samples.system_of[rows[first]]]
    values = {name: _values(mean_x, mean_y, name) for name in names if name != "accuracy"}
    calibrated = calibrated_accuracy(mean_x, mean_y, all_pairs(n))
    if "accuracy" in names:
        values["accuracy"] = np.where(_vary(mean_x, mean_y), calibrated.value, np.nan)
    draws = {name: np.empty((len(weights), x.shape[1], y.shape[1])) for name in names}
    step = max(1, 4_000_000 // (n * n * (x.shape[1] + y.shape[1]) + len(rows) * n))
    for start in range(0, len(weights), step):
        part = slice(start, start + step)
        share = weights[part, :, None] * member
        mass = share.sum(axis=1)
        here = mass > 0
        divide = np.where(here, mass, 1.0)[:, :, None]
        bx, by = np.matmul(share.transpose(0, 2, 1), x) / divide, np.matmul(share.transpose(0, 2, 1), y) / divide
        count = times[part] * here
        enough = (here.sum(axis=1) >= FEWEST)[:, None, None]
        for name in names:
            drawn = (
                _accuracy_at(bx, by, calibrated.epsilon, count)
                if name == "accuracy"
                else weighted.per_draw(bx, by, count, name)
            )
            draws[name][part] = np.where(enough, drawn, np.nan)
    return n, values, draws, calibrated.epsilon


def _vary(x: Array, y: Array) -> NDArray[np.bool_]:
    """Metrics × dimensions: do both vary? A metric that ties everything has an accuracy, but no judgement."""
    return np.asarray((np.ptp(x, axis=0) > 0)[:, None] & (np.ptp(y, axis=0) > 0)[None, :])


def _accuracy_at(x: Array, y: Array, epsilon: Array, times: Array) -> Array:
    """Pairwise accuracy in every draw (first axis) with a given tie threshold."""
    i, j = np.triu_indices(x.shape[1], 1)
    pairs = times[:, i] * times[:, j]
    pairs = pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1e-12)
    difference, truth = x[:, i] - x[:, j], np.sign(y[:, i] - y[:, j])
    out = np.empty((len(x), x.shape[2], y.shape[2]))
    for m in range(x.shape[2]):
        for d in range(y.shape[2]):
            gap = difference[:, :, m]
            right = np.where(np.abs(gap) <= epsilon[m, d], truth[:, :, d] == 0, np.sign(gap) == truth[:, :, d])
            out[:, m, d] = (pairs * right).sum(axis=1)
    return out


def _small(name: str, x: Array, y: Array, weights: Array) -> Array:
    if name.startswith("kendall"):
        return weighted.kendall(x, y, weights, name[-1])
    return weighted.pearson(x, y, weights) if name == "pearson" else weighted.spearman(x, y, weights)


def _values(x: Array, y: Array, name: str) -> Array:
    if name.startswith("kendall"):
        return weighted.kendall_influence(x, y, name[-1])[0]
    if name == "accuracy":
        return calibrated_accuracy(x, y, all_pairs(len(x))).value
    if name not in COEFFICIENTS:
        raise UsageError(f"no coefficient {name!r}: choose {', '.join(COEFFICIENTS)}")
    alone: Array = _small(name, x, y, np.ones((1, len(x))))[0]
    return alone


def _linear(value: Array, influence: Array, weights: Array) -> Array:
    """Bootstrap draws of a statistic of pairs, to first order in the weights (exact pairs cost n² per draw)."""
    moved = (weights - 1) @ influence.reshape(len(influence), -1)
    return np.asarray(value[None] + moved.reshape(len(weights), *value.shape))


def _complete(x: Array, y: Array) -> Iterator[tuple[Ints, list[int], list[int]]]:
    """Blocks of metrics and dimensions that share their complete rows, so that gaps cost no speed."""
    metric_blocks, dimension_blocks = _patterns(x), _patterns(y)
    for valid_x, ms in metric_blocks:
        for valid_y, ds in dimension_blocks:
            yield np.flatnonzero(valid_x & valid_y), ms, ds


def _patterns(columns: Array) -> list[tuple[NDArray[np.bool_], list[int]]]:
    found: dict[bytes, tuple[NDArray[np.bool_], list[int]]] = {}
    for k, valid in enumerate(np.isfinite(columns).T):
        found.setdefault(valid.tobytes(), (valid, []))[1].append(k)
    return list(found.values())


def _check_systems(table: Judgements) -> None:
    names = set(table.systems) - {None}
    if len(names) < FEWEST:
        raise UsageError(
            f"{table.source}: {len(names)} system(s) named in `system`: a correlation between systems needs {FEWEST}"
        )
    without = sum(s is None for s in table.systems)
    if without:
        raise UsageError(f"{table.source}: {without} records have no `system`: the system level needs one on each")


def _reasons(table: Judgements, level: str, values: Array, records: Ints) -> dict[tuple[int, int], str]:
    reasons = {}
    for m, d in np.argwhere(~np.isfinite(values)).tolist():
        both = np.isfinite(table.scores[:, m]) & np.isfinite(table.human[:, d])
        reason = _why_undefined(table.scores[both, m], table.human[both, d])
        if reason is None and level == "group":
            reason = f"no group has {FEWEST} records whose scores and ratings vary"
        reasons[m, d] = reason or "all system means are equal"
    return reasons


def _why_undefined(x: Array, y: Array) -> str | None:
    if len(x) < FEWEST:
        return f"only {len(x)} records have both a score and a rating (at least {FEWEST} needed)"
    if np.ptp(x) == 0:
        return "the metric gives every record the same score"
    if np.ptp(y) == 0:
        return "people gave every record the same rating"
    return None
