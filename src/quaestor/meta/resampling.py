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
    """draws × items: how often each item (group of records) was drawn; ones if items are not resampled"""
    systems: Array
    """draws × systems, likewise"""
    item_of: NDArray[np.int64]
    system_of: NDArray[np.int64]
    units: int
    """How many units are resampled: the smaller number when both are."""


def resample(
    items: Sequence[Hashable], systems: Sequence[Hashable], over: str = "items", draws: int = 1000, seed: int = 0
) -> Resamples:
    """Draw items (records of one context stay together), systems, or both, with replacement."""
    rng = np.random.default_rng(seed)
    item_of, system_of = codes(items), codes(systems)
    n_items, n_systems = int(item_of.max()) + 1, int(system_of.max()) + 1
    if over not in ("items", "systems", "both"):
        raise UsageError(f"cannot resample {over!r}: choose items, systems or both")
    if over != "items" and n_systems < 3:
        raise UsageError(f"cannot resample systems: only {n_systems} in these records; resample items")
    drawn_items = _counts(rng, draws, n_items) if over != "systems" else np.ones((draws, n_items))
    drawn_systems = _counts(rng, draws, n_systems) if over != "items" else np.ones((draws, n_systems))
    units = {"items": n_items, "systems": n_systems, "both": min(n_items, n_systems)}[over]
    weights = drawn_items[:, item_of] * drawn_systems[:, system_of]
    return Resamples(weights, drawn_items, drawn_systems, item_of, system_of, units)


def codes(labels: Sequence[Hashable]) -> NDArray[np.int64]:
    """Labels as 0, 1, 2 … in order of appearance."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(label, len(seen)) for label in labels], dtype=np.int64)


def _counts(rng: np.random.Generator, draws: int, units: int) -> Array:
    return rng.multinomial(units, np.full(units, 1 / units), size=draws).astype(np.float64)


def interval(value: Array, draws: Array, units: int, level: float = 0.95, scale: str = "fisher") -> tuple[Array, Array]:
    """Confidence limits: bootstrap standard error on Fisher's z (or the logit) scale, t quantile of units - 1.

    On that scale the coefficients are close to normal, so this keeps its coverage with a dozen units, where percentile
    limits do not (benchmarks/meta_calibration.py). NaN where the draws leave nothing to estimate a spread from."""
    from scipy.stats import t

    error = _spread(outward(draws, scale), units)
    usable = np.isfinite(error) & np.isfinite(value) & (units > 1)
    centre = outward(np.where(usable, value, 0.5), scale)
    reach = np.where(usable, error, 0.0) * float(t.ppf((1 + level) / 2, max(1, units - 1)))
    back = np.tanh if scale == "fisher" else _expit
    return np.where(usable, back(centre - reach), np.nan), np.where(usable, back(centre + reach), np.nan)


def difference_p(gap: Array, gaps: Array, units: int) -> Array:
    """Two-sided p that a difference on the `outward` scale is zero, from its bootstrap standard error (t, units - 1).

    Unlike a count of draws it can fall below 1 / draws, which a correction over hundreds of pairs needs."""
    from scipy.stats import t

    error = _spread(gaps, units)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * t.sf(np.abs(gap) / error, max(1, units - 1))
    return np.where(np.isfinite(p), p, 1.0)


def outward(values: Array, scale: str = "fisher") -> Array:
    """Correlations to Fisher's z, accuracies to log odds."""
    if scale == "fisher":
        return np.arctanh(np.clip(values, -1 + 1e-12, 1 - 1e-12))
    odds = np.clip(values, 1e-9, 1 - 1e-9)
    return np.log(odds / (1 - odds))


def _spread(moved: Array, units: int) -> Array:
    """Standard error from draws (first axis); NaN where more than half of them are undefined."""
    finite = np.isfinite(moved)
    count = finite.sum(axis=0)
    mean = np.where(finite, moved, 0.0).sum(axis=0) / np.maximum(count, 1)
    variance = np.where(finite, (moved - mean) ** 2, 0.0).sum(axis=0) / np.maximum(count - 1, 1)
    error = np.sqrt(variance * units / max(1, units - 1))
    return np.where(count >= max(2, len(moved) / 2), error, np.nan)


def fisher_interval(value: Array, n: NDArray[np.int64], coefficient: str, level: float = 0.95) -> tuple[Array, Array]:
    """Closed-form limits for independent records: Fisher (r), Bonett & Wright 2000 (rho), Fieller et al. 1957 (tau)."""
    from scipy.stats import norm

    n = np.maximum(n, 5)
    if coefficient == "pearson":
        error = 1 / np.sqrt(n - 3)
    elif coefficient == "spearman":
        error = np.sqrt((1 + value**2 / 2) / (n - 3))
    else:
        error = np.sqrt(0.437 / (n - 4))
    centre = np.arctanh(np.clip(value, -1 + 1e-12, 1 - 1e-12))
    reach = float(norm.ppf((1 + level) / 2)) * error
    return np.tanh(centre - reach), np.tanh(centre + reach)


def _expit(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))
