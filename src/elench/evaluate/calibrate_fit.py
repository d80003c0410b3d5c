"""The learner behind `elench calibrate`: few ratings in, a cautious linear mix of metric scores out.

Ridge regression on z-scored metrics in which three directions are penalised less than the rest: all metrics with equal
weights (each counted in its own sense of better), the best single metric, and the mixes of an earlier profile. With
few ratings the mix stays close to these; with many it is free. The penalty falls with the square root of the ratings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elench.metrics.profile import Z_LIMIT
from elench.stats.plan import codes

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

STRENGTHS = (0.3, 1.0, 3.0)
"""Multiples of the penalty that cross-validation chooses from, given enough ratings; else 1."""
ENOUGH = 200
AT_100 = 1.0
"""Penalty of a z-scored metric at 100 ratings."""
EQUAL, SINGLE, PRIOR = 0.03, 0.1, 0.03
"""Penalties of the favoured directions, as a share of that of a metric."""
LEAST = 0.01
"""Metrics with less than this share of the weight are left out: they cost time and add nothing."""
FOLDS = 5
ROUNDS = 6
"""How often metrics of the wrong sign are taken out and the rest fitted again."""


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of each metric on the training records."""

    mean: Array
    sd: Array

    @classmethod
    def of(cls, scores: Array) -> Scale:
        seen = np.isfinite(scores)
        count = np.maximum(seen.sum(axis=0), 1)
        mean = np.where(seen, scores, 0.0).sum(axis=0) / count
        sd = np.sqrt(np.where(seen, (scores - mean) ** 2, 0.0).sum(axis=0) / count)
        return cls(mean, np.where(sd > 1e-12, sd, np.inf))

    def z(self, scores: Array) -> Array:
        """z scores; 0, the training mean, where a metric has no value."""
        z = np.clip((scores - self.mean) / self.sd, -Z_LIMIT, Z_LIMIT)
        return np.where(np.isfinite(z), z, 0.0)


@dataclass(frozen=True)
class Fit:
    """rating ≈ base + weights · z."""

    scale: Scale
    weights: Array
    base: float
    single: int
    """Column of the best single metric."""
    slope: float
    """Its own weight, were it used alone."""
    strength: float
    """The multiple of the penalty that was chosen."""

    def predict(self, scores: Array) -> Array:
        return np.asarray(self.base + self.scale.z(scores) @ self.weights)


@dataclass(frozen=True)
class Belief:
    """What is known of the metrics before any rating is seen."""

    sense: Array
    """Per metric: 1 if higher is better, -1 if lower is, 0 if neither."""
    mixes: Array
    """metrics × earlier mixes: weights on raw scores; no columns where there is no earlier profile."""

    @classmethod
    def none(cls, metrics: int) -> Belief:
        return cls(np.zeros(metrics), np.empty((metrics, 0)))

    def of(self, columns: Sequence[int]) -> Belief:
        return Belief(self.sense[list(columns)], self.mixes[list(columns)])


def fit(
    scores: Array,
    ratings: Array,
    groups: Sequence[Hashable],
    belief: Belief | None = None,
    seed: int = 0,
    scale: Scale | None = None,
) -> Fit:
    """Learn one human dimension from the ratings of records (rows) and the scores of metrics (columns)."""
    belief = belief or Belief.none(scores.shape[1])
    scale = scale or Scale.of(scores)
    z, base = scale.z(scores), float(ratings.mean())
    y = ratings - base
    spread = float(y.std()) or 1.0
    y = y / spread
    strength, stretch = _choose(z, y, groups, belief, scale, seed)
    weights = _weights(z, y, belief, scale, strength) * stretch * spread
    weights[np.abs(weights) < LEAST * np.abs(weights).sum()] = 0.0
    column, slope = _best_single(z, y)
    return Fit(scale, weights, base, column, slope * spread, strength)


def _weights(z: Array, y: Array, belief: Belief, scale: Scale, strength: float) -> Array:
    """Ridge weights, the favoured directions included; a metric whose weight contradicts its own sense of better is
    left out and the rest fitted again, because such a weight seldom holds on other data."""
    sense = belief.sense * (-1.0 if _high_is_bad(z @ belief.sense, y) else 1.0)
    used = np.ones(z.shape[1])
    weights = _ridge(z, y, belief, scale, strength)
    for _ in range(ROUNDS):
        wrong = (weights * sense < 0) & (used > 0)
        if not wrong.any():
            break
        used[wrong] = 0.0
        weights = _ridge(z * used, y, belief, scale, strength) * used
    return np.where(weights * sense < 0, 0.0, weights)


def _high_is_bad(equal: Array, y: Array) -> bool:
    """Does a dimension count faults? Only clear evidence turns every metric's sense round."""
    spread = float(equal.std() * y.std())
    r = float(((equal - equal.mean()) * y).mean()) / spread if spread > 0 else 0.0
    return bool(r < -max(0.2, 3 / np.sqrt(len(y))))


def _ridge(z: Array, y: Array, belief: Belief, scale: Scale, strength: float) -> Array:
    n, metrics = z.shape
    penalty = strength * AT_100 * np.sqrt(100 / n)
    single = np.zeros(metrics)
    single[_best_single(z, y)[0]] = 1.0
    earlier = belief.mixes * np.where(np.isfinite(scale.sd), scale.sd, 0.0)[:, None]
    favoured = [(belief.sense, EQUAL), (single, SINGLE), *((mix, PRIOR) for mix in earlier.T)]
    columns, penalties = [np.eye(metrics)], [np.full(metrics, penalty)]
    for direction, share in favoured:
        spread = float((z @ direction).std())
        if spread > 1e-9:
            columns.append(direction[:, None] / spread)
            penalties.append(np.full(1, penalty * share))
    basis = np.concatenate(columns, axis=1)
    design = z @ basis
    found = np.linalg.solve(design.T @ design / n + np.diag(np.concatenate(penalties)), design.T @ y / n)
    return np.asarray(basis @ found)


def _choose(
    z: Array, y: Array, groups: Sequence[Hashable], belief: Belief, scale: Scale, seed: int
) -> tuple[float, float]:
    """The strength of the penalty whose predictions for unseen groups correlate best, and the factor that brings them
    to the size of the ratings."""
    strengths = STRENGTHS if len(y) >= ENOUGH else (1.0,)
    outside = np.zeros((len(y), len(strengths)))
    agreement = np.zeros(len(strengths))
    for train, test in folds(groups, FOLDS, seed):
        mean = y[train].mean()
        for k, strength in enumerate(strengths):
            outside[test, k] = z[test] @ _weights(z[train], y[train] - mean, belief, scale, strength)
            if y[test].std() > 0 and outside[test, k].std() > 0:
                agreement[k] += len(test) * np.corrcoef(outside[test, k], y[test])[0, 1]
    best = int(agreement.argmax())
    said = outside[:, best]
    stretch = float((said * y).sum() / max(float((said**2).sum()), 1e-12))
    return strengths[best], float(np.clip(stretch, 0.1, 2.0))


def _best_single(z: Array, y: Array) -> tuple[int, float]:
    """The column that correlates best with y, and its slope."""
    spread = np.sqrt((z**2).sum(axis=0))
    products = z.T @ y
    column = int(np.abs(np.where(spread > 0, products / np.maximum(spread, 1e-12), 0.0)).argmax())
    return column, float(products[column] / max(spread[column] ** 2, 1e-12))


def folds(groups: Sequence[Hashable], count: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Training and test rows; records of one group are never on both sides."""
    group = codes(groups)
    kinds = int(group.max()) + 1
    count = min(count, kinds)
    order = np.random.default_rng(seed).permutation(kinds)
    fold = np.empty(kinds, dtype=np.int64)
    fold[order] = np.arange(kinds) % count
    for k in range(count):
        inside = fold[group] == k
        yield np.flatnonzero(~inside), np.flatnonzero(inside)


@dataclass(frozen=True)
class Unseen:
    """What fits on the other groups say of each record."""

    mix: Array
    single: Array
    """The best single metric, chosen and fitted on the same training records."""


def unseen(
    scores: Array,
    ratings: Array,
    groups: Sequence[Hashable],
    belief: Belief | None = None,
    seed: int = 0,
    most: int = 0,
) -> Unseen:
    """Cross-validated predictions by group; with `most`, each fit sees only that many ratings, drawn at random.

    A profile has one base and one slope, these folds have five of each. So that their differences do not disturb the
    correlation, each fold's predictions get the same base and, by their spread on its training records, the same slope.
    """
    mix, single = np.full(len(ratings), np.nan), np.full(len(ratings), np.nan)
    sizes: list[tuple[Ints, float]] = []
    rng = np.random.default_rng(seed + 1)
    names, base = list(groups), float(ratings.mean())
    for train, test in folds(groups, FOLDS, seed):
        if most and most < len(train):
            train = np.sort(rng.choice(train, most, replace=False))
        found = fit(scores[train], ratings[train], [names[k] for k in train], belief, seed)
        mix[test] = found.predict(scores[test]) - found.base
        sizes.append((test, float(found.predict(scores[train]).std())))
        single[test] = base + found.slope * found.scale.z(scores[test])[:, found.single]
    usual = float(np.median([size for _, size in sizes]))
    for test, size in sizes:
        mix[test] = base + mix[test] * (usual / size if size > 0 else 1.0)
    return Unseen(mix, single)
