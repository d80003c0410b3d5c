"""Wilcoxon's signed-rank test: exact with ties for few pairs, normal with tie correction for many."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

EXACT = 50
"""Up to this many pairs every pattern of signs is counted."""


def signed_rank(gaps: npt.ArrayLike, two_sided: bool = False) -> float:
    """p that the paired differences `gaps` lie above 0 (or, two-sided, away from it) only by chance.

    Zero differences are left out (Wilcoxon's own rule); without any difference p is 1. Under chance every sign is as
    likely as its opposite, so the sum of positive ranks has the distribution of a sum of coin-flipped ranks. With ties
    the middle ranks are halves: doubled, they are whole numbers and the sums can be counted.
    """
    x: NDArray[np.float64] = np.asarray(gaps, dtype=np.float64)
    x = x[x != 0]
    n = len(x)
    if n == 0:
        return 1.0
    _, place, ties = np.unique(np.abs(x), return_inverse=True, return_counts=True)
    upper = np.cumsum(ties)
    doubled = (2 * upper - ties + 1)[place]  # twice the middle rank
    total = int(doubled[x > 0].sum())
    if n <= EXACT:
        ways = np.zeros(int(doubled.sum()) + 1)
        ways[0] = 1.0
        for rank in doubled.tolist():
            shifted = np.zeros_like(ways)
            shifted[rank:] = ways[: len(ways) - rank]
            ways = (ways + shifted) / 2
        above, below = float(ways[total:].sum()), float(ways[: total + 1].sum())
    else:
        mean = n * (n + 1) / 4
        variance = n * (n + 1) * (2 * n + 1) / 24 - float((ties**3 - ties).sum()) / 48
        z = (total / 2 - mean) / math.sqrt(variance)
        above, below = math.erfc(z / math.sqrt(2)) / 2, math.erfc(-z / math.sqrt(2)) / 2
    return min(1.0, 2 * min(above, below)) if two_sided else min(1.0, above)
