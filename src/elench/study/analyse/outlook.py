"""Where a running study is going: what finishing costs, and whether the planned comparison will be decided."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from elench.study.analyse.scores import JudgementSums, judgements, tabulate
from elench.study.analyse.sittings import Sitting
from elench.study.folder import Study

LEAST_UNITS = 4
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Outlook:
    """Cost and the chance of a decision."""

    target: int
    """Ratings of whole tasks that must pass."""
    counted: int
    """Of these, how many there are."""
    spent: float
    to_completion: float | None
    """Expected further cost, at the share of work that has passed so far."""
    currency: str
    comparison: str
    decided: float | None
    """Probability that the planned comparison is significant (.05) at completion; None: too few ratings yet."""
    share: float | None
    """Expected share of all pairs of systems that are significant at completion (Bonferroni)."""
    units: int


def outlook(study: Study, sittings: Sequence[Sitting], target: int) -> Outlook:
    """Judge from the submitted work so far; `target` is the number of tasks that must pass."""
    reward = study.protocol.reward
    done = [s for s in sittings if s.state == "submitted"]
    counted = [s for s in done if s.slot is not None]
    paid = done if reward.failed else counted
    left = max(0, target - len(counted))
    pass_rate = (len(counted) + 1) / (len(done) + 1)
    per_pass = (reward.per_task / pass_rate if reward.failed else reward.per_task) + reward.bonus
    priced = reward.per_task > 0 or reward.bonus > 0
    found = judgements(study, counted, study.protocol.standardise) if counted else []
    first, second, chance, share, units = "", "", None, None, 0
    if found:
        rated = [name for name in study.systems if any(j.system == name for j in found)]
        table = tabulate(found, rated, len(study.protocol.criteria))
        units = len(table.units)
        first, second, chance, share = _decisions(study, table, target / len(counted))
    return Outlook(
        target=target,
        counted=len(counted),
        spent=len(paid) * reward.per_task + len(counted) * reward.bonus,
        to_completion=left * per_pass if priced else None,
        currency=reward.currency,
        comparison=f"{first} against {second}" if first else "",
        decided=chance,
        share=share,
        units=units,
    )


def _decisions(study: Study, table: JudgementSums, growth: float) -> tuple[str, str, float | None, float | None]:
    """The planned pair (else the best two so far), its chance, and the mean chance of all pairs."""
    order = sorted(range(len(table.systems)), key=lambda k: -table.scores()[k, -1])
    if len(order) < 2:
        return "", "", None, None
    pair = (table.systems[order[0]], table.systems[order[1]])
    if study.compare is not None and set(study.compare) <= set(table.systems):
        pair = study.compare
    places = {name: k for k, name in enumerate(table.systems)}
    all_pairs = list(itertools.combinations(range(len(table.systems)), 2))
    chances = [decision_chance(table, i, j, growth, 0.05 / len(all_pairs)) for i, j in all_pairs]
    known = [chance for chance in chances if chance is not None]
    chance = decision_chance(table, places[pair[0]], places[pair[1]], growth, 0.05)
    return pair[0], pair[1], chance, sum(known) / len(known) if known else None


def decision_chance(table: JudgementSums, first: int, second: int, growth: float, alpha: float) -> float | None:
    """Predictive probability that two systems differ significantly once `growth` times as much is rated.

    With n differences of mean d and deviation s now, and N = growth · n at the end, the final mean is normal around d
    with variance s² (1/n - 1/N) (a flat prior on the true difference); it is significant beyond z · s / √N.
    """
    gaps = table.unit_means[:, first] - table.unit_means[:, second]
    gaps = gaps[np.isfinite(gaps)]
    n = len(gaps)
    if n < LEAST_UNITS:
        return None
    d, s = float(gaps.mean()), float(gaps.std(ddof=1))
    if s == 0:
        return float(d != 0)
    final = max(float(n), growth * n)
    edge = _NORMAL.inv_cdf(1 - alpha / 2) * s / math.sqrt(final)
    spread = s * math.sqrt(max(0.0, 1 / n - 1 / final))
    if spread == 0:
        return float(abs(d) > edge)
    return 1 - _NORMAL.cdf((edge - d) / spread) + _NORMAL.cdf((-edge - d) / spread)
