"""Does one metric follow people better than another? Three tests of two dependent correlations, and their correction.

* `bootstrap_difference`: records are drawn with replacement, both metrics on the same draw (Koehn 2004), centred;
* `permutation_difference`: the metrics' standardised scores are swapped at random ("perm-both", Deutsch et al. 2021);
* `williams`: closed form for Pearson's r (Williams 1959).

A p-value from random draws carries +1 above and below: the observed data are one of the possible draws, and no finite
number of draws can show that something is impossible.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quaestor.errors import UsageError
from quaestor.meta import weighted
from quaestor.meta.pairwise import all_pairs, calibrated_accuracy
from quaestor.meta.resampling import codes, counts, outward

Array = NDArray[np.float64]


class Difference(NamedTuple):
    """How much better the first metric follows people than the second."""

    value: float | None
    """First correlation minus second; None where either is undefined."""
    p: float | None
    """Two-sided."""
    low: float | None
    high: float | None
    n: int
    method: str
    reason: str | None = None


def bootstrap_difference(
    human: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    coefficient: str = "pearson",
    *,
    units: Sequence[Hashable] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> Difference:
    """Paired bootstrap; records with the same unit (context) are drawn together. Interval: percentiles of the draws."""
    y, x, unit = _complete(human, first, second, units)
    method = f"paired bootstrap, {draws} draws, seed {seed}"
    value, reason = _gap(x, y, coefficient)
    if value is None:
        return Difference(None, None, None, None, len(y), method, reason)
    units_drawn = int(unit.max()) + 1
    weights = counts(np.random.default_rng(seed), draws, units_drawn)[:, unit]
    scale = "logit" if coefficient == "accuracy" else "fisher"
    if coefficient.startswith("kendall") or coefficient == "accuracy":
        if coefficient == "accuracy":
            found, _, influence = calibrated_accuracy(x, y, all_pairs(len(y)))
        else:
            found, influence = weighted.kendall_influence(x, y, coefficient[-1])
        found, drawn = found[:, 0], found[None, :, 0] + (weights - 1) @ influence[:, :, 0]
    else:
        kernel = weighted.spearman if coefficient == "spearman" else weighted.pearson
        found, drawn = kernel(x, y, np.ones((1, len(y))))[0, :, 0], kernel(x, y, weights)[:, :, 0]
    low, high = np.nanpercentile(drawn[:, 0] - drawn[:, 1], [2.5, 97.5])
    p = _centred_p(outward(found, scale), outward(drawn, scale), units_drawn)
    return Difference(value, p, float(low), float(high), len(y), method)


def _centred_p(found: Array, drawn: Array, units: int) -> float:
    """How often a draw lies as far from the difference found as that lies from 0, on the `outward` scale.

    Koehn counts how often the sign turns; below a hundred records that alarms too often (meta_calibration.py)."""
    gap = abs(found[0] - found[1])
    away = np.abs(drawn[:, 0] - drawn[:, 1] - (found[0] - found[1])) * np.sqrt(units / max(1, units - 1))
    return float((1 + (~(away < gap)).sum()) / (len(drawn) + 1))  # an undefined draw counts against significance


def permutation_difference(
    human: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    coefficient: str = "pearson",
    *,
    units: Sequence[Hashable] | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> Difference:
    """Swap the two metrics at random, unit by unit, after bringing them to one scale (z-scores; ranks for rank
    correlations): under the null hypothesis they are exchangeable. No interval: the test gives none."""
    y, x, unit = _complete(human, first, second, units)
    method = f"permutation of both metrics, {draws} draws, seed {seed}"
    value, reason = _gap(x, y, coefficient)
    if coefficient == "accuracy":
        reason = reason or "not made for accuracy, whose tie threshold belongs to one metric's scale"
    if value is None or reason:
        return Difference(value, None, None, None, len(y), method, reason)
    one_scale = _ranks(x) if coefficient != "pearson" else (x - x.mean(axis=0)) / x.std(axis=0)
    rng = np.random.default_rng(seed)
    swap = rng.integers(0, 2, size=(draws, int(unit.max()) + 1), dtype=np.int8)[:, unit].astype(bool)
    a, b = one_scale.T
    gaps = _swapped(np.where(swap, b, a), y, coefficient) - _swapped(np.where(swap, a, b), y, coefficient)
    observed = _swapped(a[None], y, coefficient) - _swapped(b[None], y, coefficient)
    extreme = (np.abs(gaps) >= abs(observed[0]) - 1e-12) | ~np.isfinite(gaps)
    return Difference(value, float((1 + extreme.sum()) / (draws + 1)), None, None, len(y), method)


def _swapped(rows: Array, y: Array, coefficient: str) -> Array:
    """The correlation of each row with the ratings."""
    if coefficient == "pearson":
        target = (y[:, 0] - y[:, 0].mean()) / np.linalg.norm(y[:, 0] - y[:, 0].mean())
        centred = rows - rows.mean(axis=1, keepdims=True)
        return np.asarray(centred @ target / np.linalg.norm(centred, axis=1))
    if coefficient == "spearman":
        from scipy.stats import rankdata

        return _swapped(rankdata(rows, axis=1), _ranks(y), "pearson")
    return np.array([weighted.kendall_influence(row[:, None], y, coefficient[-1])[0][0, 0] for row in rows])


def williams(r_first: float, r_second: float, r_between: float, n: int) -> float:
    """Two-sided p that two correlations with the same variable are equal, given the correlation between the two."""
    from scipy.stats import t

    if n < 4:
        raise UsageError(f"Williams' test needs at least 4 records, not {n}")
    determinant = 1 - r_first**2 - r_second**2 - r_between**2 + 2 * r_first * r_second * r_between
    mean = (r_first + r_second) / 2
    spread = 2 * determinant * (n - 1) / (n - 3) + mean**2 * (1 - r_between) ** 3
    if spread <= 0:
        return 1.0
    statistic = (r_first - r_second) * np.sqrt((n - 1) * (1 + r_between) / spread)
    return float(2 * t.sf(abs(statistic), n - 3))


def williams_difference(human: ArrayLike, first: ArrayLike, second: ArrayLike) -> Difference:
    """Williams' test on the data themselves (Pearson; records taken as independent)."""
    y, x, _ = _complete(human, first, second, None)
    value, reason = _gap(x, y, "pearson")
    if value is None or len(y) < 4:
        return Difference(None, None, None, None, len(y), "Williams", reason or f"only {len(y)} records (4 needed)")
    r = np.corrcoef(np.concatenate([y, x], axis=1).T)
    return Difference(value, williams(r[0, 1], r[0, 2], r[1, 2], len(y)), None, None, len(y), "Williams")


def holm(pvalues: ArrayLike) -> Array:
    """P-values corrected so that the chance of any false alarm stays below the level (Holm 1979)."""
    p = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    factor = len(p) - np.arange(len(p))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factor))
    return corrected


def benjamini_hochberg(pvalues: ArrayLike) -> Array:
    """P-values corrected so that the share of false alarms stays below the level (Benjamini & Hochberg 1995)."""
    p = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(p, kind="stable")[::-1]
    factor = len(p) / np.arange(len(p), 0, -1)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(1.0, np.minimum.accumulate(p[order] * factor))
    return corrected


def uncorrected(pvalues: ArrayLike) -> Array:
    """P-values as they are."""
    return np.asarray(pvalues, dtype=np.float64)


CORRECTIONS: dict[str, Callable[[ArrayLike], Array]] = {"holm": holm, "bh": benjamini_hochberg, "none": uncorrected}


def clusters(differs: NDArray[np.bool_]) -> list[str]:
    """Letters for metrics in order of rank: two that share a letter do not differ (a compact letter display).

    `differs[i, j]` says whether metrics i and j (i before j) differ significantly."""
    n = len(differs)
    runs: list[tuple[int, int]] = []
    for start in range(n):
        end = start
        while end + 1 < n and not differs[start : end + 1, end + 1].any():
            end += 1
        if not runs or end > runs[-1][1]:
            runs.append((start, end))
    letters = ["".join(_letter(k) for k, (a, b) in enumerate(runs) if a <= i <= b) for i in range(n)]
    return letters


def _letter(k: int) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[k % 26] + ("" if k < 26 else str(k // 26))


def _complete(
    human: ArrayLike, first: ArrayLike, second: ArrayLike, units: Sequence[Hashable] | None
) -> tuple[Array, Array, NDArray[np.int64]]:
    columns = [np.asarray(c, dtype=np.float64) for c in (human, first, second)]
    if len({c.shape for c in columns}) != 1 or columns[0].ndim != 1:
        raise UsageError("ratings and both metrics must be lists of the same length")
    if units is not None and len(units) != len(columns[0]):
        raise UsageError(f"{len(units)} units for {len(columns[0])} records")
    y, a, b = columns
    both = np.isfinite(y) & np.isfinite(a) & np.isfinite(b)
    labels = [u for u, k in zip(units, both, strict=True) if k] if units is not None else range(int(both.sum()))
    return y[both, None], np.stack([a[both], b[both]], axis=1), codes(list(labels))


def _gap(x: Array, y: Array, coefficient: str) -> tuple[float | None, str | None]:
    from quaestor.meta.correlation import coefficient as one

    first, second = one(x[:, 0], y[:, 0], coefficient), one(x[:, 1], y[:, 0], coefficient)
    if first.value is None or second.value is None:
        return None, first.reason or second.reason
    return first.value - second.value, None


def _ranks(columns: Array) -> Array:
    from scipy.stats import rankdata

    return np.asarray(rankdata(columns, axis=0), dtype=np.float64)
