"""P(people prefer A to B | the metric prefers A by so much, on n items), from the systems of a rated file.

Systems differ in the metric and in ratings by amounts that are taken as normal over systems, and each mean of n items
adds noise. So the two differences of a pair are bivariate normal around 0, and

    P(people prefer A | lead) = Phi(lead · beta / sigma),

beta the slope of rating differences on metric differences between system means of n items, sigma the deviation around
it. The covariances come from a two-way fit (item + system) of scores and ratings, which allows outputs without rating.
For more items than were rated the chance is that of as many as were rated: an understatement.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elench.stats.resampling_plan import FEWEST_UNITS, Ints, codes

Array = NDArray[np.float64]
FEWEST_SYSTEMS = 3
"""One pair of systems shows nothing about other pairs."""


class Agreement(NamedTuple):
    """How often people prefer the metric's winner."""

    value: float | None
    low: float | None
    high: float | None
    """95 %: jackknife over the rated systems, t; None below five systems"""
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


def agreement(
    score: Array, human: Array, item: Ints, system: Ints, group: Ints, leads: Array, n: int
) -> list[Agreement]:
    """For each lead on n items; outputs (rows) without score or rating must have been left out."""
    count, items = int(system.max(initial=-1)) + 1, int(item.max(initial=-1)) + 1
    if count < FEWEST_SYSTEMS:
        reason = f"only {count} rated systems share items (at least {FEWEST_SYSTEMS} needed)"
        return [Agreement(None, None, None, count, items, reason) for _ in leads]
    values = np.column_stack([score, human])
    slope, unit = _slope(values, item, system, group, n)
    if slope is None:
        reason = "the rated systems differ by no more than noise in the metric or in ratings"
        return [Agreement(None, None, None, count, items, reason) for _ in leads]
    without = []
    for s in range(count if count >= FEWEST_UNITS else 0):
        kept = system != s
        places = [codes(place[kept].tolist()) for place in (item, system, group)]
        own = _slope(values[kept], places[0], places[1], places[2], n)[0]
        without.append(slope if own is None else own)
    found = [_at(lead, slope, unit, without, count, items) for lead in leads.tolist()]
    if n <= items or count < FEWEST_UNITS:
        return found
    return [one._replace(reason=f"as on {items} items, which are all that were rated") for one in found]


def _at(lead: float, slope: float, unit: float, without: list[float], systems: int, items: int) -> Agreement:
    from scipy.special import ndtr
    from scipy.stats import t

    value = float(ndtr(lead * slope))
    if not without:
        reason = f"no interval: only {systems} rated systems (at least {FEWEST_UNITS} needed)"
        return Agreement(value, None, None, systems, items, reason)
    moved = np.arcsinh(np.array(without) * unit)  # Fisher's z of the correlation of differences
    error = float(np.sqrt((systems - 1) / systems * ((moved - moved.mean()) ** 2).sum()))
    centre, reach = float(np.arcsinh(slope * unit)), float(t.ppf(0.975, systems - 1)) * error
    low, high = (float(ndtr(lead * np.sinh(centre + side * reach) / unit)) for side in (-1, 1))
    return Agreement(value, low, high, systems, items, None)


def _slope(values: Array, item: Ints, system: Ints, group: Ints, n: int) -> tuple[float | None, float]:
    """beta / sigma for differences of two means of n items, and the deviation of such differences of the metric."""
    fit = _fitted(values, item, system, group)
    noise = fit.noise * max(0.0, 1 / n - fit.share)  # taking noise off would make the matrix unstable
    c = 2 * (fit.between + noise)
    small = 1e-12 * np.maximum(1e-12, np.abs(values).max(axis=0) ** 2)
    if c[0, 0] <= small[0] or c[1, 1] <= small[1]:
        return None, 1.0
    rest = max(c[1, 1] - c[0, 1] ** 2 / c[0, 0], 1e-4 * c[1, 1])
    return float(c[0, 1] / c[0, 0] / np.sqrt(rest)), float(np.sqrt(c[0, 0]))


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
    return _Fit(apart.T @ apart / (count - 1), noise / max(share, 1e-12), share)


def _within(columns: Array, item: Ints, size: Array) -> Array:
    means = np.stack([np.bincount(item, c) for c in columns.T], axis=1) / size[:, None]
    return np.asarray(columns - means[item])
