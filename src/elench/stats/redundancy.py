"""Which metrics say something new about human judgements, and which repeat each other (QRelScore App. D).

Forward selection: start with no metric; at each step add the one that most lowers the cross-validated error of a linear
regression on the human ratings. What is chosen early informs, what comes late is redundant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.stats import weighted
from elench.stats.correlation import JudgementTable
from elench.stats.resampling_plan import codes

if TYPE_CHECKING:
    pass

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
FEWEST = 20
"""Fewer records with every score and a rating than this give no regression."""


class Step(NamedTuple):
    """One step of the selection, over all repeats."""

    metric: str
    """Chosen most often at this step among those not named before"""
    share: float
    """In what share of the repeats"""
    mse: float
    r2: float
    """On folds that took no part in the choice, mean over repeats; 0 is the mean rating's error, below 0 is worse"""
    r2_deviation: float


@dataclass(frozen=True)
class Selection:
    """The order in which metrics inform, with the curves of error and explained variance."""

    dimension: str
    steps: tuple[Step, ...]
    n: int
    folds: int
    repeats: int
    left_out: tuple[str, ...]
    """Metrics scored on fewer than half of the records, or constant"""


def forward_selection(
    table: JudgementTable, dimension: str, *, steps: int | None = None, folds: int = 5, repeats: int = 10, seed: int = 0
) -> Selection:
    """Greedy choice of metrics by cross-validation; records of one context stay in one fold."""
    human = table.human[:, table.dimensions.index(dimension)]
    enough = np.isfinite(table.scores).mean(axis=0) >= 0.5
    varied = np.array([np.isfinite(c).any() and np.nanmax(c) > np.nanmin(c) for c in table.scores.T], dtype=bool)
    used = np.flatnonzero(enough & varied)
    rows = np.isfinite(table.scores[:, used]).all(axis=1) & np.isfinite(human)
    if len(used) == 0 or rows.sum() < FEWEST:
        raise UsageError(
            f"{table.source}: {int(rows.sum())} records have every score and a {dimension} rating; {FEWEST} are needed"
        )
    x, y = table.scores[np.ix_(rows, used)], human[rows]
    if np.ptp(y) == 0:
        raise UsageError(f"{table.source}: people gave every record the same {dimension} rating")
    groups = [k if group is None else group for k, group in enumerate(table.groups)]
    items = [group for group, kept in zip(groups, rows, strict=True) if kept]
    limit = min(len(used), steps or len(used))
    paths = [_nested_path(x, y, _folds(items, folds, seed + k), limit) for k in range(repeats)]
    names = [table.metrics[k] for k in used]
    left = tuple(name for name in table.metrics if name not in names)
    return Selection(dimension, _summary(paths, names, float(y.var())), len(y), folds, repeats, left)


def _nested_path(x: Array, y: Array, fold: Ints, limit: int) -> list[tuple[int, float]]:
    """The metrics in order of choice on all records, and the error of each step on folds that took no part in it: for
    every fold the metrics are chosen anew by cross-validation among the other folds."""
    grams = _grams(x, y, fold)
    squares = np.zeros(limit)
    for f in range(len(grams)):
        others = np.delete(grams, f, axis=0)
        chosen = [k for k, _ in _path(others, limit, 1)]
        for step in range(limit):
            squares[step] += _error(others.sum(axis=0)[None], grams[[f]], [0, *(k + 1 for k in chosen[: step + 1])])
    order = [k for k, _ in _path(grams, limit, 1)]
    return list(zip(order, (squares / len(y)).tolist(), strict=True))


def _grams(x: Array, y: Array, fold: Ints) -> Array:
    """Per fold the products of all columns: 1, the standardised metrics, the centred ratings."""
    z = np.column_stack([np.ones(len(y)), (x - x.mean(axis=0)) / x.std(axis=0), y - y.mean()])
    return np.stack([z[fold == f].T @ z[fold == f] for f in np.unique(fold)])


def _path(grams: Array, limit: int, n: int) -> list[tuple[int, float]]:
    """The metrics in order of choice, each with the cross-validated error after it (divided by n)."""
    train = grams.sum(axis=0) - grams  # for each fold: the products over all other folds
    chosen: list[int] = []
    path = []
    for _ in range(limit):
        rest = [k for k in range(grams.shape[1] - 2) if k not in chosen]
        errors = [_error(train, grams, [0, *(c + 1 for c in chosen), k + 1]) / n for k in rest]
        best = int(np.argmin(errors))
        chosen.append(rest[best])
        path.append((rest[best], errors[best]))
    return path


def _error(train: Array, test: Array, columns: list[int]) -> float:
    """Squared error on every fold of the regression fitted on the others, from products alone."""
    inner = np.ix_(range(len(train)), columns, columns)
    ridge = 1e-9 * np.eye(len(columns)) * np.trace(train[0]) / len(train[0])  # keeps twin metrics solvable
    slope = np.linalg.solve(train[inner] + ridge, train[:, columns, -1][..., None])
    cross = test[:, columns, -1][..., None]
    quadratic = slope.transpose(0, 2, 1) @ test[inner] @ slope
    return float((test[:, -1, -1] - 2 * (slope * cross).sum(axis=(1, 2)) + quadratic[:, 0, 0]).sum())


def _folds(items: Sequence[Hashable], folds: int, seed: int) -> Ints:
    item = codes(items)
    count = int(item.max()) + 1
    if count < folds:
        raise UsageError(f"{count} items cannot be cut into {folds} folds")
    return (np.random.default_rng(seed).permutation(count) % folds)[item]


def _summary(paths: list[list[tuple[int, float]]], names: list[str], variance: float) -> tuple[Step, ...]:
    steps, named = [], set[int]()
    for k in range(len(paths[0])):
        votes = Counter(path[k][0] for path in paths if path[k][0] not in named)
        winner, count = votes.most_common(1)[0] if votes else _earliest(paths, named)
        named.add(winner)
        errors = np.array([path[k][1] for path in paths])
        r2 = 1 - errors / variance
        deviation = float(r2.std(ddof=1)) if len(paths) > 1 else 0.0
        steps.append(Step(names[winner], count / len(paths), float(errors.mean()), float(r2.mean()), deviation))
    return tuple(steps)


def _earliest(paths: list[list[tuple[int, float]]], named: set[int]) -> tuple[int, int]:
    """When every choice of a step is named already: the metric chosen earliest on the whole."""
    places = Counter[int]()
    for path in paths:
        for place, (metric, _) in enumerate(path):
            if metric not in named:
                places[metric] += len(path) - place
    return places.most_common(1)[0][0], 0


@dataclass(frozen=True)
class Likeness:
    """How alike metrics are."""

    metrics: tuple[str, ...]
    """In an order that puts like beside like"""
    matrix: Array
    """Their correlations; NaN where undefined"""
    n: Ints
    clusters: tuple[tuple[str, ...], ...]
    """Metrics whose scores correlate at least `threshold` on average"""
    threshold: float


def likeness(table: JudgementTable, coefficient: str = "pearson", threshold: float = 0.8) -> Likeness:
    """The correlation matrix of the metrics themselves, and clusters of near-twins (average linkage on 1 - |r|)."""
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
    from scipy.spatial.distance import squareform

    m = len(table.metrics)
    matrix, n = np.eye(m), np.zeros((m, m), dtype=np.int64)
    kernel = weighted.spearman if coefficient == "spearman" else weighted.pearson
    for i in range(m):
        for j in range(i, m):
            both = np.isfinite(table.scores[:, i]) & np.isfinite(table.scores[:, j])
            n[i, j] = n[j, i] = int(both.sum())
            if i != j:
                a, b = table.scores[both, i][:, None], table.scores[both, j][:, None]
                r = kernel(a, b, np.ones((1, len(a))))[0, 0, 0] if len(a) > 2 else np.nan
                matrix[i, j] = matrix[j, i] = r
    if m < 2:
        return Likeness(table.metrics, matrix, n, (table.metrics,), threshold)
    distance = np.where(np.isfinite(matrix), 1 - np.abs(matrix), 1.0)
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average")
    order = [int(k) for k in leaves_list(tree)]
    label = fcluster(tree, 1 - threshold, "distance")
    groups = [tuple(table.metrics[k] for k in order if label[k] == g) for g in dict.fromkeys(label[order].tolist())]
    names = tuple(table.metrics[k] for k in order)
    return Likeness(names, matrix[np.ix_(order, order)], n[np.ix_(order, order)], tuple(groups), threshold)
