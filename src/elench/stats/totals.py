"""Scores of systems as functions of sums: any resampling is then a product of matrices.

A mean is a sum divided by a count; a corpus score such as BLEU is a function of summed counts. So each group of items
and each system has a row of sums, a draw of groups adds rows up, and a random exchange of two systems' outputs adds
some rows of one to the rest of the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elench.stats.resampling import blocks, counts, exchange_p, exchanges
from elench.stats.resampling_plan import FEWEST_UNITS

Array = NDArray[np.float64]


def mean_of_sums(totals: Array) -> Array:
    """The mean from (sum, count) in the last axis."""
    return np.asarray(totals[..., 0] / np.where(totals[..., 1] == 0, np.nan, totals[..., 1]))


@dataclass(frozen=True)
class Totals:
    """Sums per group and system, and the score they make."""

    sums: Array
    """groups × systems × sums"""
    score: Callable[[Array], Array] = mean_of_sums

    @property
    def units(self) -> int:
        return len(self.sums)

    def values(self) -> Array:
        """The score of each system."""
        return self.score(self.sums.sum(axis=0))

    def influence(self) -> Array:
        """groups × systems: how much each group moves each score (delete-one jackknife)."""
        without = self.score(self.sums.sum(axis=0) - self.sums)
        return np.asarray(without.mean(axis=0) - without)


class Studentised(NamedTuple):
    """An estimate with the bootstrap-t interval over groups."""

    value: float
    error: float | None
    """Standard error (jackknife over groups)"""
    low: float | None
    high: float | None
    p: float | None
    """Two-sided p that the value is 0, by the same draws"""
    reason: str | None


def bootstrap_t(totals: Totals, contrasts: Array, draws: int = 2000, seed: int = 0) -> list[Studentised]:
    """Estimates `contrasts @ scores` (one row each) with symmetric bootstrap-t intervals: every draw of groups is
    divided by its own standard error, which keeps the coverage with few groups, where percentiles of draws do not."""
    n = totals.units
    value = contrasts @ totals.values()
    if n < FEWEST_UNITS:
        reason = f"only {n} items or groups to resample (at least {FEWEST_UNITS} needed)"
        return [Studentised(float(v), None, None, None, None, reason) for v in value]
    influence = totals.influence() @ contrasts.T
    error = np.sqrt((n - 1) / n * (influence**2).sum(axis=0))
    rng = np.random.default_rng(seed)
    moved = [_studentised(totals, contrasts, value, influence, counts(rng, size, n)) for size in blocks(draws, n)]
    ratio = np.abs(np.concatenate(moved))
    quantile = np.quantile(ratio, 0.95, axis=0, method="higher")
    found = []
    for k, v in enumerate(value.tolist()):
        if error[k] <= 1e-12 * max(1.0, abs(v)):
            found.append(
                Studentised(
                    v, 0.0, None, None, None, "the same in every item or group, so there is no spread to estimate"
                )
            )
            continue
        p = (1 + float((ratio[:, k] >= abs(v) / error[k] - 1e-12).sum())) / (draws + 1)
        finite = math.isfinite(quantile[k])
        reach = float(quantile[k] * error[k])
        low, high = (v - reach, v + reach) if finite else (None, None)
        why = None if finite else "too few different items or groups: too many draws show no variation"
        found.append(Studentised(v, float(error[k]), low, high, p, why))
    return found


def _studentised(totals: Totals, contrasts: Array, value: Array, influence: Array, weights: Array) -> Array:
    n = totals.units
    drawn = totals.score(np.tensordot(weights, totals.sums, (1, 0))) @ contrasts.T
    square = weights @ influence**2 - (weights @ influence) ** 2 / n
    flat = square <= 1e-9 * (influence**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = (drawn - value) / np.sqrt((n - 1) / n * square)
    return np.where(flat | ~np.isfinite(ratio), np.inf, ratio)  # a draw without variation counts against significance


def exchange_test(totals: Totals, first: int, second: int, draws: int = 2000, seed: int = 0) -> float:
    """Two-sided p that two systems score alike: whole groups are exchanged between them at random.

    With few groups every exchange is tried and p is exact; else p carries +1, the data being one of the exchanges."""
    return exchange_tests(totals, [(first, second)], draws, seed)[0]


def exchange_tests(totals: Totals, pairs: Sequence[tuple[int, int]], draws: int = 2000, seed: int = 0) -> list[float]:
    """The same for many pairs, all with the same exchanges."""
    values = totals.values()
    observed = [abs(float(values[i] - values[j])) for i, j in pairs]
    extreme = np.zeros(len(pairs), dtype=np.int64)
    for swap in exchanges(draws, totals.units, seed):
        for k, (i, j) in enumerate(pairs):
            a, b = totals.sums[:, i], totals.sums[:, j]
            moved = swap @ (b - a)
            difference = totals.score(a.sum(axis=0) + moved) - totals.score(b.sum(axis=0) - moved)
            extreme[k] += int((~(np.abs(difference) < observed[k] - 1e-12)).sum())
    return [exchange_p(int(count), draws, totals.units) for count in extreme]
