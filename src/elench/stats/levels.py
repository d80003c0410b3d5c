"""One block of metrics and dimensions at one level: their coefficients, in the data and in every resample.

* segment: all records pooled;
* group: within each group, then averaged over groups;
* system: between the means of systems.

All functions take complete data (no gaps) and give metrics × dimensions, or replicates × metrics × dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.stats import weighted
from elench.stats.pairwise import (
    accuracy_at,
    all_pairs,
    calibrated_accuracy,
    calibrated_draws,
    pairs_within,
    soft_accuracy,
    soft_draws,
)
from elench.stats.resampling import Drawing
from elench.stats.resampling_plan import Ints, codes

Array = NDArray[np.float64]

COEFFICIENTS = ("pearson", "spearman", "kendall-b", "kendall-c", "accuracy")
SOFT = "soft-accuracy"
"""Soft pairwise accuracy: at system level only"""
OF_PAIRS = ("kendall-b", "kendall-c", "accuracy", SOFT)
"""Means over pairs of what is correlated"""
LEVELS = ("segment", "group", "system")
FEWEST = 3
"""Fewer records, groups' members or systems than this give no correlation."""


@dataclass(frozen=True)
class Block:
    """Complete records of some metrics and dimensions."""

    x: Array
    """records × metrics"""
    y: Array
    """records × dimensions"""
    rows: Ints
    """Which records of the file these are"""
    group: Ints
    system: Ints
    common: bool = False
    """At group level: average only over the groups in which every metric has a value"""

    @property
    def shape(self) -> tuple[int, int]:
        return self.x.shape[1], self.y.shape[1]

    def vary(self) -> NDArray[np.bool_]:
        """Metrics × dimensions: do both vary? A metric that ties everything has an accuracy, but no judgement."""
        return _vary(self.x, self.y)


@dataclass(frozen=True)
class LevelValues:
    """Values of one coefficient and what was correlated."""

    n: Ints
    values: Array
    epsilon: Array
    replicates: list[Array]
    """One per drawing: replicates × metrics × dimensions"""
    bias: Array | None = None
    """How much choosing epsilon on the same data flatters the value, by the draws; None: not estimated"""


def estimate(level: str, block: Block, name: str, drawings: Sequence[Drawing]) -> LevelValues:
    """A coefficient at a level, with its replicates under every drawing."""
    return {"segment": _segment, "group": _group, "system": _system}[level](block, name, drawings)


def _segment(block: Block, name: str, drawings: Sequence[Drawing]) -> LevelValues:
    x, y = block.x, block.y
    n, epsilon = np.full(block.shape, len(x)), np.full(block.shape, np.nan)
    weights = [drawing.weights(block.rows) for drawing in drawings]
    if name in ("pearson", "spearman"):
        kernel = weighted.pearson if name == "pearson" else weighted.spearman
        return LevelValues(n, values_of(x, y, name), epsilon, [kernel(x, y, w) for w in weights])
    if name == "accuracy":
        value, epsilon, influence = calibrated_accuracy(x, y, all_pairs(len(x)))
        value = np.where(block.vary(), value, np.nan)
    else:
        value, influence = weighted.kendall_influence(x, y, _variant(name))
    return LevelValues(n, value, epsilon, [_linear(value, influence, w) for w in weights])


def _linear(value: Array, influence: Array, weights: Array) -> Array:
    """Replicates of a statistic of pairs, to first order in the weights (exact pairs cost n² per draw)."""
    moved = (weights - 1) @ influence.reshape(len(influence), -1)
    return np.asarray(value[None] + moved.reshape(len(weights), *value.shape))


def _group(block: Block, name: str, drawings: Sequence[Drawing]) -> LevelValues:
    members = [np.flatnonzero(block.group == g) for g in np.unique(block.group)]
    fewest = 2 if name == "accuracy" else FEWEST
    members = [m for m in members if len(m) >= fewest]
    epsilon = np.full(block.shape, np.nan)
    if name == "accuracy":
        epsilon = calibrated_accuracy(block.x, block.y, pairs_within(block.group)).epsilon
    if not members:
        empty = [np.full((len(d.times), *block.shape), np.nan) for d in drawings]
        return LevelValues(np.zeros(block.shape, dtype=np.int64), np.full(block.shape, np.nan), epsilon, empty)
    own = np.stack([_inside(block, m, name, epsilon, np.ones((1, len(m))))[0] for m in members])
    if name == "accuracy":  # a metric that ties a whole group is right or wrong there; one that ties all judges nothing
        own = np.where(block.vary(), own, np.nan)
    defined = np.isfinite(own)
    if block.common:
        defined &= defined.all(axis=1, keepdims=True)
    filled = np.where(defined, own, 0.0)
    count = defined.sum(axis=0)
    bias = None
    with np.errstate(invalid="ignore", divide="ignore"):
        values = filled.sum(axis=0) / count
        replicates = []
        for drawing in drawings:
            times = drawing.weights(block.rows[[m[0] for m in members]])
            if drawing.kind == "groups" and name == "accuracy":
                replicates.append(values + calibrated_draws(block.x, block.y, members, times))
                bias = replicates[-1].mean(axis=0) - values
                continue
            if drawing.kind == "groups":
                total, seen = np.tensordot(times, filled, (1, 0)), np.tensordot(times, defined.astype(float), (1, 0))
            else:
                total, seen = np.zeros((len(drawing.times), *block.shape)), np.zeros((len(drawing.times), *block.shape))
                for k, m in enumerate(members):
                    drawn = _inside(block, m, name, epsilon, drawing.weights(block.rows[m]))
                    fine = np.isfinite(drawn) & defined[k]
                    total += np.where(fine, drawn, 0.0)
                    seen += fine
            replicates.append(total / seen)
    return LevelValues(count, values, epsilon, replicates, bias)


def _inside(block: Block, members: Ints, name: str, epsilon: Array, weights: Array) -> Array:
    """The coefficient inside one group, for every row of weights."""
    x, y = block.x[members], block.y[members]
    if name == "accuracy":
        wide = (len(weights), *x.shape), (len(weights), *y.shape)
        return accuracy_at(np.broadcast_to(x, wide[0]), np.broadcast_to(y, wide[1]), epsilon, weights)
    if name.startswith("kendall"):
        return weighted.kendall(x, y, weights, _variant(name))
    return weighted.pearson(x, y, weights) if name == "pearson" else weighted.spearman(x, y, weights)


def _system(block: Block, name: str, drawings: Sequence[Drawing]) -> LevelValues:
    system = codes(block.system.tolist())
    count = int(system.max()) + 1
    n = np.full(block.shape, count)
    if name == SOFT:
        return _soft(block, system, count, drawings)
    means = _Means(block, system)
    mean_x, mean_y = means.of(np.ones((1, len(system))))[:2]
    mean_x, mean_y = (
        weighted.merge_ties(mean[0], weighted.ROUNDING * np.abs(records).max(axis=0))
        for mean, records in ((mean_x, block.x), (mean_y, block.y))
    )
    epsilon = np.full(block.shape, np.nan)
    if name == "accuracy":
        value, epsilon, _ = calibrated_accuracy(mean_x, mean_y, all_pairs(count))
        value = np.where(_vary(mean_x, mean_y), value, np.nan)
    else:
        value = values_of(mean_x, mean_y, name)
    replicates = []
    for drawing in drawings:
        drawn = np.empty((len(drawing.times), *block.shape))
        step = max(1, 4_000_000 // (count * count * sum(block.shape) + len(system)))
        weights = drawing.weights(block.rows)
        for start in range(0, len(drawn), step):
            part = slice(start, start + step)
            bx, by, times = means.of(weights[part])
            if drawing.kind == "systems":  # a system left out has no weight; the others keep their means
                bx, by = (np.broadcast_to(m, (len(times), *m.shape)) for m in (mean_x, mean_y))
            if name == "accuracy":
                moved = accuracy_at(bx, by, epsilon, times)
            else:
                moved = weighted.per_draw(bx, by, times, name)
            drawn[part] = np.where((times.sum(axis=1) >= FEWEST)[:, None, None], moved, np.nan)
        if drawing.kind == "systems" and name in OF_PAIRS:
            drawn = _less_one_system(drawn, value, count)
        replicates.append(drawn)
    return LevelValues(n, value, epsilon, replicates)


def _less_one_system(drawn: Array, value: Array, systems: int) -> Array:
    """A mean over pairs moves by 2 / (n - 2) of a system's surplus when that system is left out, a mean over systems by
    1 / (n - 1): taken alike, the jackknife overstates the variance of a statistic of pairs (Efron & Stein 1981)."""
    return np.asarray(value + (drawn - value) * (systems - 2) / (systems - 1))


class _Means:
    """System means of scores and ratings in every draw."""

    def __init__(self, block: Block, system: Ints) -> None:
        self.order = np.argsort(system, kind="stable")
        self.start = np.flatnonzero(np.diff(system[self.order], prepend=-1))
        self.x, self.y = block.x[self.order], block.y[self.order]

    def of(self, weights: Array) -> tuple[Array, Array, Array]:
        """draws × systems × metrics, draws × systems × dimensions, and which systems have any weight (1 or 0)"""
        ordered = weights[:, self.order]
        mass = np.add.reduceat(ordered, self.start, axis=1)
        divide = np.where(mass > 0, mass, 1.0)
        bx, by = (
            np.stack([np.add.reduceat(ordered * c, self.start, axis=1) / divide for c in columns.T], axis=2)
            for columns in (self.x, self.y)
        )
        return bx, by, (mass > 0).astype(np.float64)


def _soft(block: Block, system: Ints, count: int, drawings: Sequence[Drawing]) -> LevelValues:
    """Soft pairwise accuracy; over systems by leaving one out, over items with normal p-values in every draw."""
    table = soft_accuracy(block.x, block.y, block.group, system)
    i, j = np.triu_indices(count, 1)
    value = np.full(block.shape, np.nan) if table is None else np.where(block.vary(), table[i, j].mean(axis=0), np.nan)
    replicates = []
    for drawing in drawings:
        drawn = np.full((len(drawing.times), *block.shape), np.nan)
        if table is not None and drawing.kind == "systems":
            first = np.array([int(np.flatnonzero(system == s)[0]) for s in range(count)])
            kept = drawing.weights(block.rows[first])
            pairs = kept[:, i] * kept[:, j]
            drawn = np.tensordot(pairs, table[i, j], (1, 0)) / np.maximum(1, pairs.sum(axis=1))[:, None, None]
            drawn = _less_one_system(drawn, value, count)
        elif table is not None:
            drawn = value + soft_draws(block.x, block.y, block.group, system, drawing.weights(block.rows))
        replicates.append(drawn)
    return LevelValues(np.full(block.shape, count), value, np.full(block.shape, np.nan), replicates)


def values_of(x: Array, y: Array, name: str) -> Array:
    """Metrics × dimensions: a coefficient of the columns themselves."""
    if name.startswith("kendall"):
        return weighted.kendall_influence(x, y, _variant(name))[0]
    if name == "accuracy":
        return calibrated_accuracy(x, y, all_pairs(len(x))).value
    if name not in COEFFICIENTS:
        raise UsageError(f"no coefficient {name!r}: choose {', '.join(COEFFICIENTS)}")
    kernel = weighted.pearson if name == "pearson" else weighted.spearman
    alone: Array = kernel(x, y, np.ones((1, len(x))))[0]
    return alone


def _variant(name: str) -> str:
    return name[-1]


def _vary(x: Array, y: Array) -> NDArray[np.bool_]:
    return np.asarray((np.ptp(x, axis=0) > 0)[:, None] & (np.ptp(y, axis=0) > 0)[None, :])
