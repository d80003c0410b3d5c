"""Few ratings and a metric's scores of everything: prediction-powered system scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np

from elench.errors import UsageError
from elench.runs.run import Run
from elench.stats.estimation import prediction_powered
from elench.study.analyse.scores import Judged
from elench.study.folder import Study


@dataclass(frozen=True)
class Powered:
    """A system's prediction-powered score: few ratings and a metric's score on every output."""

    system: str
    value: float | None
    interval: tuple[float, float] | None
    alone: float | None
    alone_interval: tuple[float, float] | None
    rated: int
    scored: int
    worth: float | None
    reason: str


@dataclass(frozen=True)
class PoweredScores:
    """What a metric adds to the ratings."""

    name: str
    systems: tuple[Powered, ...]
    """Best first."""
    correlation: float | None
    """Pearson's r between the metric and the ratings of the same outputs; None: undefined."""


class _Output(NamedTuple):
    """A scored output; NaN when nobody rated it."""

    system: str
    passage: str
    rating: float
    score: float


def powered_scores(study: Study, found: Sequence[Judged], path: Path, metric: str | None) -> PoweredScores:
    """Ratings of some outputs and a metric's scores of all, joined by record id and system."""
    scores, name = _scores(path, metric)
    outputs = _join(study, found, scores)
    rated = np.array([(o.rating, o.score) for o in outputs if not np.isnan(o.rating)])
    if not len(rated):
        raise UsageError(f"{path}: no scored record was rated in this study (they are joined by id and system)")
    flat = len(rated) < 3 or bool((np.ptp(rated, axis=0) == 0).any())
    systems = [_powered(system, own) for system in study.systems if (own := [o for o in outputs if o.system == system])]
    systems.sort(key=lambda p: -(p.value if p.value is not None else -np.inf))
    return PoweredScores(name, tuple(systems), None if flat else float(np.corrcoef(rated.T)[0, 1]))


def _join(study: Study, found: Sequence[Judged], scores: Mapping[tuple[str, str], float]) -> list[_Output]:
    ratings: dict[tuple[str, str], list[float]] = {}
    for j in found:
        if np.isfinite(j.values).all():
            ratings.setdefault((j.record, j.system), []).append(float(np.mean(j.values)))
    return [
        _Output(key[1], study.passage(*key), mean(ratings[key]) if key in ratings else np.nan, score)
        for key, score in scores.items()
        if key[1] in study.systems
    ]


def _powered(system: str, outputs: Sequence[_Output]) -> Powered:
    got = prediction_powered(
        [o.rating for o in outputs], [o.score for o in outputs], groups=[o.passage for o in outputs]
    )
    pair = None if got.low is None or got.high is None else (got.low, got.high)
    alone = None if got.alone_low is None or got.alone_high is None else (got.alone_low, got.alone_high)
    return Powered(system, got.value, pair, got.alone, alone, got.rated, got.scored, got.worth, got.reason or "")


def _scores(path: Path, metric: str | None) -> tuple[dict[tuple[str, str], float], str]:
    """Scores of one metric (the first one, when none is named) by record id and system."""
    run = Run.read(path)
    name = metric or run.specs[0]
    if name not in run.specs:
        raise UsageError(f"{path}: no metric {name!r}; it has {', '.join(run.specs)}")
    return {(o.id, o.system or ""): value for o in run.scored if (value := o.value(name)) is not None}, name
