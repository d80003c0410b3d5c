"""Does one metric agree better with human judgements than another? Tests of two dependent correlations, corrections.

* `bootstrap_difference`: units are drawn with replacement, both metrics on the same draw;
* `permutation_difference`: the metrics' standardised scores are swapped at random, unit by unit (Deutsch et al. 2021);
  swapping single records is their PERM-BOTH. The pairwise accuracy swaps the verdicts on pairs instead (Deutsch et al.
  2023), because a swapped metric would need another tie threshold;
* `williams`: closed form for Pearson's r (Williams 1959).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elench.errors import UsageError
from elench.stats.correlation import OVER, Sampling, scale_of
from elench.stats.levels import Block, estimate
from elench.stats.pairwise import pair_verdicts
from elench.stats.resampling import Replicates, difference_p, exchange_p, exchanges, outward, spread
from elench.stats.resampling_plan import FEWEST_UNITS, Ints, ResamplingPlan, codes
from elench.stats.weighted import ROUNDING, merge_ties

Array = NDArray[np.float64]


class Difference(NamedTuple):
    """How much better the first metric agrees with human judgements than the second."""

    value: float | None
    """First coefficient minus second; None where either is undefined."""
    p: float | None
    """Two-sided."""
    low: float | None
    high: float | None
    n: int
    method: str
    reason: str | None = None
    values: tuple[float | None, float | None] = (None, None)
    """Both coefficients, on the records that both metrics score"""


class Design(NamedTuple):
    """What the records of a test belong to, and the level of the coefficient."""

    level: str = "segment"
    units: Sequence[Hashable] | None = None
    """Each record's group; None: records are independent"""
    systems: Sequence[Hashable] | None = None
    over: str | None = None
    """items, systems or both; by default both at system level, else items"""

    @property
    def drawn(self) -> tuple[str, ...]:
        return OVER[self.over or ("both" if self.level == "system" else "items")]


ALONE = Design()
"""Independent records, pooled"""


def bootstrap_difference(
    human: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    coefficient: str = "pearson",
    *,
    design: Design = ALONE,
    draws: int = 1000,
    seed: int = 0,
) -> Difference:
    """Paired resampling by the design; p on Fisher's z scale, t interval of the difference itself."""
    y, x, plan = _complete(human, first, second, design)
    method = f"paired bootstrap, {draws} draws, seed {seed}"
    sampling = Sampling(design.level, x, y, plan, draws, seed)
    rows = np.arange(len(y))
    found = estimate(design.level, sampling.block(rows, [0, 1], [0], True), coefficient, sampling.drawings)
    both = _both(found.values)
    if both[0] is None or both[1] is None:
        return Difference(None, None, None, None, len(y), method, _why(x, y), both)
    gap = both[0] - both[1]
    parts = [
        (d, sampling.units(d, rows, found)[0, 0], drawn[:, :, 0])
        for d, drawn in zip(sampling.drawings, found.replicates, strict=True)
    ]
    scale = scale_of(coefficient)
    raw = [Replicates(v[:, 0] - v[:, 1], units, d.jackknife, d.sign) for d, units, v in parts]
    out = [(d, units, outward(v, scale)) for d, units, v in parts]
    moved = [Replicates(v[:, 0] - v[:, 1], units, d.jackknife, d.sign) for d, units, v in out]
    few = min(int(units) for _, units, _ in parts)
    if few < FEWEST_UNITS:
        reason = f"only {few} units to resample (at least {FEWEST_UNITS} needed)"
        return Difference(gap, None, None, None, len(y), method, reason, both)
    p = float(difference_p(outward(np.array(both[0]), scale) - outward(np.array(both[1]), scale), moved))
    low, high = _t_limits(gap, raw)
    return Difference(gap, p, low, high, len(y), method, None, both)


def _t_limits(value: float, parts: Sequence[Replicates]) -> tuple[float | None, float | None]:
    from scipy.stats import t

    error, freedom = spread(parts)
    reach = float(error * t.ppf(0.975, freedom))
    return (max(-2.0, value - reach), min(2.0, value + reach)) if np.isfinite(reach) else (None, None)


def permutation_difference(
    human: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    coefficient: str = "pearson",
    *,
    design: Design = ALONE,
    by: str = "units",
    draws: int = 1000,
    seed: int = 0,
) -> Difference:
    """Swap the two metrics' standardised scores. `by`: "units" of the design (whole systems where those are resampled,
    else groups), or "records" (PERM-BOTH), which takes records as exchangeable one by one."""
    y, x, plan = _complete(human, first, second, design)
    unit, what = _swapped_units(plan, by)
    method = f"permutation of both metrics by {what}, {draws} draws, seed {seed}"
    both = _both(_level_values(x, y, plan, design.level, coefficient))
    if both[0] is None or both[1] is None:
        return Difference(None, None, None, None, len(y), method, _why(x, y), both)
    gap = both[0] - both[1]
    count = int(unit.max()) + 1
    if 2.0 ** (1 - count) > 0.05:
        reason = f"only {count} {what} to swap: no p-value can fall below {2.0 ** (1 - count):.2g}"
        return Difference(gap, None, None, None, len(y), method, reason, both)
    if coefficient == "accuracy":
        if by == "units" and design.level != "group":
            reason = "verdicts on pairs of one record are not independent: only PERM-BOTH, or the bootstrap"
            return Difference(gap, None, None, None, len(y), method, reason, both)
        p = _pair_swaps(x, y, plan, design.level, by, draws, seed)
        return Difference(gap, p, None, None, len(y), method.replace("both metrics", "verdicts on pairs"), None, both)
    if coefficient.startswith("soft"):
        return Difference(gap, None, None, None, len(y), method, "no permutation test for the soft accuracy", both)
    gaps = np.concatenate(
        [permuted_gaps(x, y, plan, design.level, coefficient, swap[:, unit]) for swap in exchanges(draws, count, seed)]
    )
    observed = permuted_gaps(x, y, plan, design.level, coefficient, np.zeros((1, len(y))))[0]
    extreme = (np.abs(gaps) >= abs(observed) - 1e-12) | ~np.isfinite(gaps)
    return Difference(gap, exchange_p(int(extreme.sum()), draws, count), None, None, len(y), method, None, both)


def _swapped_units(plan: ResamplingPlan, by: str) -> tuple[Ints, str]:
    if by == "records":
        return np.arange(len(plan.group)), "records"
    if "systems" in plan.over:
        return plan.system, "systems"
    return plan.group, "groups" if plan.grouped else "records"


def permuted_gaps(x: Array, y: Array, plan: ResamplingPlan, level: str, coefficient: str, swap: Array) -> Array:
    """The difference of the two coefficients after each exchange (draws × records of 0 and 1)."""
    spread_ = x.std(axis=0)
    a, b = ((x - x.mean(axis=0)) / np.where(spread_ > 0, spread_, 1.0)).T
    out = np.empty(len(swap))
    step = max(1, 2_000_000 // len(y))
    for start in range(0, len(swap), step):
        chosen = swap[start : start + step] > 0
        columns = np.concatenate([np.where(chosen, b, a), np.where(chosen, a, b)]).T
        values = _level_values(columns, y, plan, level, coefficient)[:, 0]
        out[start : start + step] = values[: len(chosen)] - values[len(chosen) :]
    return out


def _level_values(x: Array, y: Array, plan: ResamplingPlan, level: str, coefficient: str) -> Array:
    return estimate(level, Block(x, y, np.arange(len(y)), plan.group, plan.system), coefficient, []).values


def _pair_swaps(x: Array, y: Array, plan: ResamplingPlan, level: str, by: str, draws: int, seed: int) -> float:
    """Exchange the metrics' verdicts on pairs: on each pair alone (an exact binomial test, McNemar's, of the pairs that
    only one metric orders as people do), or on all pairs of a group together."""
    from scipy.stats import binomtest

    gap, group = pair_verdicts(x, y, plan.group, plan.system, level)
    if by == "records":
        won, lost = int((gap > 0).sum()), int((gap < 0).sum())
        return float(binomtest(won, won + lost).pvalue) if won + lost else 1.0
    sums = np.bincount(group, gap)
    flips = exchanges(draws, len(sums), seed)
    extreme = sum(int((np.abs((1 - 2 * swap) @ sums) >= abs(sums.sum()) - 1e-12).sum()) for swap in flips)
    return exchange_p(extreme, draws, len(sums))


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
    y, x, plan = _complete(human, first, second, ALONE)
    both = _both(_level_values(x, y, plan, "segment", "pearson"))
    if both[0] is None or both[1] is None or len(y) < 4:
        few = f"only {len(y)} records (4 needed)"
        return Difference(None, None, None, None, len(y), "Williams", _why(x, y) if len(y) > 3 else few, both)
    r = np.corrcoef(np.concatenate([y, x], axis=1).T)
    p = williams(r[0, 1], r[0, 2], r[1, 2], len(y))
    return Difference(both[0] - both[1], p, None, None, len(y), "Williams", None, both)


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


def _complete(
    human: ArrayLike, first: ArrayLike, second: ArrayLike, design: Design
) -> tuple[Array, Array, ResamplingPlan]:
    columns = [np.asarray(c, dtype=np.float64) for c in (human, first, second)]
    if len({c.shape for c in columns}) != 1 or columns[0].ndim != 1:
        raise UsageError("ratings and both metrics must be lists of the same length")
    for labels, what in ((design.units, "units"), (design.systems, "systems")):
        if labels is not None and len(labels) != len(columns[0]):
            raise UsageError(f"{len(labels)} {what} for {len(columns[0])} records")
    both = np.isfinite(columns[0]) & np.isfinite(columns[1]) & np.isfinite(columns[2])
    y, a, b = (c[both] for c in columns)
    n = len(y)
    group = codes(_kept(design.units, both)) if design.units is not None else np.arange(n)
    system = codes(_kept(design.systems, both)) if design.systems is not None else np.zeros(n, dtype=np.int64)
    plan = ResamplingPlan(group, system, int(group.max(initial=-1)) + 1 < n, design.drawn)
    human = merge_ties(y[:, None], ROUNDING * np.abs(y).max(initial=0.0))
    return human, merge_ties(np.stack([a, b], axis=1)), plan


def _kept(labels: Sequence[Hashable], mask: NDArray[np.bool_]) -> list[Hashable]:
    return [label for label, keep in zip(labels, mask, strict=True) if keep]


def _both(values: Array) -> tuple[float | None, float | None]:
    first, second = (float(v) if np.isfinite(v) else None for v in values[:2, 0])
    return first, second


def _why(x: Array, y: Array) -> str:
    from elench.stats.correlation import why_undefined

    reasons = [why_undefined(x[:, k], y[:, 0]) for k in range(2)]
    return next((r for r in reasons if r), "the coefficient is undefined at this level")
