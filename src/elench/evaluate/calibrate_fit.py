"""The learner behind `elench calibrate`: few ratings in, a cautious linear mix of metric scores out.

Ridge regression on z-scored metrics in which three directions are penalised less than the rest: all metrics with equal
weights (each counted in its own sense of better), the best single metric, and the mixes of an earlier profile. With
few ratings the mix stays close to these; with many it is free. The penalty falls with the square root of the ratings.

Ratings of several files (`blocks`) are learned from together: each file counts the same, only differences within a file
count, with three files or more the strength of the penalty is chosen on files left out, and the level is that of the
first file.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from elench.metrics.profile import Z_LIMIT
from elench.stats.resampling_plan import codes

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

STRENGTHS = (0.05, 0.15, 0.5, 1.5, 5.0)
"""Multiples of the penalty that cross-validation chooses from, given enough ratings; else 1."""
ENOUGH = 200
ENOUGH_FILES = 3
SLACK = 0.01
"""Agreement on files left out that is given up for a stronger penalty: other files will differ more than these."""
AT_100 = 2.0
"""Penalty of a z-scored metric at 100 ratings."""
EQUAL, SINGLE, PRIOR = 0.03, 0.1, 0.1
"""Penalties of the favoured directions, as a share of that of a metric."""
LEAST = 0.01
"""Metrics with less than this share of the weight are left out: they cost time and add nothing."""
FOLDS = 5
USUAL = 30
"""Records that an earlier profile's spread of a metric counts for."""
ROUNDS = 6
"""How often metrics of the wrong sign are taken out and the rest fitted again."""


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation of each metric on the training records."""

    mean: Array
    sd: Array

    @classmethod
    def of(cls, scores: Array, belief: Belief | None = None, blocks: Ints | None = None) -> Scale:
        """Standard deviations drawn to those an earlier profile knew: a fault that few records have is still one. With
        blocks, the mean is that of the first."""
        seen = np.isfinite(scores)
        count = np.maximum(seen.sum(axis=0), 1)
        mean = np.where(seen, scores, 0.0).sum(axis=0) / count
        variance = np.where(seen, (scores - mean) ** 2, 0.0).sum(axis=0) / count
        if belief is not None:
            share = np.where(belief.usual_sd > 0, USUAL / (count + USUAL), 0.0)
            variance = (1 - share) * variance + share * belief.usual_sd**2
        sd = np.sqrt(variance)
        home = mean if blocks is None else cls.of(scores[blocks == blocks[0]]).mean
        return cls(home, np.where(sd > 1e-12, sd, np.inf))

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
    """metrics × earlier mixes: weights on z scores; no columns where there is no earlier profile."""
    usual_sd: Array
    """Per metric: its standard deviation in an earlier profile; 0 where it is not known."""
    single: bool = True
    """Is the best single metric a favoured direction? Not where files are pooled, as another file has another best, nor
    where an earlier profile knows better."""
    strength: float = 0.0
    """Fixed multiple of the penalty; 0: chosen by cross-validation."""

    @classmethod
    def none(cls, metrics: int) -> Belief:
        return cls(np.zeros(metrics), np.empty((metrics, 0)), np.zeros(metrics))

    def of(self, columns: Sequence[int]) -> Belief:
        own = list(columns)
        return Belief(self.sense[own], self.mixes[own], self.usual_sd[own], self.single, self.strength)


def fit(
    scores: Array,
    ratings: Array,
    groups: Sequence[Hashable],
    belief: Belief | None = None,
    seed: int = 0,
    scale: Scale | None = None,
    blocks: Ints | None = None,
) -> Fit:
    """Learn one human dimension from the ratings of records (rows) and the scores of metrics (columns).

    blocks: the file of each record, where there are several."""
    belief = belief or Belief.none(scores.shape[1])
    scale = scale or Scale.of(scores, belief, blocks)
    home = ratings if blocks is None else ratings[blocks == blocks[0]]
    base, spread = float(home.mean()), float(home.std()) or 1.0
    if blocks is None:
        z, y = scale.z(scores), (ratings - base) / spread
    else:
        z, y = levelled(scores, blocks, scale.sd), levelled(ratings[:, None], blocks)[:, 0]
        belief = replace(belief, single=False)
    across = blocks is not None and len(np.unique(blocks)) >= ENOUGH_FILES
    held_out = list(blocks) if blocks is not None and across else groups
    strength, stretch = _choose(z, y, held_out, belief, seed, SLACK if across else 0.0)
    weights = _weights(z, y, belief, strength) * stretch * spread
    weights[np.abs(weights) < LEAST * np.abs(weights).sum()] = 0.0
    column, slope = _best_single(z, y)
    return Fit(scale, weights, base, column, slope * spread, strength)


def levelled(values: Array, blocks: Ints, sd: Array | None = None) -> Array:
    """Differences from the mean of the own block, in units of `sd` (else of the block's own), each block counting alike
    however many rows it has; 0 where there is no value."""
    found = np.zeros_like(values)
    names = np.unique(blocks)
    for name in names:
        rows = blocks == name
        own = Scale.of(values[rows])
        share = np.sqrt(len(values) / (len(names) * rows.sum()))
        found[rows] = share * Scale(own.mean, own.sd if sd is None else sd).z(values[rows])
    return found


def _weights(z: Array, y: Array, belief: Belief, strength: float) -> Array:
    """Ridge weights, the favoured directions included; a metric whose weight contradicts its own sense of better is
    left out and the rest fitted again, because such a weight seldom holds on other data."""
    sense = belief.sense * (-1.0 if _high_is_bad(z @ belief.sense, y) else 1.0)
    used = np.ones(z.shape[1])
    weights = _ridge(z, y, belief, strength)
    for _ in range(ROUNDS):
        wrong = (weights * sense < 0) & (used > 0)
        if not wrong.any():
            break
        used[wrong] = 0.0
        weights = _ridge(z * used, y, belief, strength) * used
    return np.where(weights * sense < 0, 0.0, weights)


def _high_is_bad(equal: Array, y: Array) -> bool:
    """Does a dimension count faults? Only clear evidence turns every metric's sense round."""
    spread = float(equal.std() * y.std())
    r = float(((equal - equal.mean()) * y).mean()) / spread if spread > 0 else 0.0
    return bool(r < -max(0.2, 3 / np.sqrt(len(y))))


def _ridge(z: Array, y: Array, belief: Belief, strength: float) -> Array:
    n, metrics = z.shape
    penalty = strength * AT_100 * np.sqrt(100 / n)
    single = np.zeros(metrics)
    single[_best_single(z, y)[0]] = float(belief.single)
    favoured = [(belief.sense, EQUAL), (single, SINGLE), *((mix, PRIOR) for mix in belief.mixes.T)]
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
    z: Array, y: Array, groups: Sequence[Hashable], belief: Belief, seed: int, slack: float = 0.0
) -> tuple[float, float]:
    """The strength of the penalty whose predictions for unseen groups correlate best (or, if stronger, within `slack`
    of the best), and the factor that brings them to the size of the ratings."""
    strengths = (belief.strength,) if belief.strength else STRENGTHS if len(y) >= ENOUGH else (1.0,)
    outside = np.zeros((len(y), len(strengths)))
    agreement = np.zeros(len(strengths))
    for train, test in folds(groups, FOLDS, seed):
        mean = y[train].mean()
        for k, strength in enumerate(strengths):
            outside[test, k] = z[test] @ _weights(z[train], y[train] - mean, belief, strength)
            if y[test].std() > 0 and outside[test, k].std() > 0:
                agreement[k] += len(test) / len(y) * np.corrcoef(outside[test, k], y[test])[0, 1]
    best = int(np.flatnonzero(agreement >= agreement.max() - slack)[-1] if slack else agreement.argmax())
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
    blocks: Ints | None = None,
) -> Unseen:
    """Cross-validated predictions by group; with `most`, each fit sees only that many ratings, drawn at random.

    A profile has one base and one slope, these folds have five of each. So that their differences do not disturb the
    correlation, each fold's predictions get the same base and, by their spread on its training records, the same slope.
    """
    mix, single = np.full(len(ratings), np.nan), np.full(len(ratings), np.nan)
    sizes: list[tuple[Ints, float]] = []
    rng = np.random.default_rng(seed + 1)
    names, home = list(groups), ratings if blocks is None else ratings[blocks == blocks[0]]
    base = float(home.mean())
    for train, test in folds(groups, FOLDS, seed):
        if most and most < len(train):
            train = np.sort(rng.choice(train, most, replace=False))
        own = None if blocks is None else blocks[train]
        found = fit(scores[train], ratings[train], [names[k] for k in train], belief, seed, blocks=own)
        mix[test] = found.predict(scores[test]) - found.base
        sizes.append((test, float(found.predict(scores[train]).std())))
        single[test] = base + found.slope * found.scale.z(scores[test])[:, found.single]
    usual = float(np.median([size for _, size in sizes]))
    for test, size in sizes:
        mix[test] = base + mix[test] * (usual / size if size > 0 else 1.0)
    return Unseen(mix, single)
