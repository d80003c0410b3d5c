"""Do raters agree, and which ratings are noise? Krippendorff's alpha, z-scores, KPQA's filter, rank pairs.

A rating matrix has one row per rater and one column per item, NaN (or None) where a rater gave nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.records.record import Record
from elench.stats.resampling import counts
from elench.stats.resampling_plan import FEWEST_UNITS, codes

Array = NDArray[np.float64]
RatingMatrix = npt.ArrayLike | Sequence[Sequence[float | None]]
"""Ratings as raters × items; a gap is NaN or None."""
LEVELS = ("nominal", "ordinal", "interval")


class Alpha(NamedTuple):
    """Krippendorff's alpha: 1 is full agreement, 0 what chance gives."""

    value: float | None
    low: float | None
    high: float | None
    items: int
    """Items with at least two ratings; others cannot count."""
    ratings: int
    reason: str | None
    """Why alpha is undefined."""


def krippendorff_alpha(matrix: RatingMatrix, level: str = "interval") -> Alpha:
    """Agreement of raters on a nominal, ordinal or interval scale; gaps are allowed (Krippendorff 2011)."""
    table = _pairable(matrix, level)
    given = int(np.isfinite(table).sum())
    reason = _why_undefined(table)
    if reason:
        return Alpha(None, None, None, table.shape[1], given, reason)
    value = float(_alphas(table, level, np.ones((1, table.shape[1])))[0])
    return Alpha(value, None, None, table.shape[1], given, None)


def alpha_interval(
    matrix: RatingMatrix,
    level: str = "interval",
    *,
    groups: Sequence[Hashable] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> Alpha:
    """The same with a 95 % interval: bootstrap standard error over items, t quantile; alpha cannot exceed 1.

    `groups` (one label per item): items about one context are drawn together."""
    from scipy.stats import t

    found = krippendorff_alpha(matrix, level)
    if found.value is None:
        return found
    table = _pairable(matrix, level)
    used = np.isfinite(as_matrix(matrix)).sum(axis=0) > 1
    labels = range(len(used)) if groups is None else groups
    unit = codes([label for label, kept in zip(labels, used, strict=True) if kept])
    n = int(unit.max()) + 1
    drawn = _alphas(table, level, counts(np.random.default_rng(seed), draws, n)[:, unit])
    drawn = drawn[np.isfinite(drawn)]  # a resample in which nobody differs has no alpha
    if len(drawn) < draws / 2 or n < FEWEST_UNITS:
        return found
    reach = float(drawn.std(ddof=1)) * np.sqrt(n / (n - 1)) * float(t.ppf(0.975, n - 1))
    return found._replace(low=found.value - reach, high=min(1.0, found.value + reach))


def _alphas(table: Array, level: str, weights: Array) -> Array:
    """Alpha in every resample of items: 1 - observed / expected disagreement.

    With squared differences of values r both are sums over items of m, sum r and sum r². Nominal values are compared by
    equality; ordinal ones by their middle ranks among all ratings of the resample: Krippendorff's ordinal metric.
    """
    given = np.isfinite(table)
    size = given.sum(axis=0).astype(np.float64)
    total = weights @ size
    if level == "interval":
        centred = np.where(given, table - table[given].mean(), 0.0)
        first, second = centred.sum(axis=0), (centred**2).sum(axis=0)
        observed = weights @ ((size * second - first**2) / (size - 1))
        expected = (total * (weights @ second) - (weights @ first) ** 2) / (total - 1)
        return _one_minus(observed, expected)
    levels, inverse = np.unique(table[given], return_inverse=True)
    votes = np.zeros((table.shape[1], len(levels)))  # items × distinct values
    np.add.at(votes, (np.nonzero(given)[1], inverse), 1.0)
    share = weights @ votes
    if level == "nominal":
        observed = weights @ ((size**2 - (votes**2).sum(axis=1)) / (size - 1))
        return _one_minus(observed, (total**2 - (share**2).sum(axis=1)) / (total - 1))
    ranks = (np.cumsum(share, axis=1) - share / 2) / total[:, None] - 0.5
    first, second = ranks @ votes.T, ranks**2 @ votes.T
    observed = (weights * (size * second - first**2) / (size - 1)).sum(axis=1)
    expected = (total * (weights * second).sum(axis=1) - (weights * first).sum(axis=1) ** 2) / (total - 1)
    return _one_minus(observed, expected)


def _one_minus(observed: Array, expected: Array) -> Array:
    varied = expected > 1e-12 * np.maximum(1.0, np.abs(observed))
    return np.where(varied, 1 - observed / np.where(varied, expected, 1.0), np.nan)


def _pairable(matrix: RatingMatrix, level: str) -> Array:
    """The columns with at least two ratings."""
    if level not in LEVELS:
        raise UsageError(f"no scale {level!r}: choose {', '.join(LEVELS)}")
    table = as_matrix(matrix)
    return table[:, np.isfinite(table).sum(axis=0) > 1]


def as_matrix(matrix: RatingMatrix) -> Array:
    """A rating matrix as floats, None as NaN."""
    try:
        table = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(
            "ratings must be a rectangular table of numbers (raters × items), None where missing"
        ) from None
    if table.ndim != 2:
        raise UsageError(f"ratings must be a table of raters × items, not {table.ndim}-dimensional")
    return np.where(np.isfinite(table), table, np.nan)


def _why_undefined(table: Array) -> str | None:
    if table.shape[1] == 0:
        return "no item has two ratings"
    if np.nanmin(table) == np.nanmax(table):
        return "all ratings are equal: agreement beyond chance cannot be computed"
    return None


def rating_matrix(records: Sequence[Record], dimension: str) -> Array:
    """The single `ratings` of records as raters × items (the k-th rating of each record is row k)."""
    given = [tuple(record.ratings.get(dimension, ())) for record in records]
    raters = max((len(row) for row in given), default=0)
    if raters == 0:
        known = sorted({name for record in records for name in record.ratings})
        raise UsageError(f"no record has ratings of {dimension!r}; there are: {', '.join(known) or 'none'}")
    return as_matrix([[row[k] if k < len(row) else None for row in given] for k in range(raters)])


def zscores(matrix: RatingMatrix, by: str = "rater") -> Array:
    """Ratings in standard deviations from the mean of their rater (QAScore eq. 13) or item; NaN where all are equal."""
    table = as_matrix(matrix)
    if by not in ("rater", "item"):
        raise UsageError(f"cannot standardise by {by!r}: choose rater or item")
    axis = 1 if by == "rater" else 0
    count = np.maximum(np.isfinite(table).sum(axis=axis, keepdims=True), 1)
    mean = np.nansum(table, axis=axis, keepdims=True) / count
    spread = np.sqrt(np.nansum((table - mean) ** 2, axis=axis, keepdims=True) / count)
    flat = spread <= 1e-12 * np.maximum(1.0, np.abs(mean))
    return np.where(flat, np.nan, (table - mean) / np.where(flat, 1.0, spread))


def z_filter(matrix: RatingMatrix, limit: float = 1.0, most: int = 5) -> Array:
    """KPQA's filter (§4.2): within each item drop the ratings with |z| > limit, the farthest first, at most `most`.

    Dropped ratings become NaN; an item whose ratings are all equal keeps them all."""
    table = as_matrix(matrix)
    distance = np.abs(zscores(table, by="item"))
    distance = np.where(np.isfinite(distance), distance, 0.0)
    place = np.argsort(np.argsort(-distance, axis=0, kind="stable"), axis=0, kind="stable")
    noise = (distance > limit + 1e-12) & (place < most)
    return np.where(noise, np.nan, table)


class RankPairs(NamedTuple):
    """How often a metric ranks two outputs as people do."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    """Pairs that people clearly rank."""
    ties: int
    """Pairs the metric scores equal: no match."""
    reason: str | None


def rank_pair_accuracy(
    human: npt.ArrayLike, scores: npt.ArrayLike, groups: Sequence[Hashable], gap: float = 2.0
) -> RankPairs:
    """The win-lose match of KPQA Table 7: pairs within a group whose ratings differ by `gap` or more (the paper says
    "greater than 2", but its 93 pairs are these), and the share the metric orders the same way. Wilson's interval."""
    rating, score = np.asarray(human, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if not len(rating) == len(score) == len(groups):
        raise UsageError(f"{len(rating)} ratings, {len(score)} scores and {len(groups)} groups: lengths must be equal")
    group = codes(groups)
    order = np.argsort(group, kind="stable")
    won = ties = n = 0
    for members in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        i, j = (members[k] for k in np.triu_indices(len(members), 1))
        difference, found = rating[i] - rating[j], score[i] - score[j]
        clear = (np.abs(difference) >= gap - 1e-9) & np.isfinite(found)
        n += int(clear.sum())
        won += int((np.sign(difference) == np.sign(found))[clear].sum())
        ties += int((found == 0)[clear].sum())
    if n == 0:
        return RankPairs(None, None, None, 0, 0, f"no two outputs of a group differ by {gap:g} or more in rating")
    low, high = wilson(won, n)
    return RankPairs(won / n, low, high, n, ties, None)


def wilson(hits: int, n: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    share = hits / n
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return float(centre - reach), float(centre + reach)
