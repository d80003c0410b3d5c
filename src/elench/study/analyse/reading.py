"""Does a rater read? An exact permutation test that uses bad references and repeats together.

Every rater meets the items of a task in a random order of their own. Whoever does not read gives any item any of their
ratings, whatever pattern they click in, so exchanging the ratings between the items of a task changes nothing
systematically. A reader's ratings fit the items better than nearly all such exchanges.

Fit is the residual sum of squares of the model of a reader: outputs differ, two ratings of the same output (an intact
item with its repeat, or with its bad reference) are correlated, and bad references lie lower. The p-value is the share
of exchanges that fit at least as well (with the +1), pooled over all tasks of the rater.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elench.study.analyse.sittings import Sitting
from elench.study.design.compose import Item
from elench.study.folder import Study

Array = NDArray[np.float64]
DRAWS = 1999
SAME_OUTPUT = 0.2
"""Correlation of two ratings of one output in the model of a reader: that of a noisy one, who is hardest to tell from a
rater who clicks. The level of the test does not depend on it."""


def reading_p(study: Study, rater: str, sittings: Sequence[Sitting]) -> float:
    """The p-value of all submitted tasks of one rater; 1 when all ratings are equal. The same ratings, the same p."""
    rng = np.random.default_rng(zlib.crc32(rater.encode()))
    misfit = np.zeros(DRAWS + 1)
    for sitting in sittings:
        items, ratings = _item_means(study, sitting)
        if any(item.kind == "bad" for item in items):
            order = np.argsort(rng.random((DRAWS + 1, len(items))), axis=1)
            order[0] = np.arange(len(items))
            misfit += residuals(items, (ratings - ratings.mean())[order])
    slack = 1e-9 * max(1.0, float(misfit[0]))
    return float(np.count_nonzero(misfit <= misfit[0] + slack)) / (DRAWS + 1)


def _item_means(study: Study, sitting: Sitting) -> tuple[list[Item], Array]:
    """The rated items of a task and the mean of each one's ratings, as a share of the scale."""
    scale = {c.name: (c.low, c.high - c.low) for c in study.protocol.criteria}
    items = study.by_id[sitting.task].items
    rated = {
        place: np.mean([(value - scale[name][0]) / scale[name][1] for name, value in given.items()])
        for place, given in sitting.values.items()
        if given
    }
    return [items[place] for place in rated], np.array(list(rated.values()), float)


def residuals(items: Sequence[Item], ratings: Array) -> Array:
    """Residual sum of squares of each row of ratings under the model of a reader (generalised least squares)."""
    names = [(item.record, item.system) for item in items]
    same = np.array([[one == other for other in names] for one in names])
    covariance = np.where(same, SAME_OUTPUT, 0.0) + (1 - SAME_OUTPUT) * np.eye(len(items))
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    level = whiten.sum(axis=1)
    level /= np.linalg.norm(level)
    drop = -whiten @ np.array([item.kind == "bad" for item in items], float)
    drop -= (drop @ level) * level
    drop /= np.linalg.norm(drop)
    white = ratings @ whiten.T
    fitted = (white @ level) ** 2 + np.maximum(0.0, white @ drop) ** 2  # bad references never lie higher
    return np.asarray((white**2).sum(axis=1) - fitted, float)
