"""P(people prefer A to B | the metric prefers A by so much, on n items), from the systems of a rated file.

Systems differ in the metric and in ratings by amounts that are taken as normal over systems, and each mean of n items
adds noise. So the two differences of a pair are bivariate normal around 0, and

    P(people prefer A | lead) = Phi(lead · beta / sigma),

beta the slope of rating differences on metric differences between system means of n items, sigma the deviation around
it. The covariances come from a two-way fit (item + system) of scores and ratings, which allows outputs without rating.
For more items than were rated the chance is that of as many as were rated: an understatement.

The interval follows from the same normal model: covariance matrices that could have given the estimates are drawn
(Weerahandi 1993). A jackknife over a dozen systems covers too little where the lead was measured on fewer items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elench.stats.resampling_plan import FEWEST_UNITS, Ints

Array = NDArray[np.float64]
FEWEST_SYSTEMS = 3
"""One pair of systems shows nothing about other pairs."""
DRAWS = 4000
"""Covariance matrices drawn for an interval"""


class PreferenceAgreement(NamedTuple):
    """How often people prefer the metric's winner."""

    value: float | None
    low: float | None
    high: float | None
    """95 %: generalised pivotal quantities of the covariances between systems; None below five systems"""
    systems: int
    items: int
    reason: str | None


class _Fit(NamedTuple):
    """Covariance matrices (metric, rating) between systems and of one item's noise."""

    between: Array
    """Of the fitted system effects, noise included"""
    noise: Array
    share: float
    """What part of one item's noise a fitted effect holds: 1 / items where every system has every item"""
    freedom: int
    """Degrees of freedom of the noise"""


def agreement(
    score: Array, human: Array, item: Ints, system: Ints, group: Ints, leads: Array, n: int
) -> list[PreferenceAgreement]:
    """For each lead on n items; outputs (rows) without score or rating must have been left out."""
    count, items = int(system.max(initial=-1)) + 1, int(item.max(initial=-1)) + 1
    if count < FEWEST_SYSTEMS:
        reason = f"only {count} rated systems share items (at least {FEWEST_SYSTEMS} needed)"
        return [PreferenceAgreement(None, None, None, count, items, reason) for _ in leads]
    fit = _fitted(np.column_stack([score, human]), item, system, group)
    small = 1e-12 * np.maximum(1e-12, [np.abs(score).max() ** 2, np.abs(human).max() ** 2])
    if (np.diag(fit.between) <= small).any():
        reason = "the rated systems differ by no more than noise in the metric or in ratings"
        return [PreferenceAgreement(None, None, None, count, items, reason) for _ in leads]
    added = max(0.0, 1 / n - fit.share)  # taking noise off would make the matrix unstable
    slope = float(_slope(fit.between + added * fit.noise))
    limits = None if count < FEWEST_UNITS else _slope_limits(fit, added, count)
    found = [_at(lead, slope, limits, count, items) for lead in leads.tolist()]
    if n <= items or limits is None:
        return found
    return [one._replace(reason=f"as on {items} items, which are all that were rated") for one in found]


def _at(lead: float, slope: float, limits: Array | None, systems: int, items: int) -> PreferenceAgreement:
    from scipy.special import ndtr

    value = float(ndtr(lead * slope))
    if limits is None:
        reason = f"no interval: only {systems} rated systems (at least {FEWEST_UNITS} needed)"
        return PreferenceAgreement(value, None, None, systems, items, reason)
    low, high = (float(ndtr(lead * limit)) for limit in limits)
    return PreferenceAgreement(value, low, high, systems, items, None)


def _slope(covariance: Array) -> Array:
    """beta / sigma for differences of two means; covariances of (metric, rating) in the last two axes."""
    metric, both, rating = (2 * covariance[..., i, j] for i, j in ((0, 0), (0, 1), (1, 1)))
    rest = np.maximum(rating - both**2 / metric, 1e-4 * rating)
    return np.asarray(both / metric / np.sqrt(rest))


def _slope_limits(fit: _Fit, added: float, systems: int) -> Array:
    rng = np.random.default_rng(0)
    between = _pivots(fit.between, systems - 1, rng)
    noise = _pivots(fit.noise, fit.freedom, rng)
    return np.asarray(np.quantile(_slope(between + added * noise), [0.025, 0.975]))


def _pivots(covariance: Array, freedom: int, rng: np.random.Generator) -> Array:
    """Covariance matrices (draws × 2 × 2) that could have given this estimate: generalised pivotal quantities.

    With Cholesky factors, estimate = T U U' T' / freedom, where T T' is the true matrix and U Bartlett's triangle of a
    chi, a normal and a chi; so each draw of U gives a T."""
    u = np.sqrt(rng.chisquare([freedom, freedom - 1], size=(DRAWS, 2)))
    normal = rng.normal(size=DRAWS)
    metric = np.sqrt(freedom * covariance[0, 0])
    both = freedom * covariance[0, 1] / max(metric, 1e-300)
    rating = np.sqrt(max(0.0, freedom * covariance[1, 1] - both**2))
    t = np.zeros((DRAWS, 2, 2))
    t[:, 0, 0], t[:, 1, 1] = metric / u[:, 0], rating / u[:, 1]
    t[:, 1, 0] = (both - rating * normal / u[:, 1]) / u[:, 0]
    return np.asarray(t @ t.transpose(0, 2, 1))


def _fitted(values: Array, item: Ints, system: Ints, group: Ints) -> _Fit:
    count = int(system.max()) + 1
    size = np.bincount(item).astype(np.float64)
    design = np.asarray(system[:, None] == np.arange(count), dtype=np.float64)
    centred = [_within(c, item, size) for c in (design, values)]
    inverse = np.linalg.pinv(centred[0].T @ centred[0], rcond=1e-9, hermitian=True)
    effects = inverse @ centred[0].T @ centred[1]
    rest = centred[1] - centred[0] @ effects
    share = float(np.trace(inverse)) / (count - 1)
    groups = int(group.max()) + 1
    sums = np.zeros((groups, count, 2))
    np.add.at(sums, group, (centred[0] @ inverse)[:, :, None] * rest[:, None, :])
    kept = groups / max(1, groups - 1)  # residuals of groups sum to 0 over groups
    noise = np.einsum("gsa,gsb->ab", sums, sums) * kept / (count - 1)
    apart = effects - effects.mean(axis=0)
    freedom = max(2, (groups - 1) * (count - 1))
    return _Fit(apart.T @ apart / (count - 1), noise / max(share, 1e-12), share, freedom)


def _within(columns: Array, item: Ints, size: Array) -> Array:
    means = np.stack([np.bincount(item, c) for c in columns.T], axis=1) / size[:, None]
    return np.asarray(columns - means[item])
