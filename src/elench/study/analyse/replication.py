"""Would another run give the same ranking? Two studies, or random halves of the raters of one (Table 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from elench.errors import UsageError
from elench.stats.correlation import coefficient
from elench.study.analyse.scores import Judged, tabulate


@dataclass(frozen=True)
class SelfReplication:
    """Correlations between the system scores of two runs."""

    measure: str
    """overall or a criterion"""
    pearson: float | None
    spearman: float | None
    kendall: float | None
    systems: int
    reason: str = ""


def correlate(measure: str, first: NDArray[np.float64], second: NDArray[np.float64]) -> SelfReplication:
    """r, rho and tau-b over systems that both runs scored."""
    r, rho, tau = (coefficient(first, second, name) for name in ("pearson", "spearman", "kendall-b"))
    reason = ""
    if r.value is None:
        few = "fewer than 3 systems with scores in both"
        reason = few if r.n < 3 else "all systems score the same in one of the runs"
    return SelfReplication(measure, r.value, rho.value, tau.value, r.n, reason)


def between(
    first: Sequence[Judged], second: Sequence[Judged], systems: Sequence[str], criteria: Sequence[str]
) -> list[SelfReplication]:
    """Two runs of the study with the same systems and criteria."""
    if not {j.system for j in second} & set(systems):
        raise UsageError("the two studies have no system in common: self-replication compares runs on the same systems")
    known = [j for j in second if j.system in set(systems)]
    one, two = (tabulate(run, systems, len(criteria)).scores() for run in (first, known))
    measures = ["overall", *criteria]
    order = [len(criteria), *range(len(criteria))]
    return [correlate(name, one[:, k], two[:, k]) for name, k in zip(measures, order, strict=True)]


def halves(
    found: Sequence[Judged], systems: Sequence[str], criteria: Sequence[str], splits: int, seed: int
) -> list[SelfReplication]:
    """Mean correlations over random halves of the raters; a half is a smaller run, so this is a cautious figure."""
    table = tabulate(found, systems, len(criteria), by="rater")
    raters = len(table.units)
    if raters < 4:
        return [SelfReplication("overall", None, None, None, 0, f"only {raters} raters: halves need at least 4")]
    rng = np.random.default_rng(seed)
    results: dict[str, list[SelfReplication]] = {}
    for _ in range(splits):
        side = np.zeros(raters)
        side[rng.permutation(raters)[: raters // 2]] = 1
        one, two = table.scores(np.stack([side, 1 - side]))
        for k, name in enumerate([*criteria, "overall"]):
            results.setdefault(name, []).append(correlate(name, one[:, k], two[:, k]))
    return [_average(name, results[name]) for name in ("overall", *criteria)]


def _average(name: str, runs: list[SelfReplication]) -> SelfReplication:
    good = [run for run in runs if run.pearson is not None]
    if not good:
        return runs[0]
    r, rho, tau = (mean(getattr(run, which) for run in good) for which in ("pearson", "spearman", "kendall"))
    return SelfReplication(name, r, rho, tau, good[0].systems)
