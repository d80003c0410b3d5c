"""How well metrics agree with human judgements: correlations at segment, group and system level, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elench.errors import UsageError
from elench.stats.levels import COEFFICIENTS, FEWEST, LEVELS, SOFT, Block, LevelValues, estimate, values_of
from elench.stats.resampling import Drawing, Replicates, difference_p, drawings, fisher_interval, interval, outward
from elench.stats.resampling_plan import Ints, ResamplingPlan, resampling_plan
from elench.stats.weighted import ROUNDING, merge_ties

Array = NDArray[np.float64]

OVER = {"items": ("groups",), "systems": ("systems",), "both": ("groups", "systems")}
"""What the user may ask to resample; an item is a group of records about one context."""


CLOSED = "closed form for independent records"
"""How `fisher` intervals are made"""


class JudgementTable(Protocol):
    """Human ratings and metric scores of the same records."""

    @property
    def metrics(self) -> tuple[str, ...]: ...
    @property
    def dimensions(self) -> tuple[str, ...]: ...
    @property
    def scores(self) -> Array: ...
    @property
    def human(self) -> Array: ...
    @property
    def source(self) -> str: ...
    @property
    def groups(self) -> list[str | None]: ...
    @property
    def systems(self) -> list[str | None]: ...


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
    a, b = merge_ties(a[both, None]), merge_ties(b[both, None])
    reason = why_undefined(a[:, 0], b[:, 0])
    if reason:
        return Coefficient(None, len(a), reason)
    return Coefficient(float(values_of(a, b, name)[0, 0]), len(a), None)


@dataclass(frozen=True)
class Sampling:
    """A table at one level, ready to be estimated on any of its records."""

    level: str
    x: Array
    y: Array
    plan: ResamplingPlan
    draws: int
    seed: int

    @cached_property
    def drawings(self) -> list[Drawing]:
        return drawings(self.plan, self.draws, self.seed)

    def block(self, rows: Ints, ms: Sequence[int], ds: Sequence[int], common: bool = False) -> Block:
        x, y = self.x[np.ix_(rows, np.array(ms))], self.y[np.ix_(rows, np.array(ds))]
        return Block(x, y, rows, self.plan.group[rows], self.plan.system[rows], common)

    def units(self, drawing: Drawing, rows: Ints, found: LevelValues) -> Ints:
        """Metrics × dimensions: how many units were drawn from; at group level only groups that have a value."""
        if self.level == "group" and drawing.kind == "groups":
            return found.n
        return np.full(found.n.shape, len(np.unique(drawing.unit[rows])))

    def gap_p(self, first: int, second: int, dimension: int, name: str, sign: float = 1.0) -> float:
        """p that two metrics agree equally well with a dimension, on the records that both score."""
        both = np.isfinite(self.x[:, first]) & np.isfinite(self.x[:, second]) & np.isfinite(self.y[:, dimension])
        rows = np.flatnonzero(both)
        if len(rows) < FEWEST:
            return 1.0
        found = estimate(self.level, self.block(rows, [first, second], [dimension], True), name, self.drawings)
        value = outward(found.values[:, 0], scale_of(name))
        parts = []
        for drawing, drawn in zip(self.drawings, found.replicates, strict=True):
            moved = outward(drawn[:, :, 0], scale_of(name))
            units = self.units(drawing, rows, found).min()
            parts.append(Replicates(moved[:, 0] - sign * moved[:, 1], units, drawing.jackknife, drawing.sign))
        return float(difference_p(np.asarray(value[0] - sign * value[1]), parts))


@dataclass(frozen=True)
class Estimates:
    """Every coefficient of every metric with every dimension, and its replicates."""

    level: str
    metrics: tuple[str, ...]
    dimensions: tuple[str, ...]
    n: Ints
    """metrics × dimensions: what was correlated (records, groups averaged, or systems)"""
    records: Ints
    """metrics × dimensions: records with both score and rating"""
    groups: Ints
    """metrics × dimensions: groups that could have been averaged (group level)"""
    values: dict[str, Array]
    low: dict[str, Array]
    high: dict[str, Array]
    draws: dict[str, tuple[Replicates, ...]]
    """coefficient → per drawing: replicates × metrics × dimensions; a row is one draw for all metrics"""
    epsilon: Array
    """Tie threshold of the accuracy"""
    reasons: dict[tuple[int, int], str]
    """(metric, dimension) → why there is no number"""
    method: str
    sampling: Sampling

    def gap_ps(self, pairs: Sequence[tuple[int, int]], dimension: int, name: str, sign: float = 1.0) -> Array:
        """p-values of differences (first - sign × second); metrics with the same records share the draws made
        already, others are estimated again on the records (and groups) that both have."""
        scale = scale_of(name)
        value = outward(self.values[name][:, dimension], scale)
        out = np.ones(len(pairs))
        same = [k for k, (i, j) in enumerate(pairs) if self._same_records(i, j, dimension)]
        for k, (i, j) in enumerate(pairs):
            if k not in set(same):
                out[k] = self.sampling.gap_p(i, j, dimension, name, sign)
        if same:
            first, second = np.array([pairs[k] for k in same]).T
            parts = []
            for part in self.draws[name]:
                moved = outward(part.values[:, :, dimension], scale)
                units = np.minimum(part.units[first, dimension], part.units[second, dimension])
                parts.append(Replicates(moved[:, first] - sign * moved[:, second], units, part.jackknife, part.sign))
            out[same] = difference_p(value[first] - sign * value[second], parts)
        return out

    def _same_records(self, i: int, j: int, dimension: int) -> bool:
        x = self.sampling.x
        alike = bool((np.isfinite(x[:, i]) == np.isfinite(x[:, j])).all())
        if self.level != "group":
            return alike
        whole = self.groups[[i, j], dimension] == self.n[[i, j], dimension]
        return alike and bool(whole.all())


def scale_of(name: str) -> str:
    """The scale on which a coefficient is close to normal."""
    return "logit" if name in ("accuracy", SOFT) else "fisher"


def correlate(
    table: JudgementTable,
    level: str = "segment",
    *,
    over: str | None = None,
    draws: int = 1000,
    seed: int = 0,
    coefficients: tuple[str, ...] = COEFFICIENTS,
    method: str = "bootstrap",
) -> Estimates:
    """Correlate every metric of a table with every human dimension. By default the system level resamples items and
    systems, the other levels items."""
    if level not in LEVELS:
        raise UsageError(f"no level {level!r}: choose {', '.join(LEVELS)}")
    if SOFT in coefficients and level != "system":
        raise UsageError(f"{SOFT} compares systems: use it with --level system")
    if level == "system":
        _check_systems(table)
    over = over or ("both" if level == "system" else "items")
    if over not in OVER:
        raise UsageError(f"cannot resample {over!r}: choose items, systems or both")
    plan = resampling_plan(table.groups, [s or "" for s in table.systems], OVER[over])
    human = merge_ties_in(table.human, ROUNDING)  # often means of single ratings
    sampling = Sampling(level, merge_ties_in(table.scores), human, plan, draws, seed)
    found = {name: _all_blocks(sampling, name) for name in coefficients}
    low, high = {}, {}
    for name, one in found.items():
        if method == "fisher" and name not in ("accuracy", SOFT):
            low[name], high[name] = fisher_interval(one.values, one.n, name)
        else:
            low[name], high[name] = interval(one.values - one.bias, one.parts, scale=scale_of(name))
    main = found[coefficients[0]]
    effective = plan.effective_n(sampling.y[:, 0]) if sampling.y.size else None
    text = f"{plan.describe(effective)}; {draws} draws, seed {seed}" if method == "bootstrap" else CLOSED
    epsilon = found["accuracy"].epsilon if "accuracy" in found else np.full(main.n.shape, np.nan)
    return Estimates(
        level, table.metrics, table.dimensions, main.n, main.records, main.groups,
        {name: one.values for name, one in found.items()}, low, high,
        {name: tuple(one.parts) for name, one in found.items()}, epsilon,
        _reasons(table, level, main.values), text, sampling,
    )  # fmt: skip


def merge_ties_in(columns: Array, rounding: float = 0.0) -> Array:
    """`merge_ties` for columns with gaps; `rounding` as a share of the column's largest value."""
    out = columns.copy()
    for k in range(columns.shape[1]):
        known = np.isfinite(columns[:, k])
        own = columns[known, k][:, None]
        out[known, k] = merge_ties(own, rounding * np.abs(own).max(initial=0.0))[:, 0]
    return out


@dataclass(frozen=True)
class _Whole:
    """One coefficient over all blocks of a table."""

    n: Ints
    records: Ints
    groups: Ints
    values: Array
    epsilon: Array
    bias: Array
    """How much the value is flattered by choices made on the same data; taken off for the interval"""
    parts: list[Replicates]


def _all_blocks(sampling: Sampling, name: str) -> _Whole:
    shape = (sampling.x.shape[1], sampling.y.shape[1])
    n, records, groups = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    values, epsilon, bias = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape)
    drawn = [np.full((len(d.times), *shape), np.nan) for d in sampling.drawings]
    units = [np.zeros(shape, dtype=np.int64) for _ in sampling.drawings]
    for rows, ms, ds in _complete(sampling.x, sampling.y):
        at = np.ix_(np.array(ms), np.array(ds))
        records[at] = len(rows)
        if len(rows) < FEWEST:
            continue
        found = estimate(sampling.level, sampling.block(rows, ms, ds), name, sampling.drawings)
        n[at], values[at], epsilon[at] = found.n, found.values, found.epsilon
        bias[at] = 0.0 if found.bias is None else found.bias
        sizes = np.bincount(sampling.plan.group[rows])
        groups[at] = int((sizes >= (2 if name == "accuracy" else FEWEST)).sum())
        for k, drawing in enumerate(sampling.drawings):
            drawn[k][:, at[0], at[1]] = np.where(found.n < FEWEST, np.nan, found.replicates[k])
            units[k][at] = sampling.units(drawing, rows, found)
    parts = [
        Replicates(values_, units_, drawing.jackknife, drawing.sign)
        for values_, units_, drawing in zip(drawn, units, sampling.drawings, strict=True)
    ]
    return _Whole(n, records, groups, values, epsilon, bias, parts)


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


def _check_systems(table: JudgementTable) -> None:
    names = set(table.systems) - {None}
    if len(names) < FEWEST:
        raise UsageError(
            f"{table.source}: {len(names)} systems named in `system`; a correlation between systems needs {FEWEST}"
        )
    without = sum(s is None for s in table.systems)
    if without:
        raise UsageError(f"{table.source}: {without} records have no `system`: the system level needs one on each")


def _reasons(table: JudgementTable, level: str, values: Array) -> dict[tuple[int, int], str]:
    reasons = {}
    for m, d in np.argwhere(~np.isfinite(values)).tolist():
        both = np.isfinite(table.scores[:, m]) & np.isfinite(table.human[:, d])
        reason = why_undefined(table.scores[both, m], table.human[both, d])
        if reason is None and level == "group":
            reason = f"no group has {FEWEST} records whose scores and ratings vary"
        reasons[m, d] = reason or "all system means are equal"
    return reasons


def why_undefined(x: Array, y: Array) -> str | None:
    """Why two complete columns have no correlation; None where they have one."""
    if len(x) < FEWEST:
        return f"only {len(x)} records have both a score and a rating (at least {FEWEST} needed)"
    if np.ptp(x) == 0:
        return "the metric gives every record the same score"
    if np.ptp(y) == 0:
        return "people gave every record the same rating"
    return None
