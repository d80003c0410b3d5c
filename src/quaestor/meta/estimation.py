"""Few ratings and many scores: unbiased system means with narrower intervals, and how many ratings a study needs.

Prediction-powered estimation (Angelopoulos et al. 2023): the metric's mean over all outputs, corrected by what it gets
wrong on the rated ones (the rectifier). A bad metric cannot bias the result, it only fails to narrow the interval.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from quaestor.errors import UsageError
from quaestor.meta.judgements import Judgements

Array = NDArray[np.float64]
FEWEST = 5
"""Fewer ratings than this give no interval."""


class Estimate(NamedTuple):
    """A mean rating, estimated from the ratings of some outputs and the scores of all."""

    value: float | None
    low: float | None
    high: float | None
    rated: int
    scored: int
    weight: float
    """Lambda: how much of the metric is used; 0 is the ratings alone."""
    alone: float | None
    """The mean of all ratings, those of outputs without a score too, with its interval"""
    alone_low: float | None
    alone_high: float | None
    worth: float | None
    """How many ratings without the metric would give the same width, per rating"""
    reason: str | None


def prediction_powered(human: Any, scores: Any, *, weight: float | None = None, level: float = 0.95) -> Estimate:
    """The mean rating of one system. `human` has a gap (NaN or None) where an output was not rated; `scores` has none.

        theta = mean(rating - lambda score | rated) + lambda mean(score | all)

    `weight` fixes lambda; by default it is tuned to the narrowest interval (PPI++): the slope of ratings on scores.
    Interval: t with the regression estimator's variance. Outputs must have been chosen for rating at random."""
    y, f = _numbers(human), _numbers(scores)
    if y.shape != f.shape:
        raise UsageError(f"{len(y)} ratings and {len(f)} scores: give one of each per output, None where not rated")
    alone = y[np.isfinite(y)]
    usable = np.isfinite(f)
    y, f = y[usable], f[usable]
    rated = np.isfinite(y)
    n, total = int(rated.sum()), len(f)
    if n < FEWEST:
        reason = f"only {n} outputs have both a rating and a score (at least {FEWEST} needed)"
        return Estimate(None, None, None, n, total, 0.0, None, None, None, None, reason)
    own, seen = y[rated], f[rated]
    spread = float(((seen - seen.mean()) ** 2).sum())
    flat = spread <= 1e-12 * max(1.0, float(np.abs(seen).max()) ** 2) or float(np.ptp(own)) == 0
    tuned = weight is None
    slope = 0.0 if flat else float(((seen - seen.mean()) * own).sum() / spread)
    used = slope if weight is None else weight
    shift = float(f.mean() - seen.mean())
    value = float(own.mean() + used * shift)
    rest = own - used * seen
    variance = _variance(rest, used, seen, f, shift, spread, tuned and not flat)
    plain = float(alone.var(ddof=1)) / len(alone)
    low, high = _limits(value, variance, n - (2 if tuned and not flat else 1), level)
    alone_low, alone_high = _limits(float(alone.mean()), plain, len(alone) - 1, level)
    worth = float(own.var(ddof=1)) / n / variance if variance > 0 else None
    return Estimate(value, low, high, n, total, used, float(alone.mean()), alone_low, alone_high, worth, None)


def _variance(rest: Array, used: float, seen: Array, f: Array, shift: float, spread: float, tuned: bool) -> float:
    """Of the mean residual among the rated, plus of the metric's mean over all (the rated are part of all)."""
    n, total = len(rest), len(f)
    if tuned:  # residuals do not correlate with the score; the slope's own error acts through the shift
        residual = float(((rest - rest.mean()) ** 2).sum()) / (n - 2)
        return residual * (1 / n + shift**2 / spread) + used**2 * float(f.var(ddof=1)) / total
    together = float(np.cov(rest, seen, ddof=1)[0, 1])
    of_all = used**2 * float(f.var(ddof=1)) / total if total > 1 else 0.0
    return max(0.0, float(rest.var(ddof=1)) / n + of_all + 2 * used * together / total)


def _limits(value: float, variance: float, freedom: int, level: float) -> tuple[float, float]:
    from scipy.stats import t

    reach = float(t.ppf((1 + level) / 2, max(1, freedom))) * math.sqrt(variance)
    return value - reach, value + reach


def system_means(table: Judgements, metric: str, dimension: str) -> dict[str, Estimate]:
    """Prediction-powered mean of every system of a table, best first."""
    one = table.choose([metric], [dimension])
    systems = [record.system or "(no system)" for record in one.records]
    found = {}
    for name in dict.fromkeys(systems):
        mask = np.array([system == name for system in systems])
        found[name] = prediction_powered(one.human[mask, 0], one.scores[mask, 0])
    return dict(sorted(found.items(), key=lambda pair: -(pair[1].value if pair[1].value is not None else -math.inf)))


class Plan(NamedTuple):
    """How many outputs of each system must be rated."""

    ratings: int | None
    """Per system"""
    alone: int
    """The same without a metric"""
    reason: str | None


def ratings_needed(
    difference: float,
    deviation: float,
    *,
    correlation: float = 0.0,
    outputs: int | None = None,
    same_items: float = 0.0,
    power: float = 0.8,
    alpha: float = 0.05,
) -> Plan:
    """Outputs to rate per system so that a true difference between two systems is found with the given power.

    `deviation` is the standard deviation of ratings, `correlation` the metric's with ratings (segment level), `outputs`
    how many scored outputs a system has (None: no end), `same_items` the correlation of the two systems' ratings on
    the same item (0 if they are rated on different items). Normal approximation, two-sided."""
    from scipy.stats import norm

    if not (0 < difference < math.inf and 0 < deviation < math.inf):
        raise UsageError("difference and deviation must be numbers greater than 0")
    if not (-1 < correlation < 1 and -1 < same_items < 1 and 0 < power < 1 and 0 < alpha < 1):
        raise UsageError("correlation and same_items lie between -1 and 1, power and alpha between 0 and 1")
    reach = float(norm.ppf(1 - alpha / 2) + norm.ppf(power))
    wanted = (difference / reach) ** 2 / (
        2 * deviation**2 * (1 - same_items)
    )  # variance of one mean, in units of one rating's
    alone = math.ceil(1 / wanted - 1e-9)
    left = wanted - (correlation**2 / outputs if outputs else 0.0)
    if left <= 0:
        return Plan(None, alone, f"{outputs} scored outputs per system are too few at any number of ratings")
    needed = math.ceil((1 - correlation**2) / left - 1e-9)
    if outputs is not None and needed > outputs:
        return Plan(None, alone, f"{needed} ratings per system would be needed, there are {outputs} outputs")
    return Plan(max(needed, FEWEST), alone, None)


def _numbers(values: Any) -> Array:
    try:
        column = np.array([math.nan if v is None else v for v in values], dtype=np.float64)
    except (TypeError, ValueError):
        column = np.empty((0, 0))
    if column.ndim != 1:
        raise UsageError("ratings and scores must be plain lists of numbers")
    return column
