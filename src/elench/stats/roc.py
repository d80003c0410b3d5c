"""How well numbers tell two classes apart, and how far probabilities can be believed.

Area under the ROC curve with clusters: its standard error, and the test of two areas on the same records; reliability
curves of probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elench.stats.resampling_plan import FEWEST_UNITS, Ints, codes

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def auc(positives: ArrayLike, negatives: ArrayLike) -> float:
    """The probability that a positive scores above a negative, ties half (Mann–Whitney)."""
    return float(_above(np.asarray(positives), np.asarray(negatives)).mean())


def _above(values: Array, others: Array) -> Array:
    """For each value the share of the others below it, ties half."""
    order = np.sort(others)
    twice = np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right")
    return np.asarray(twice / (2 * len(others)))


def area_and_influence(values: Array, good: Mask, unit: Ints) -> tuple[float, Array]:
    """The area and each unit's influence on it: the sum of its records' placements minus the area, over the number of
    records on their side (DeLong et al. 1988; Obuchowski 1997 for clusters)."""
    positives, negatives = values[good], values[~good]
    area = auc(positives, negatives)
    placed = np.empty(len(values))
    placed[good] = (_above(positives, negatives) - area) / len(positives)
    placed[~good] = (1 - _above(negatives, positives) - area) / len(negatives)
    return area, np.asarray(np.bincount(codes(unit.tolist()), placed), dtype=np.float64)


def area_interval(area: float, influence: Array) -> tuple[float | None, float | None]:
    """95 % limits on the log-odds scale (inside 0 and 1), t with units - 1; None where no spread can be estimated."""
    from scipy.stats import t

    count = len(influence)
    error = np.sqrt(count / max(1, count - 1) * float((influence**2).sum()))
    if count < FEWEST_UNITS or error == 0 or not 0 < area < 1:
        return None, None
    centre = np.log(area / (1 - area))
    reach = error / (area * (1 - area)) * float(t.ppf(0.975, count - 1))
    low, high = (1 / (1 + np.exp(-(centre + side * reach))) for side in (-1, 1))
    return float(low), float(high)


def equal_areas(first: Array, second: Array, good: Mask, unit: Ints) -> float:
    """Two-sided p that two metrics have the same area on the same records; 1 where nothing can be said.

    Two areas whose difference is the same without any unit have the p-value of as many equal signs."""
    from scipy.stats import t

    if not good.any() or good.all():
        return 1.0
    (a, one), (b, two) = (area_and_influence(values, good, unit) for values in (first, second))
    count = len(one)
    error = np.sqrt(count / max(1, count - 1) * float(((one - two) ** 2).sum()))
    if count < FEWEST_UNITS or abs(a - b) <= 1e-12:
        return 1.0
    if error <= 1e-12:
        return float(2.0 ** (1 - count))
    return float(2 * t.sf(abs(a - b) / error, count - 1))


class Bin(NamedTuple):
    """A part of a reliability curve."""

    said: float
    """The mean probability"""
    happened: float
    """How often it happened"""
    n: int


def reliability(chances: ArrayLike, happened: ArrayLike, bins: int = 10) -> list[Bin]:
    """The reliability curve over bins of equal width; empty bins are left out."""
    said, true = np.asarray(chances, dtype=np.float64), np.asarray(happened, dtype=np.float64)
    place = np.minimum((said * bins).astype(int), bins - 1)
    inside = [place == k for k in range(bins) if (place == k).any()]
    return [Bin(float(said[here].mean()), float(true[here].mean()), int(here.sum())) for here in inside]


def calibration_error(curve: Sequence[Bin]) -> float:
    """Expected calibration error (Guo et al. 2017): a curve's mean distance from the diagonal, weighted by n."""
    return sum(abs(part.said - part.happened) * part.n for part in curve) / sum(part.n for part in curve)
