"""Stop comparing two systems as soon as their difference is certain, however often one looks (anytime-valid).

A sitting gives one difference D per pair of systems. If the systems are equally good, swapping them changes nothing,
so D is symmetric around 0 whatever came before (the null hypothesis of the signed-rank test, too). Then
E = ∏ exp(λ_i D_i - λ_i² D_i² / 2), with λ_i chosen from the past alone, is a supermartingale of mean at most 1
(de la Peña 1999), and by Ville's inequality it ever exceeds 1/α with probability at most α. Pairs are corrected with
Holm.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from elench.study.analyse.sittings import Sitting
from elench.study.folder import KNOWN, Study


class Bets:
    """Evidence against the equality of two systems, as the capital of somebody who bets on their difference."""

    def __init__(self) -> None:
        self.n = 0
        self._log = self._best = 0.0
        self._sum = self._squares = 0.0

    def add(self, difference: float) -> None:
        """Bet with the stake that would have grown most in the past (made smaller while that is short), then look."""
        if self._squares > 0:
            stake = self._sum / (self._squares * (1 + 2 / self.n))
            self._log += stake * difference - (stake * difference) ** 2 / 2
        self.n += 1
        self._sum += difference
        self._squares += difference**2
        self._best = max(self._best, self._log)

    @property
    def mean(self) -> float:
        return self._sum / self.n if self.n else 0.0

    @property
    def p(self) -> float:
        """Valid at any time: the chance that equal systems ever look so different."""
        return math.exp(-self._best)


@dataclass(frozen=True)
class PairState:
    """Two systems so far."""

    first: str
    second: str
    n: int
    difference: float
    """Mean, as a share of the scale."""
    p: float
    corrected: float
    """Holm over all pairs."""

    def decided(self, alpha: float = 0.05) -> bool:
        return self.corrected < alpha


def differences(study: Study, sitting: Sitting) -> Iterable[tuple[tuple[str, str], float]]:
    """One difference per pair of systems that a sitting compares: the mean over its screens or criteria."""
    task = study.by_id[sitting.task]
    scale = {c.name: (c.low, c.high) for c in study.protocol.criteria}
    by_place = {
        place: float(np.mean([(v - scale[n][0]) / (scale[n][1] - scale[n][0]) for n, v in given.items()]))
        for place, given in sitting.values.items()
        if given and task.items[place].kind == "ordinary"
    }
    groups = task.screens if study.protocol.comparative else (tuple(range(len(task.items))),)
    found: dict[tuple[str, str], list[float]] = {}
    for group in groups:
        levels: dict[str, list[float]] = {}
        for place in group:
            if place in by_place:
                levels.setdefault(task.items[place].system, []).append(by_place[place])
        for a, b in itertools.combinations(sorted(levels), 2):
            found.setdefault((a, b), []).append(float(np.mean(levels[a]) - np.mean(levels[b])))
    return [(pair, float(np.mean(values))) for pair, values in found.items()]


def pair_states(study: Study, sittings: Sequence[Sitting]) -> list[PairState]:
    """Every pair of systems, from the counted sittings in the order in which they were submitted."""
    from elench.stats.significance import holm

    bets = {pair: Bets() for pair in itertools.combinations(study.systems, 2)}
    counted = [s for s in sittings if s.state == "submitted" and s.slot is not None and s.task not in KNOWN]
    for sitting in sorted(counted, key=lambda s: (s.submitted or 0.0, s.id)):
        for pair, difference in differences(study, sitting):
            bets[pair].add(difference)
    corrected = holm([bet.p for bet in bets.values()])
    return [
        PairState(*pair, bet.n, bet.mean, bet.p, float(level))
        for (pair, bet), level in zip(bets.items(), corrected, strict=True)
    ]


def wanted_tasks(study: Study, states: Sequence[PairState]) -> dict[str, int]:
    """How much each task is needed: 2 when it compares the least certain pair, 1 another undecided one, 0 none."""
    undecided = [state for state in states if not state.decided()]
    if not undecided:
        return {task.id: 0 for task in study.tasks}
    worst = max(undecided, key=lambda state: (state.p, -state.n))
    open_pairs = {(state.first, state.second) for state in undecided}
    weights = {}
    for task in study.tasks:
        compared = compared_pairs(study, task.id)
        hit = (worst.first, worst.second) in compared
        weights[task.id] = 2 if hit else int(bool(compared & open_pairs))
    return weights


def compared_pairs(study: Study, task_id: str) -> set[tuple[str, str]]:
    task = study.by_id[task_id]
    groups = task.screens if study.protocol.comparative else (tuple(range(len(task.items))),)
    found: set[tuple[str, str]] = set()
    for group in groups:
        names = sorted({task.items[place].system for place in group if task.items[place].kind == "ordinary"})
        found |= set(itertools.combinations(names, 2))
    return found
