"""Pairwise accuracy: how often a metric orders two outputs as people do, ties included (Deutsch et al. 2023).

    acc_eq = (pairs in the same order + pairs tied by both) / all pairs

A metric with many decimals never ties, people often do. So a difference of at most epsilon counts as a tie of the
metric, and epsilon is the value that makes the accuracy greatest (tie calibration), one per metric and dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elench.stats.weighted import ROUNDING, merge_ties

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MOST_PAIRS = 1_500_000
"""Beyond this many pairs a seeded sample of this size is taken, and the output says so."""

GRID = 257
"""Thresholds tried in a draw"""


class Pairs(NamedTuple):
    """Which outputs are compared, and how much each comparison counts."""

    i: Index
    j: Index
    weight: Array
    sampled: bool


class Accuracy(NamedTuple):
    """Calibrated accuracies of metrics × dimensions."""

    value: Array
    epsilon: Array
    influence: Array
    """records × metrics × dimensions: the derivative by each record's weight, epsilon held."""


def all_pairs(n: int, seed: int = 0) -> Pairs:
    """Every pair of n outputs, or a seeded sample of them when they are too many."""
    if n * (n - 1) // 2 <= MOST_PAIRS:
        i, j = np.triu_indices(n, 1)
        return Pairs(i, j, np.full(len(i), 1 / max(1, len(i))), False)
    rng = np.random.default_rng(seed)
    i = rng.integers(0, n, MOST_PAIRS)
    j = (i + rng.integers(1, n, MOST_PAIRS)) % n
    return Pairs(i, j, np.full(MOST_PAIRS, 1 / MOST_PAIRS), True)


def pairs_within(groups: Index) -> Pairs:
    """Every pair inside each group; each group counts the same, however large."""
    members = [np.flatnonzero(groups == g) for g in np.unique(groups)]
    blocks = [(m[a], m[b]) for m in members if len(m) > 1 for a, b in [np.triu_indices(len(m), 1)]]
    if not blocks:
        empty = np.zeros(0, dtype=np.int64)
        return Pairs(empty, empty, np.zeros(0), False)
    weight = np.concatenate([np.full(len(a), 1 / (len(a) * len(blocks))) for a, _ in blocks])
    return Pairs(np.concatenate([a for a, _ in blocks]), np.concatenate([b for _, b in blocks]), weight, False)


def calibrated_accuracy(x: Array, y: Array, pairs: Pairs) -> Accuracy:
    """Accuracy with its best epsilon for every metric (columns of x) and dimension (columns of y)."""
    n, shape = len(x), (x.shape[1], y.shape[1])
    value, epsilon = np.full(shape, np.nan), np.full(shape, np.nan)
    influence = np.zeros((n, *shape))
    if len(pairs.i) == 0:
        return Accuracy(value, epsilon, influence)
    seen = np.bincount(pairs.i, pairs.weight, n) + np.bincount(pairs.j, pairs.weight, n)
    human = np.sign(y[pairs.i] - y[pairs.j]).astype(np.int8).T
    for m, column in enumerate(x.T):
        difference = column[pairs.i] - column[pairs.j]
        sign, gap = np.sign(difference).astype(np.int8), np.abs(difference)
        order = np.argsort(gap)
        ordered = gap[order]
        ends = np.append(ordered[1:] != ordered[:-1], True)  # epsilon can only lie at the end of equal gaps
        for d, truth in enumerate(human):
            sure = ((sign == truth) & (sign != 0)) * pairs.weight  # right if the metric's order counts
            tied = (truth == 0) * pairs.weight  # right if it counts as a tie
            gain = np.cumsum((tied - sure)[order])
            best = int(np.argmax(np.where(ends, gain, -np.inf)))
            epsilon[m, d] = ordered[best] if gain[best] > 0 else 0.0
            right = np.where(gap <= epsilon[m, d], tied, sure)
            value[m, d] = min(1.0, right.sum())
            share = np.bincount(pairs.i, right, n) + np.bincount(pairs.j, right, n)
            influence[:, m, d] = share - seen * value[m, d]
    return Accuracy(value, epsilon, influence)


def calibrated_draws(x: Array, y: Array, members: Sequence[Index], times: Array) -> Array:
    """Group-level accuracy with epsilon chosen anew in every draw of groups, minus that of all groups.

    draws × metrics × dimensions; `times` (draws × groups) says how often each group counts. A threshold held fixed
    hides that it was chosen on these very data. Thresholds are tried on a grid of gaps, so that a draw is a product of
    matrices."""
    count, pairs = len(members), [np.triu_indices(len(m), 1) for m in members]
    i = np.concatenate([m[a] for m, (a, _) in zip(members, pairs, strict=True)])
    j = np.concatenate([m[b] for m, (_, b) in zip(members, pairs, strict=True)])
    group = np.repeat(np.arange(count), [len(a) for a, _ in pairs])
    weight = np.repeat([1 / max(1, len(a)) for a, _ in pairs], [len(a) for a, _ in pairs])
    human = np.sign(y[i] - y[j]).T
    weights = np.concatenate([np.ones((1, count)), times])
    out = np.empty((len(weights), x.shape[1], y.shape[1]))
    for m, column in enumerate(x.T):
        sign, gap = np.sign(column[i] - column[j]), np.abs(column[i] - column[j])
        edges = np.unique(np.append(np.quantile(gap, np.linspace(0, 1, GRID), method="higher"), 0.0))
        place = group * len(edges) + np.searchsorted(edges, gap)
        for d, truth in enumerate(human):
            sure, tied = ((sign == truth) & (sign != 0)) * weight, (truth == 0) * weight
            gains = np.bincount(place, tied - sure, count * len(edges)).reshape(count, len(edges)).cumsum(axis=1)
            best = (weights @ gains).max(axis=1) + weights @ np.bincount(group, sure, count)
            out[:, m, d] = best / np.maximum(weights.sum(axis=1), 1e-12)
    return np.asarray(out[1:] - out[0])


def accuracy_at(x: Array, y: Array, epsilon: Array, times: Array) -> Array:
    """Pairwise accuracy in every draw (first axis) with a given tie threshold; `times` (draws × units) are weights."""
    i, j = np.triu_indices(x.shape[1], 1)
    pairs = times[:, i] * times[:, j]
    mass = pairs.sum(axis=1)
    difference, truth = x[:, i] - x[:, j], np.sign(y[:, i] - y[:, j])
    out = np.empty((len(x), x.shape[2], y.shape[2]))
    for m in range(x.shape[2]):
        gap = difference[:, :, m]
        for d in range(y.shape[2]):
            right = np.where(np.abs(gap) <= epsilon[m, d], truth[:, :, d] == 0, np.sign(gap) == truth[:, :, d])
            out[:, m, d] = np.where(mass > 0, (pairs * right).sum(axis=1) / np.maximum(mass, 1e-12), np.nan)
    return out


def soft_accuracy(x: Array, y: Array, item: Index, system: Index, signs: Array | None = None) -> Array | None:
    """Soft pairwise accuracy of every pair of systems (systems × systems × metrics × dimensions; Thompson et al. 2024).

    1 - |p of people - p of the metric|, where p says how sure it is that the first system is better: the share of
    random exchanges of the two systems' outputs that reach their difference. Mean over pairs: soft pairwise accuracy.
    None where systems share no items. `signs` (draws × items of ±1) fixes the exchanges."""
    cells = _cells(item, system)
    if cells is None:
        return None
    random = np.random.default_rng(4).integers(0, 2, size=(SOFT_DRAWS, cells.shape[1])) * 2.0 - 1.0
    used: Array = random.astype(np.float64) if signs is None else signs
    p_x, p_y = _exchange_shares(x[cells], used), _exchange_shares(y[cells], used)
    return np.asarray(1 - np.abs(p_x[..., :, None] - p_y[..., None, :]))


def soft_draws(x: Array, y: Array, item: Index, system: Index, weights: Array) -> Array:
    """How much the soft pairwise accuracy changes in every draw (draws × metrics × dimensions), for its spread: the
    shares of exchanges are taken as normal around the drawn leads."""
    from scipy.special import ndtr

    cells = _cells(item, system)
    if cells is None:
        return np.full((len(weights), x.shape[1], y.shape[1]), np.nan)
    values = np.concatenate([x[cells], y[cells]], axis=2)  # systems × items × columns
    i, j = np.triu_indices(len(cells), 1)
    spread = np.sqrt(((values[i] - values[j]) ** 2).sum(axis=1))
    spread = np.where(spread > 0, spread, 1e-12)
    out = np.empty((len(weights) + 1, x.shape[1], y.shape[1]))
    every = np.concatenate([np.ones((1, weights.shape[1])), weights])
    step = max(1, 2_000_000 // (cells.size + len(i) * values.shape[2]))
    for start in range(0, len(every), step):
        drawn = every[start : start + step][:, cells]
        mass = np.maximum(drawn.sum(axis=2), 1e-12)[..., None]
        means = np.einsum("bsn,snk->bsk", drawn, values) / mass
        p = ndtr(-(means[:, i] - means[:, j]) * cells.shape[1] / spread)
        for m in range(x.shape[1]):
            for d in range(y.shape[1]):
                apart = np.abs(p[:, :, m] - p[:, :, x.shape[1] + d])
                out[start : start + step, m, d] = 1 - apart.mean(axis=1)
    return np.asarray(out[1:] - out[0])


def pair_verdicts(x: Array, y: Array, group: Index, system: Index, level: str) -> tuple[Array, Index]:
    """For two metrics, pair by pair: the first's verdict right minus the second's, times the pair's weight (each with
    its own best tie threshold); and the group that each pair belongs to (group level; else 0)."""
    if level == "system":
        columns = np.column_stack([x, y[:, 0]])
        means = np.stack([np.bincount(system, c) / np.bincount(system) for c in columns.T], axis=1)
        means = merge_ties(means, ROUNDING * np.abs(columns).max(axis=0))
        x, y = means[:, :2], means[:, 2:]
    pairs = pairs_within(group) if level == "group" else all_pairs(len(x))
    epsilon = calibrated_accuracy(x, y, pairs).epsilon[:, 0]
    truth = np.sign(y[pairs.i, 0] - y[pairs.j, 0])
    gap = x[pairs.i] - x[pairs.j]
    right = np.where(np.abs(gap) <= epsilon, truth[:, None] == 0, np.sign(gap) == truth[:, None])
    within = group[pairs.i] if level == "group" else np.zeros(len(pairs.i), dtype=np.int64)
    return (right[:, 0].astype(np.float64) - right[:, 1]) * pairs.weight, within


SOFT_DRAWS = 1000


def _cells(item: Index, system: Index) -> Index | None:
    """systems × items: the record of each; only items that all systems have once."""
    count = int(system.max()) + 1
    place: dict[int, dict[int, list[int]]] = {}
    for k, (i, s) in enumerate(zip(item.tolist(), system.tolist(), strict=True)):
        place.setdefault(i, {}).setdefault(s, []).append(k)
    columns = []
    for found in place.values():
        depth = min((len(found.get(s, ())) for s in range(count)), default=0)
        columns += [[found[s][k] for s in range(count)] for k in range(depth)]
    return np.array(columns, dtype=np.int64).T if len(columns) > 1 else None


def _exchange_shares(values: Array, signs: Array) -> Array:
    """systems × systems × columns: how many exchanges give the first system at least its own lead over the second."""
    moved = np.einsum("bn,snk->bsk", signs, values)
    total = values.sum(axis=1)
    count = len(values)
    out = np.empty((count, count, values.shape[2]))
    for i in range(count):
        lead = total[i] - total
        tolerance = 1e-9 * np.abs(values).sum(axis=1).max(axis=0, initial=1e-12)
        out[i] = (moved[:, [i]] - moved >= lead - tolerance).mean(axis=0)
    return out
