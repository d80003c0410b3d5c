"""Few ratings and many scores: system means with narrower intervals, and how many ratings a study needs.

Prediction-powered estimation (Angelopoulos et al. 2023): the metric's mean over all outputs, corrected by what it gets
wrong on the rated ones (the rectifier). A bad metric cannot bias the result, it only fails to narrow the interval.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.stats.correlation import JudgementTable
from elench.stats.resampling_plan import FEWEST_UNITS, Ints, codes

Array = NDArray[np.float64]
FEWEST = FEWEST_UNITS
"""Fewer rated outputs (or groups of them) than this give no interval."""


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
    """Why there is no value, or no interval"""


def prediction_powered(
    human: Array | Sequence[float | None],
    scores: Array | Sequence[float | None],
    *,
    groups: Sequence[Hashable] | None = None,
    weight: float | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean rating of one system. `human` has a gap (NaN or None) where an output was not rated; `scores` has none.

        theta = mean(rating - lambda score | rated) + lambda mean(score | all)

    `weight` fixes lambda. By default it is the slope of ratings on scores (PPI++), for each rated group the slope of
    the *other* groups: so the choice of lambda cannot bias the mean. Outputs must have been chosen for rating at
    random; where whole groups were chosen (all outputs of a source), give `groups`. Interval: jackknife over groups,
    t."""
    y, f = _numbers(human), _numbers(scores)
    if y.shape != f.shape:
        raise UsageError(f"{len(y)} ratings and {len(f)} scores: give one of each per output, None where not rated")
    unit = np.arange(len(y)) if groups is None else codes(list(groups))
    has = np.isfinite(y)
    alone, alone_error, alone_freedom = _mean_and_error(y[has], unit[has])
    usable = np.isfinite(f)
    y, f, unit = y[usable], f[usable], unit[usable]
    rated = np.isfinite(y)
    n, total = int(rated.sum()), len(f)
    own_units = codes(unit[rated].tolist())
    count = int(own_units.max(initial=-1)) + 1
    if count < FEWEST:
        what = "outputs" if count == n else "groups of outputs"
        reason = f"only {count} {what} have both a rating and a score (at least {FEWEST} needed)"
        return Estimate(None, None, None, n, total, 0.0, None, None, None, None, reason)
    own, seen = y[rated], f[rated]
    flat = float(np.ptp(seen)) <= 1e-12 * max(1.0, float(np.abs(seen).max())) or float(np.ptp(own)) == 0
    tuned = weight is None and not flat
    used = weight if weight is not None else (0.0 if flat else _slope(own, seen))
    if tuned:
        value, error = _cross_fitted(own, seen, own_units, f, unit[rated], unit)
    else:
        rest, error, _ = _mean_and_error(own - used * seen, own_units)
        value = rest + used * float(f.mean())
    of_all = used * _mean_and_error(f, unit)[1]  # also where every output is rated: outputs are a sample themselves
    if not tuned:  # the rated are part of all
        of_all = math.sqrt(max(0.0, of_all**2 + 2 * used * _covariance(own - used * seen, seen, own_units) * n / total))
    spread = math.hypot(error, of_all)
    plain = _mean_and_error(own, own_units)[1]
    if float(np.ptp(own)) == 0:
        reason = "all ratings are equal: their spread cannot be estimated"
        return Estimate(value, None, None, n, total, used, alone, None, None, None, reason)
    low, high = _limits(value, spread, count - (2 if tuned else 1), level)
    alone_low, alone_high = _limits(alone, alone_error, alone_freedom, level)
    worth = (plain / spread) ** 2 if spread > 0 else None
    return Estimate(value, low, high, n, total, used, alone, alone_low, alone_high, worth, None)


def _slope(y: Array, f: Array) -> float:
    centred = f - f.mean()
    square = float((centred**2).sum())
    return float((centred * y).sum() / square) if square > 0 else 0.0


def _cross_fitted(y: Array, f: Array, unit: Ints, all_f: Array, names: Ints, all_names: Ints) -> tuple[float, float]:
    """The mean with each group's lambda taken from the others, and its standard error by leaving out groups.

    For a group the metric's mean is taken over the outputs that no *other* rated group has, so that under random choice
    of groups every term has the right expectation."""
    total = 0.0
    without = []
    count = int(unit.max()) + 1
    centre = float(all_f.mean())
    chosen = np.isin(all_names, names)
    for c in range(count):
        here = unit == c
        slope = _slope(y[~here], f[~here])
        free = ~chosen | (all_names == names[here][0])
        total += float((y[here] - slope * (f[here] - all_f[free].mean())).sum())
        without.append(float(y[~here].mean() - slope * (f[~here].mean() - centre)))
    spread = (count - 1) / count * float(((np.array(without) - np.mean(without)) ** 2).sum())
    return total / len(y), math.sqrt(spread)


def _mean_and_error(values: Array, unit: Ints) -> tuple[float, float, int]:
    """Mean, its standard error over groups, and degrees of freedom."""
    if not len(values):
        return math.nan, math.nan, 0
    groups = codes(unit.tolist())
    count = int(groups.max()) + 1
    mean = float(values.mean())
    sums = np.bincount(groups, values - mean)
    square = float((sums**2).sum()) / len(values) ** 2
    return mean, math.sqrt(square * count / max(1, count - 1)), count - 1


def _covariance(a: Array, b: Array, unit: Ints) -> float:
    """Of two means over the same groups."""
    first, second = np.bincount(unit, a - a.mean()), np.bincount(unit, b - b.mean())
    count = len(first)
    return float((first * second).sum()) / len(a) ** 2 * count / max(1, count - 1)


def _limits(value: float, error: float, freedom: int, level: float) -> tuple[float, float]:
    from scipy.stats import t

    reach = float(t.ppf((1 + level) / 2, max(1, freedom))) * error
    return value - reach, value + reach


def system_means(table: JudgementTable, metric: str, dimension: str) -> dict[str, Estimate]:
    """Prediction-powered mean of every system of a table, best first; groups that were rated together stay together."""
    scores, human = table.scores[:, table.metrics.index(metric)], table.human[:, table.dimensions.index(dimension)]
    systems = [system or "(no system)" for system in table.systems]
    groups = [k if group is None else group for k, group in enumerate(table.groups)]
    found = {}
    for name in dict.fromkeys(systems):
        rows = [k for k, system in enumerate(systems) if system == name]
        found[name] = prediction_powered(human[rows], scores[rows], groups=[groups[k] for k in rows])
    return dict(sorted(found.items(), key=lambda pair: -(pair[1].value if pair[1].value is not None else -math.inf)))


class RatingsNeeded(NamedTuple):
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
    comparisons: int = 1,
    per_group: float = 1.0,
    same_group: float = 0.0,
    power: float = 0.8,
    alpha: float = 0.05,
) -> RatingsNeeded:
    """Outputs to rate per system so that a true difference between two systems is found with the given power.

    `deviation` is the standard deviation of ratings, `correlation` the metric's with ratings (segment level), `outputs`
    how many scored outputs a system has (None: no end), `same_items` the correlation of the two systems' ratings on
    the same item (0 if they are rated on different items), `comparisons` how many pairs are tested together (Holm's
    first step), `per_group` and `same_group` how many ratings a group has and how much differences within a group
    resemble each other (intraclass correlation). Normal approximation, two-sided."""
    from scipy.stats import norm

    if not (0 < difference < math.inf and 0 < deviation < math.inf and comparisons >= 1 and per_group >= 1):
        raise UsageError("difference and deviation must be greater than 0, comparisons and per_group at least 1")
    shares = (correlation, same_items, same_group)
    if not (all(-1 < share < 1 for share in shares) and 0 < power < 1 and 0 < alpha < 1):
        raise UsageError("correlations lie between -1 and 1, power and alpha between 0 and 1")
    reach = float(norm.ppf(1 - alpha / comparisons / 2) + norm.ppf(power))
    clustering = 1 + (per_group - 1) * max(0.0, same_group)
    # the variance that one mean may have, in units of one rating's
    wanted = (difference / reach) ** 2 / (2 * deviation**2 * (1 - same_items) * clustering)
    alone = math.ceil(1 / wanted - 1e-9)
    left = wanted - (correlation**2 / outputs if outputs else 0.0)
    if left <= 0:
        return RatingsNeeded(None, alone, f"{outputs} scored outputs per system are too few at any number of ratings")
    needed = math.ceil((1 - correlation**2) / left - 1e-9)
    if outputs is not None and needed > outputs:
        return RatingsNeeded(None, alone, f"{needed} ratings per system would be needed, there are {outputs} outputs")
    return RatingsNeeded(max(needed, FEWEST), alone, None)


def _numbers(values: Array | Sequence[float | None]) -> Array:
    try:
        column = np.array([math.nan if v is None else v for v in values], dtype=np.float64)
    except (TypeError, ValueError):
        column = np.empty((0, 0))
    if column.ndim != 1:
        raise UsageError("ratings and scores must be plain lists of numbers")
    return column
