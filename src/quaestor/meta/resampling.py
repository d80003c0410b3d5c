"""Bootstrap draws as rows of counts, and intervals from them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from quaestor.errors import UsageError

Array = NDArray[np.float64]


class Resamples(NamedTuple):
    """How often each record counts in each draw."""

    weights: Array
    """draws × records"""
    items: Array
    """draws × items: how often each item (group of records) was drawn; ones if systems are resampled"""
    systems: Array
    """draws × systems, likewise"""
    item_of: NDArray[np.int64]
    system_of: NDArray[np.int64]
    units: int
    """How many units are resampled"""


class Part(NamedTuple):
    """Draws of some coefficients under one kind of resampling (first axis: draws)."""

    draws: Array
    units: int


def resample(
    items: Sequence[Hashable], systems: Sequence[Hashable], over: str = "items", draws: int = 1000, seed: int = 0
) -> Resamples:
    """Draw items (records of one context stay together) or systems with replacement."""
    rng = np.random.default_rng(seed)
    item_of, system_of = codes(items), codes(systems)
    n_items, n_systems = int(item_of.max()) + 1, int(system_of.max()) + 1
    if over not in ("items", "systems"):
        raise UsageError(f"cannot resample {over!r}: choose items, systems or both")
    if over == "systems" and n_systems < 3:
        raise UsageError(f"cannot resample systems: only {n_systems} in these records; resample items")
    if over == "items":
        drawn = counts(rng, draws, n_items)
        return Resamples(drawn[:, item_of], drawn, np.ones((draws, n_systems)), item_of, system_of, n_items)
    drawn = counts(rng, draws, n_systems)
    return Resamples(drawn[:, system_of], np.ones((draws, n_items)), drawn, item_of, system_of, n_systems)


def codes(labels: Sequence[Hashable]) -> NDArray[np.int64]:
    """Labels as 0, 1, 2 … in order of appearance."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)


def counts(rng: np.random.Generator, draws: int, units: int) -> Array:
    """How often each of the units is drawn (draws × units) when as many are drawn with replacement."""
    drawn = rng.integers(0, units, size=(draws, units)) + units * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=draws * units).reshape(draws, units).astype(np.float64)


def interval(value: Array, parts: Sequence[Part], level: float = 0.95, scale: str = "fisher") -> tuple[Array, Array]:
    """Confidence limits: bootstrap standard error on Fisher's z (or the logit) scale, t quantile of units - 1.

    On that scale the coefficients are close to normal, so this keeps its coverage with a dozen units, where percentile
    limits do not (benchmarks/meta_calibration.py). The variances of several parts (items, systems) add up.
    NaN where the draws leave nothing to estimate a spread from."""
    from scipy.stats import t

    error, freedom = _spread([Part(outward(part.draws, scale), part.units) for part in parts])
    usable = np.isfinite(error) & np.isfinite(value)
    centre = outward(np.where(usable, value, 0.5), scale)
    reach = np.where(usable, error * t.ppf((1 + level) / 2, freedom), 0.0)
    back = np.tanh if scale == "fisher" else _expit
    return np.where(usable, back(centre - reach), np.nan), np.where(usable, back(centre + reach), np.nan)


def difference_p(gap: Array, gaps: Sequence[Part]) -> Array:
    """Two-sided p that a difference on the `outward` scale is zero, from its bootstrap standard error (t, units - 1).

    Unlike a count of draws it can fall below 1 / draws, which a correction over hundreds of pairs needs."""
    from scipy.stats import t

    error, freedom = _spread(gaps)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * t.sf(np.abs(gap) / error, freedom)
    return np.where(np.isfinite(p), p, 1.0)


def outward(values: Array, scale: str = "fisher") -> Array:
    """Correlations to Fisher's z, accuracies to log odds."""
    if scale == "fisher":
        return np.arctanh(np.clip(values, -1 + 1e-12, 1 - 1e-12))
    odds = np.clip(values, 1e-9, 1 - 1e-9)
    return np.log(odds / (1 - odds))


def _spread(parts: Sequence[Part]) -> tuple[Array, Array]:
    """Standard error and degrees of freedom (Satterthwaite's where variances add up); NaN where more than half of the
    draws are undefined."""
    total: Array = np.zeros(parts[0].draws.shape[1:])
    weighed: Array = np.zeros_like(total)
    for moved, units in parts:
        finite = np.isfinite(moved)
        count = finite.sum(axis=0)
        mean = np.where(finite, moved, 0.0).sum(axis=0) / np.maximum(count, 1)
        squares = np.where(finite, (moved - mean) ** 2, 0.0).sum(axis=0)
        variance = squares / np.maximum(count - 1, 1) * units / max(1, units - 1)
        variance = np.where((count >= max(2, len(moved) / 2)) & (units > 1), variance, np.nan)
        total, weighed = total + variance, weighed + variance**2 / max(1, units - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(weighed > 0, total**2 / weighed, parts[0].units)
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
