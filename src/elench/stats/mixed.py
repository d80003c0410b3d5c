"""A mixed model of a rating study: rating ~ system + (1 | passage) + (1 | rater) + (1 | rater:system), by REML.

Raters differ in severity, passages in difficulty, and a rater may like one system more than other raters do. Tests that
forget the last call systems different because one rater thinks so. Henderson's equations, profile likelihood over the
ratios of variances; differences by t with Satterthwaite's degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.stats.letters import letters
from elench.stats.resampling_plan import Ints, codes
from elench.stats.significance import holm

Array = NDArray[np.float64]
COMPONENTS = ("passage", "rater", "rater:system")
_LOW, _HIGH = -14.0, 8.0
"""Bounds of the logarithm of a variance ratio; at the lower one the component is nil."""


@dataclass(frozen=True)
class MixedPair:
    """Two systems under the mixed model."""

    first: str
    second: str
    difference: float
    low: float
    high: float
    freedom: float
    p: float
    corrected: float
    """Holm over all pairs"""


@dataclass(frozen=True)
class RaterEffect:
    """Evidence about one rater; never used as a weight."""

    rater: str
    severity: float
    """How much lower this rater rates than the others, shrunk towards 0"""
    deviation: float
    """Standard deviation of the rater's ratings around what the model expects of them"""
    agreement: float | None
    """Correlation of the rater's ratings with the expectation from system and passage"""
    n: int


@dataclass(frozen=True)
class MixedFit:
    """System means that hold for other raters and passages."""

    systems: tuple[str, ...]
    """Best first"""
    means: tuple[float, ...]
    errors: tuple[float, ...]
    letters: tuple[str, ...]
    pairs: tuple[MixedPair, ...]
    variances: dict[str, float]
    """Of passages, raters, raters × systems, and the residual"""
    raters: tuple[RaterEffect, ...]
    """Most severe first"""
    n: int


class _Equations:
    """Henderson's mixed model equations for one data set."""

    def __init__(self, y: Array, system: Ints, effects: Sequence[Ints]) -> None:
        blocks = [_indicator(labels) for labels in (system, *effects)]
        self.y, self.sizes = y, [b.shape[1] for b in blocks]
        self.fixed, self.n = self.sizes[0], len(y)
        self.design = np.concatenate(blocks, axis=1)
        self.products, self.right, self.square = self.design.T @ self.design, self.design.T @ y, float(y @ y)

    def solve(self, ratios: Array) -> tuple[Array, float, float, Array]:
        """Solution, residual sum of squares, log-determinant terms, and the Cholesky factor."""
        penalty = np.concatenate(
            [np.zeros(self.fixed), *(np.full(q, np.exp(-r)) for q, r in zip(self.sizes[1:], ratios, strict=True))]
        )
        factor = np.linalg.cholesky(self.products + np.diag(penalty))
        half = np.linalg.solve(factor, self.right)
        solution = np.linalg.solve(factor.T, half)
        terms = 2 * float(np.log(np.diag(factor)).sum()) + float(np.dot(self.sizes[1:], ratios))
        return np.asarray(solution), self.square - float(half @ half), terms, np.asarray(factor, dtype=np.float64)

    def deviance(self, log_residual: float, ratios: Array) -> float:
        """-2 × restricted log-likelihood, up to a constant."""
        _, rss, terms, _ = self.solve(ratios)
        return float((self.n - self.fixed) * log_residual + rss / np.exp(log_residual) + terms)

    def fit(self) -> tuple[float, Array]:
        """The logarithms of the residual variance and of the ratios to it."""
        from scipy.optimize import minimize

        def profile(ratios: Array) -> float:
            _, rss, terms, _ = self.solve(ratios)
            return float((self.n - self.fixed) * np.log(max(rss, 1e-300)) + terms)

        start = np.full(len(self.sizes) - 1, -1.0)
        found = minimize(profile, start, method="L-BFGS-B", bounds=[(_LOW, _HIGH)] * len(start))
        rss = self.solve(found.x)[1]
        return float(np.log(rss / (self.n - self.fixed))), np.asarray(found.x)

    def covariance(self, log_residual: float, ratios: Array) -> Array:
        """Of the fixed effects (the system means)."""
        factor = self.solve(ratios)[3]
        root = np.linalg.solve(factor, np.eye(len(factor), self.fixed))
        return np.asarray(np.exp(log_residual) * root.T @ root)


def mixed_model(
    ratings: npt.ArrayLike, systems: Sequence[str], passages: Sequence[Hashable], raters: Sequence[str]
) -> MixedFit:
    """Fit the model to one rating per (rater, output); gaps (NaN) are left out."""
    y = np.asarray(ratings, dtype=np.float64)
    kept = np.flatnonzero(np.isfinite(y))
    y, of = y[kept], [systems[k] for k in kept.tolist()]
    names = list(dict.fromkeys(of))
    system, passage = codes(of), codes([passages[k] for k in kept.tolist()])
    rater_names = [raters[k] for k in kept.tolist()]
    rater = codes(rater_names)
    if len(names) < 2 or int(rater.max(initial=-1)) < 1 or len(y) < len(names) + 3:
        raise UsageError("a mixed model needs ratings of at least two systems by at least two raters")
    if float(np.ptp(y)) == 0:
        raise UsageError("a mixed model needs ratings that differ")
    cell = codes(list(zip(rater.tolist(), system.tolist(), strict=True)))
    centre = float(y.mean())
    equations = _Equations(y - centre, system, [passage, rater, cell])
    log_residual, ratios = equations.fit()
    solution = equations.solve(ratios)[0]
    means = solution[: len(names)] + centre
    covariance = equations.covariance(log_residual, ratios)
    order = sorted(range(len(names)), key=lambda k: -means[k])
    pairs = _pairs(equations, log_residual, ratios, order, names, means, covariance)
    differs = np.zeros((len(names), len(names)), dtype=bool)
    for (i, j), pair in zip(combinations(range(len(order)), 2), pairs, strict=True):
        differs[i, j] = pair.corrected < 0.05
    variances = {name: _variance(log_residual, r) for name, r in zip(COMPONENTS, ratios, strict=True)}
    return MixedFit(
        tuple(names[k] for k in order), tuple(float(means[k]) for k in order),
        tuple(float(np.sqrt(covariance[k, k])) for k in order), tuple(letters(differs)), tuple(pairs),
        {**variances, "residual": float(np.exp(log_residual))},
        _rater_effects(equations, solution, rater, rater_names), len(y),
    )  # fmt: skip


def _indicator(labels: Ints) -> Array:
    return np.asarray(labels[:, None] == np.arange(int(labels.max()) + 1), dtype=np.float64)


def _variance(log_residual: float, ratio: float) -> float:
    return 0.0 if ratio <= _LOW + 0.5 else float(np.exp(log_residual + ratio))


def _pairs(
    equations: _Equations, log_residual: float, ratios: Array, order: list[int], names: list[str], means: Array,
    covariance: Array,
) -> list[MixedPair]:  # fmt: skip
    from scipy.stats import t

    contrasts = [(order[i], order[j]) for i, j in combinations(range(len(order)), 2)]
    freedoms = _satterthwaite(equations, log_residual, ratios, contrasts)
    rows = []
    for (i, j), freedom in zip(contrasts, freedoms, strict=True):
        gap = float(means[i] - means[j])
        error = float(np.sqrt(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]))
        reach = float(t.ppf(0.975, freedom)) * error
        p = float(2 * t.sf(abs(gap) / error, freedom))
        rows.append(MixedPair(names[i], names[j], gap, gap - reach, gap + reach, freedom, p, 1.0))
    corrected = holm([row.p for row in rows]).tolist()
    return [replace(row, corrected=c) for row, c in zip(rows, corrected, strict=True)]


def _satterthwaite(
    equations: _Equations, log_residual: float, ratios: Array, contrasts: Sequence[tuple[int, int]]
) -> list[float]:
    """Degrees of freedom 2 v² / var(v), the variance from the curvature of the likelihood at the estimates."""
    active = [k for k, ratio in enumerate(ratios) if ratio > _LOW + 0.5]
    point = np.array([log_residual, *ratios[active]])

    def split(theta: Array) -> tuple[float, Array]:
        full = ratios.copy()
        full[active] = theta[1:]
        return float(theta[0]), full

    def contrast_variances(theta: Array) -> Array:
        c = equations.covariance(*split(theta))
        return np.array([c[i, i] + c[j, j] - 2 * c[i, j] for i, j in contrasts])

    step, size = 0.02, len(point)
    moves = np.eye(size) * step
    deviance = {}
    for i in range(size):
        for j in range(i, size):
            corners = [
                a * b * equations.deviance(*split(point + a * moves[i] + b * moves[j]))
                for a in (1, -1)
                for b in (1, -1)
            ]
            deviance[i, j] = deviance[j, i] = sum(corners) / (4 * step**2)
    curvature = np.array([[deviance[i, j] for j in range(size)] for i in range(size)])
    spread = 2 * np.linalg.pinv(curvature)
    value = contrast_variances(point)
    slope = np.array([(contrast_variances(point + m) - contrast_variances(point - m)) / (2 * step) for m in moves])
    uncertain = np.einsum("ik,ij,jk->k", slope, spread, slope)
    most = float(equations.n - equations.fixed)
    return [float(np.clip(2 * v**2 / max(u, 1e-300), 1.0, most)) for v, u in zip(value, uncertain, strict=True)]


def _rater_effects(
    equations: _Equations, solution: Array, rater: Ints, names: Sequence[str]
) -> tuple[RaterEffect, ...]:
    systems, passages, raters, _ = equations.sizes
    own = solution[systems + passages : systems + passages + raters]
    expected = equations.design[:, : systems + passages] @ solution[: systems + passages]
    rest = equations.y - equations.design @ solution
    found = []
    for k in range(raters):
        mine = rater == k
        varied = mine.sum() > 2 and np.ptp(equations.y[mine]) > 0 and np.ptp(expected[mine]) > 0
        r = float(np.corrcoef(equations.y[mine], expected[mine])[0, 1]) if varied else None
        name = names[int(np.flatnonzero(mine)[0])]
        found.append(RaterEffect(name, float(-own[k]), float(np.sqrt((rest[mine] ** 2).mean())), r, int(mine.sum())))
    return tuple(sorted(found, key=lambda effect: -effect.severity))
