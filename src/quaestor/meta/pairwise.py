"""Pairwise accuracy: how often a metric orders two outputs as people do, ties included (Deutsch et al. 2023).

    acc_eq = (pairs in the same order + pairs tied by both) / all pairs

A metric with many decimals never ties, people often do. So a difference of at most epsilon counts as a tie of the
metric, and epsilon is the value that makes the accuracy greatest (tie calibration), one per metric and dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.int64]

MOST_PAIRS = 1_500_000
"""Beyond so many pairs a seeded sample of as many is taken (and said)."""


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
        ends = np.append(ordered[1:] != ordered[:-1], True)  # epsilon can only stand at the end of equal gaps
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
