"""Draws of units as rows of counts, and standard errors, intervals and p-values from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.stats.resampling_plan import FEWEST_UNITS, Ints, ResamplingPlan

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Drawing:
    """How often each unit of one kind counts in each replicate."""

    kind: str
    """groups, systems or records"""
    times: Array
    """replicates × units"""
    unit: Ints
    """Each record's unit"""
    jackknife: bool = False
    """Each replicate leaves one unit out (else: a bootstrap draw)"""
    sign: int = 1
    """-1: its variance is counted in two other drawings and is taken off once"""

    def weights(self, rows: Ints) -> Array:
        """replicates × records"""
        return self.times[:, self.unit[rows]]


def drawings(plan: ResamplingPlan, draws: int, seed: int) -> list[Drawing]:
    """What the plan draws: groups by bootstrap, systems (often few) by leaving out one at a time. For both together the
    variance of single records is taken off, which the two share (Cameron, Gelbach & Miller 2011)."""
    if "systems" in plan.over and plan.systems < 3:
        raise UsageError(f"cannot resample systems: only {plan.systems} in these records; resample items")
    found = []
    if "groups" in plan.over:
        found.append(Drawing("groups", counts(np.random.default_rng(seed), draws, plan.groups), plan.group))
    if "systems" in plan.over:
        found.append(Drawing("systems", 1 - np.eye(plan.systems), plan.system, jackknife=True))
    if len(found) == 2:
        n = len(plan.group)
        times = counts(np.random.default_rng([seed, 1]), max(100, draws // 4), n)
        found.append(Drawing("records", times, np.arange(n), sign=-1))
    return found


@dataclass(frozen=True)
class Replicates:
    """Replicates of some coefficients under one drawing (first axis: replicates)."""

    values: Array
    units: Ints
    """How many units the records of each coefficient have"""
    jackknife: bool = False
    sign: int = 1

    def variance(self) -> Array:
        """NaN where too many replicates are undefined."""
        finite = np.isfinite(self.values)
        count = finite.sum(axis=0)
        mean = np.where(finite, self.values, 0.0).sum(axis=0) / np.maximum(count, 1)
        squares = np.where(finite, (self.values - mean) ** 2, 0.0).sum(axis=0)
        units = np.maximum(self.units, 2)
        if self.jackknife:
            return np.where((self.units >= FEWEST_UNITS) & (count >= self.units), squares * (units - 1) / units, np.nan)
        enough = (count >= max(2, len(self.values) / 2)) & (self.units >= FEWEST_UNITS)
        return np.where(enough, squares / np.maximum(count - 1, 1) * units / (units - 1), np.nan)


def counts(rng: np.random.Generator, draws: int, units: int) -> Array:
    """How often each of the units is drawn (draws × units) when as many are drawn with replacement."""
    drawn = rng.integers(0, units, size=(draws, units)) + units * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=draws * units).reshape(draws, units).astype(np.float64)


def blocks(draws: int, units: int) -> list[int]:
    """Draws in blocks that keep memory bounded however many units there are."""
    size = max(1, min(draws, 5_000_000 // max(units, 1)))
    return [min(size, draws - at) for at in range(0, draws, size)]


def exchanges(draws: int, units: int, seed: int = 0) -> Iterator[Array]:
    """Which units are exchanged (draws × units of 0 and 1): all 2^units ways where these are no more than the draws."""
    if every_exchange(draws, units):
        yield ((np.arange(2**units)[:, None] >> np.arange(units)) & 1).astype(np.float64)
        return
    rng = np.random.default_rng(seed)
    for size in blocks(draws, units):
        yield rng.integers(0, 2, size=(size, units)).astype(np.float64)


def every_exchange(draws: int, units: int) -> bool:
    """Are there so few units that every exchange is tried?"""
    return units <= 30 and 2**units <= draws


def exchange_p(extreme: int, draws: int, units: int) -> float:
    """The p-value when `extreme` exchanges are at least as extreme as the data: exact if all were tried, else with +1
    above and below, because the data are one of the possible exchanges."""
    return extreme / 2**units if every_exchange(draws, units) else (extreme + 1) / (draws + 1)


def enough_draws(draws: int, tests: int, alpha: float) -> int:
    """At least five times as many as Holm over all tests needs before any p-value can fall below alpha.

    A p-value is at least 1 / (draws + 1): with 105 pairs and 2,000 draws no difference could ever be significant."""
    return max(draws, math.ceil(5 * tests / max(alpha, 1e-6)))


def interval(
    value: Array, parts: Sequence[Replicates], level: float = 0.95, scale: str = "fisher"
) -> tuple[Array, Array]:
    """Confidence limits: standard error on Fisher's z (or the logit) scale, t quantile of units - 1.

    On that scale the coefficients are close to normal, so this keeps its coverage with a dozen units, where percentile
    limits do not (benchmarks/calibration.py). NaN where the replicates leave nothing to estimate a spread from."""
    from scipy.stats import t

    error, freedom = spread([moved(part, scale) for part in parts])
    usable = np.isfinite(error) & np.isfinite(value) & (error > 0)
    centre = outward(np.where(usable, value, 0.5), scale)
    reach = np.where(usable, error * t.ppf((1 + level) / 2, freedom), 0.0)
    back = np.tanh if scale == "fisher" else _expit
    return np.where(usable, back(centre - reach), np.nan), np.where(usable, back(centre + reach), np.nan)


def difference_p(gap: Array, parts: Sequence[Replicates]) -> Array:
    """Two-sided p that a difference on the `outward` scale is zero, from its standard error (t, units - 1).

    Unlike a count of draws it can fall below 1 / draws, which a correction over hundreds of pairs needs. 1 where
    nothing can be said. A difference that is the same in every draw has the p-value of as many equal signs."""
    from scipy.stats import t

    error, freedom = spread(parts)
    units = np.min([part.units for part in parts if part.sign > 0], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.where(error > 1e-9, 2 * t.sf(np.abs(gap) / error, freedom), 2.0 ** (1 - units))
        p = np.where(np.isfinite(error), p, np.nan)
    return np.where(np.isfinite(p) & (np.abs(gap) > 1e-12), p, 1.0)


def moved(part: Replicates, scale: str) -> Replicates:
    """The same on the scale on which coefficients are close to normal."""
    return Replicates(outward(part.values, scale), part.units, part.jackknife, part.sign)


def outward(values: Array, scale: str = "fisher") -> Array:
    """Correlations to Fisher's z, accuracies to log odds."""
    if scale == "fisher":
        return np.arctanh(np.clip(values, -1 + 1e-12, 1 - 1e-12))
    odds = np.clip(values, 1e-9, 1 - 1e-9)
    return np.log(odds / (1 - odds))


def spread(parts: Sequence[Replicates]) -> tuple[Array, Array]:
    """Standard error and degrees of freedom (Satterthwaite's where variances add up)."""
    variances = [part.variance() for part in parts]
    total = sum(part.sign * variance for part, variance in zip(parts, variances, strict=True))
    adding = [(v, part.units) for part, v in zip(parts, variances, strict=True) if part.sign > 0]
    most = np.max([v for v, _ in adding], axis=0)
    total = np.maximum(np.asarray(total, dtype=np.float64), most)
    weighed = np.asarray(sum(v**2 / np.maximum(1, units - 1) for v, units in adding))
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(weighed > 0, total**2 / weighed, adding[0][1])
    return np.sqrt(total), np.maximum(freedom, 1.0)


def fisher_interval(value: Array, n: NDArray[np.int64], coefficient: str, level: float = 0.95) -> tuple[Array, Array]:
    """Closed-form limits for independent records: Fisher (r), Bonett & Wright 2000 (rho), Fieller et al. 1957 (tau).

    NaN where there are too few records for them (3, for tau 4)."""
    from scipy.stats import norm

    left = np.asarray(n - (4 if coefficient.startswith("kendall") else 3), dtype=np.float64)
    left = np.where(left > 0, left, np.nan)
    if coefficient == "pearson":
        error = 1 / np.sqrt(left)
    elif coefficient == "spearman":
        error = np.sqrt((1 + value**2 / 2) / left)
    else:
        error = np.sqrt(0.437 / left)
    centre = np.arctanh(np.clip(value, -1 + 1e-12, 1 - 1e-12))
    reach = float(norm.ppf((1 + level) / 2)) * error
    return np.tanh(centre - reach), np.tanh(centre + reach)


def _expit(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))
