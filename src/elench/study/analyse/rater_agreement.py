"""Do the raters of a study agree? Krippendorff's alpha per criterion, on the ratings of the same items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elench.stats.agreement import LEVELS, Alpha, alpha_interval, krippendorff_alpha
from elench.study.analyse.sittings import Sitting
from elench.study.folder import Study

Key = tuple[str, str, str]
"""An item that different raters may have seen: record, system and text."""


@dataclass(frozen=True)
class CriterionAlpha:
    """Alpha of one criterion on the three scales of measurement."""

    criterion: str
    alpha: dict[str, float | None]
    interval: dict[str, tuple[float, float] | None]
    """95 %, bootstrap over passages."""
    units: int
    """Items rated by at least two raters."""
    ratings: int
    reason: str
    """Why alpha is undefined, else empty."""


def rating_matrix(
    study: Study, sittings: Sequence[Sitting], criterion: str
) -> tuple[NDArray[np.float64], list[str], list[Key]]:
    """Raters × items of one criterion, NaN where nothing was rated; the mean where a rater met an item twice.

    Bad references are left out; a repeat is another rating of its ordinary item.
    """
    raters = sorted({s.rater for s in sittings})
    row = {name: place for place, name in enumerate(raters)}
    found: dict[tuple[int, Key], list[float]] = {}
    keys: dict[Key, int] = {}
    for sitting in sittings:
        items = study.by_id[sitting.task].items
        for place, given in sitting.values.items():
            item = items[place]
            if not item.scored or criterion not in given:
                continue
            key = (item.record, item.system, item.text)
            keys.setdefault(key, len(keys))
            found.setdefault((row[sitting.rater], key), []).append(given[criterion])
    matrix = np.full((len(raters), len(keys)), np.nan)
    for (place, key), values in found.items():
        matrix[place, keys[key]] = float(np.mean(values))
    return matrix, raters, list(keys)


def agreement(study: Study, sittings: Sequence[Sitting], draws: int = 1000, seed: int = 0) -> list[CriterionAlpha]:
    """Alpha of every criterion; `draws` = 0 leaves the interval out."""
    rows = []
    for criterion in study.protocol.criteria:
        matrix, _, keys = rating_matrix(study, sittings, criterion.name)
        passages = [study.passage(key[0], key[1]) for key in keys]
        if matrix.size == 0:
            nothing: dict[str, float | None] = dict.fromkeys(LEVELS)
            rows.append(CriterionAlpha(criterion.name, nothing, dict.fromkeys(LEVELS), 0, 0, "no task passed yet"))
            continue
        found: dict[str, Alpha] = {
            level: alpha_interval(matrix, level, groups=passages, draws=draws, seed=seed)
            if draws
            else krippendorff_alpha(matrix, level)
            for level in LEVELS
        }
        one = found["interval"]
        rows.append(
            CriterionAlpha(
                criterion.name,
                {level: alpha.value for level, alpha in found.items()},
                {level: _limits(alpha) for level, alpha in found.items()},
                one.items,
                one.ratings,
                _reason(one, study),
            )
        )
    return rows


def _limits(alpha: Alpha) -> tuple[float, float] | None:
    return None if alpha.low is None or alpha.high is None else (alpha.low, alpha.high)


def _reason(alpha: Alpha, study: Study) -> str:
    if alpha.value is not None or alpha.reason is None:
        return ""
    if alpha.items == 0 and all(task.raters == 1 for task in study.tasks):
        return f"{alpha.reason}: the plan gives every task to one rater"
    return alpha.reason
