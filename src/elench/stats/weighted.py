"""Correlations of many metrics with many human dimensions at once, under many resamplings at once.

A resample is a row of counts: how often each record was drawn. So one matrix `weights` (draws × records) describes a
whole bootstrap, and every coefficient below becomes a handful of matrix products.
All functions take complete data: metrics `x` (records × metrics), ratings `y` (records × dimensions).
They give draws × metrics × dimensions; an undefined value (nothing varies) is NaN, and the caller says why.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_FLAT = 1e-12
"""Variance, relative to the column's own, below which a resample counts as constant."""
_SAME = 1e-10
"""Values closer than this share of the largest are equal: the same numbers summed in another order."""


ROUNDING = 1e-13
"""What summing in another order can change, as a share of the largest term."""


def pearson(x: Array, y: Array, weights: Array) -> Array:
    """Pearson's r in every resample."""
    x, y = _standard(x), _standard(y)
    total = np.maximum(weights.sum(axis=1, keepdims=True), _FLAT)  # a draw without any record has no variance
    mean_x, mean_y = weights @ x / total, weights @ y / total
    var_x, var_y = weights @ x**2 / total - mean_x**2, weights @ y**2 / total - mean_y**2
    products = (x[:, :, None] * y[:, None, :]).reshape(len(x), -1)
    cross = (weights @ products / total).reshape(len(weights), x.shape[1], y.shape[1])
    cov = cross - mean_x[:, :, None] * mean_y[:, None, :]
    return _ratio(cov, var_x[:, :, None], var_y[:, None, :])


def spearman(x: Array, y: Array, weights: Array) -> Array:
    """Spearman's rho in every resample: ranks are taken anew in each, ties share their middle rank."""
    draws, n = weights.shape
    out = np.empty((draws, x.shape[1], y.shape[1]))
    step = max(1, 4_000_000 // (n * (x.shape[1] + y.shape[1])))
    for start in range(0, draws, step):
        w = weights[start : start + step]
        total = w.sum(axis=1)
        rx = np.stack([midranks(column, w) for column in x.T], axis=2) - total[:, None, None] / 2
        ry = np.stack([midranks(column, w) for column in y.T], axis=2) - total[:, None, None] / 2
        weighted = (rx * w[:, :, None]).transpose(0, 2, 1)
        cov = np.matmul(weighted, ry)
        var_x = np.einsum("bmn,bnm->bm", weighted, rx)
        var_y = np.einsum("bn,bnd,bnd->bd", w, ry, ry)
        scale = np.maximum(total**3, _FLAT)[:, None, None]
        out[start : start + step] = _ratio(cov / scale, (var_x[:, :, None]) / scale, var_y[:, None, :] / scale)
    return out


def midranks(values: Array, weights: Array) -> Array:
    """Each record's middle rank (minus one half) in every resample."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    group = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(values))))
    heights = np.add.reduceat(weights[:, order], first, axis=1)
    middle = np.cumsum(heights, axis=1) - heights / 2
    ranks = np.empty_like(weights)
    ranks[:, order] = middle[:, group]
    return ranks


def kendall(x: Array, y: Array, weights: Array, variant: str = "b") -> Array:
    """Kendall's tau-b or tau-c in every resample, from all pairs: for a few hundred records at most.

    Tau-c's table size (its `m`) is the full sample's, also in resamples."""
    i, j = np.triu_indices(len(x), 1)
    sign_x, sign_y = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
    pairs = weights[:, i] * weights[:, j]
    products = (sign_x[:, :, None] * sign_y[:, None, :]).reshape(len(i), -1)
    conc = (pairs @ products).reshape(len(weights), x.shape[1], y.shape[1])
    if variant == "c":
        return _tau_c(conc, weights.sum(axis=1)[:, None, None], _table_size(x, y))
    return _ratio(conc, (pairs @ sign_x**2)[:, :, None], (pairs @ sign_y**2)[:, None, :])


def per_draw(x: Array, y: Array, times: Array, name: str) -> Array:
    """A coefficient of values that differ from draw to draw, such as system means over resampled items.

    x and y are draws × units × columns; `times` (draws × units) says how often each unit counts."""
    if name == "pearson":
        return _moments(x, y, times)
    sign_x, sign_y = _signs(x), _signs(y)  # draws × i × j × columns
    if name == "spearman":
        rank_x, rank_y = np.einsum("bj,bijm->bim", times, sign_x), np.einsum("bj,bijd->bid", times, sign_y)
        return _moments(rank_x / 2, rank_y / 2, times)
    pairs = times[:, :, None] * times[:, None] / 2
    weighted_x = (sign_x * pairs[..., None]).reshape(len(x), -1, x.shape[2])
    conc = np.matmul(weighted_x.transpose(0, 2, 1), sign_y.reshape(len(y), -1, y.shape[2]))
    if name == "kendall-c":
        return _tau_c(conc, times.sum(axis=1)[:, None, None], np.full(conc.shape[1:], float(x.shape[1])))
    all_x, all_y = np.einsum("bij,bijm->bm", pairs, sign_x**2), np.einsum("bij,bijd->bd", pairs, sign_y**2)
    return _ratio(conc, all_x[:, :, None], all_y[:, None])


def _signs(values: Array) -> Array:
    """The order of every two units; sums of the same numbers in another order count as equal."""
    gap = values[:, :, None] - values[:, None]
    return np.where(np.abs(gap) > _SAME * np.abs(values).max(axis=(0, 1)), np.sign(gap), 0.0)


def merge_ties(columns: Array, floor: Array | float = 0.0) -> Array:
    """Columns in which values that differ only by rounding (1e-10 of the values themselves) are made equal.

    Relative to the values, not to the largest of the column: COCO's BLEU orders texts without a match by values of
    1e-15, and published rank correlations count that order. Means and other sums lose digits where large terms cancel:
    for these `floor` is the difference that rounding alone can make.
    """
    order = np.argsort(columns, axis=0, kind="stable")
    ordered = np.take_along_axis(columns, order, axis=0)
    new = np.ones(columns.shape, dtype=bool)
    size = np.maximum(np.abs(ordered[1:]), np.abs(ordered[:-1]))
    new[1:] = np.diff(ordered, axis=0) > np.maximum(_SAME * size, floor)
    first = np.maximum.accumulate(np.where(new, np.arange(len(columns))[:, None], 0), axis=0)
    out = np.empty_like(columns)
    np.put_along_axis(out, order, np.take_along_axis(ordered, first, axis=0), axis=0)
    return out


def _moments(x: Array, y: Array, times: Array) -> Array:
    total = np.maximum(times.sum(axis=1), _FLAT)[:, None, None]
    w = times[:, :, None]
    x, y = x - (w * x).sum(axis=1, keepdims=True) / total, y - (w * y).sum(axis=1, keepdims=True) / total
    cov = np.matmul((w * x).transpose(0, 2, 1), y)
    scale_x, scale_y = np.abs(x).max(axis=(0, 1)) ** 2 + 1e-300, np.abs(y).max(axis=(0, 1)) ** 2 + 1e-300
    var_x, var_y = (w * x**2).sum(axis=1) / scale_x, (w * y**2).sum(axis=1) / scale_y
    scale = np.sqrt(scale_x)[:, None] * np.sqrt(scale_y)[None, :]
    return _ratio(cov / scale, var_x[:, :, None], var_y[:, None])


def kendall_influence(x: Array, y: Array, variant: str = "b") -> tuple[Array, Array]:
    """Kendall's tau (metrics × dimensions) and each record's influence on it (records × metrics × dimensions).

    The influences are the derivatives of tau by the records' weights (the infinitesimal jackknife of a U-statistic):
    their sum of squares is tau's sampling variance, and a group's influence is the sum over its records."""
    n = len(x)
    conc = np.stack([np.stack([concordance(a, b) for b in y.T], axis=1) for a in x.T], axis=1)
    total = conc.sum(axis=0) / 2
    if variant == "c":
        size = _table_size(x, y)
        tau = _tau_c(total, np.float64(n), size)
        return tau, np.asarray(_tau_c(conc, np.float64(n), size) - 2 * tau / n)
    untied_x, untied_y = _untied(x)[:, :, None], _untied(y)[:, None, :]
    all_x, all_y = untied_x.sum(axis=0) / 2, untied_y.sum(axis=0) / 2
    tau = _ratio(total, all_x, all_y)
    with np.errstate(invalid="ignore", divide="ignore"):
        influence = conc / np.sqrt(all_x * all_y) - tau / 2 * (untied_x / all_x + untied_y / all_y)
    return tau, influence


def concordance(a: Array, b: Array) -> Array:
    """For each record: pairs with the others in the same order in both lists, minus pairs in opposite order.

    Counts of smaller and larger `a` per level of `b`, so time goes with records × levels of the coarser list."""
    levels_a, levels_b = np.unique(a), np.unique(b)
    if len(levels_a) < len(levels_b):
        a, b, levels_b = b, a, levels_a
    rank = np.searchsorted(levels_b, b)
    order = np.argsort(a, kind="stable")
    ordered = a[order]
    left, right = np.searchsorted(ordered, a, "left"), np.searchsorted(ordered, a, "right")
    out = np.zeros(len(a))
    step = max(1, 8_000_000 // len(a))
    for start in range(0, len(levels_b), step):
        columns = np.arange(start, min(start + step, len(levels_b)))
        below = np.zeros((len(a) + 1, len(columns)), dtype=np.int32)
        np.cumsum(rank[order][:, None] == columns, axis=0, out=below[1:])
        balance = below[left] + below[right] - below[-1]  # how many more lie below than above, per level
        out += (np.sign(rank[:, None] - columns) * balance).sum(axis=1)
    return out


def _untied(columns: Array) -> Array:
    """For each record and column: how many other records have another value."""
    out = np.empty_like(columns)
    for k, column in enumerate(columns.T):
        _, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
        out[:, k] = len(column) - counts[inverse]
    return out


def _table_size(x: Array, y: Array) -> Array:
    sizes_x = np.array([len(np.unique(c)) for c in x.T])
    sizes_y = np.array([len(np.unique(c)) for c in y.T])
    return np.asarray(np.minimum(sizes_x[:, None], sizes_y[None, :]), dtype=np.float64)


def _tau_c(conc: Array, n: Array | np.float64, m: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(m > 1, 2 * conc * m / (n**2 * (m - 1)), np.nan))


def _standard(columns: Array) -> Array:
    """Columns with mean 0 and variance 1 (a constant column becomes zeros): sums of squares then keep their digits."""
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    flat = spread <= 1e-13 * np.maximum(1, np.abs(columns).max(axis=0))
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, spread))


def _ratio(cov: Array, var_x: Array, var_y: Array) -> Array:
    defined = (var_x > _FLAT) & (var_y > _FLAT)
    value = cov / np.sqrt(np.where(defined, var_x * var_y, 1.0))
    return np.where(defined, np.clip(value, -1.0, 1.0), np.nan)
