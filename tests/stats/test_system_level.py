"""Variances at system level against exact ones."""

from __future__ import annotations

import numpy as np
import pytest

from elench.stats.levels import Block, estimate
from elench.stats.resampling import Drawing, Replicates, spread

N = 10


def test_the_jackknife_of_kendalls_tau_is_not_inflated() -> None:
    """Independent rankings: var(tau) = 2 (2n + 5) / (9 n (n - 1)) (Kendall 1938). A plain jackknife over ten systems
    gives a third too much."""
    rng = np.random.default_rng(0)
    system = np.arange(N)
    drawing = Drawing("systems", 1 - np.eye(N), system, jackknife=True)
    metrics = rng.normal(size=(N, 3000))
    block = Block(metrics, rng.normal(size=(N, 1)), system, np.zeros(N, dtype=np.int64), system)
    found = estimate("system", block, "kendall-b", [drawing])
    variance = Replicates(found.replicates[0], np.full((3000, 1), N), jackknife=True).variance()
    assert variance.mean() == pytest.approx(2 * (2 * N + 5) / (9 * N * (N - 1)), rel=0.12)


def test_degrees_of_freedom_belong_to_the_variance_in_use() -> None:
    """Items 1 (40 units), systems 2 (20 units), records 1 taken off once: total 2, so Satterthwaite has
    2² / (1² / 39 + 2² / 19)."""

    def draws(variance: float, units: int, sign: int = 1) -> Replicates:
        sample = np.random.default_rng(0).normal(size=500)
        scaled = (sample - sample.mean()) / sample.std(ddof=1) * np.sqrt(variance * (units - 1) / units)
        return Replicates(scaled, np.array(units), sign=sign)

    error, freedom = spread([draws(1, 40), draws(2, 20), draws(1, 800, -1)])
    assert error**2 == pytest.approx(2) and freedom == pytest.approx(4 / (1 / 39 + 4 / 19))
