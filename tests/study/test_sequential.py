"""Stopping early without fooling oneself: error rate of the any-time test, and what it saves."""

from __future__ import annotations

import numpy as np

from elench.study.analyse.outlook import decision_chance
from elench.study.analyse.scores import JudgementSums
from elench.study.analyse.sequential import Bets, pair_states, wanted_tasks
from tests.study.conftest import MakeStudy
from tests.study.test_analyse import careful, sitting


def ever_decides(differences: np.ndarray) -> bool:
    bets = Bets()
    for difference in differences:
        bets.add(float(difference))
    return bets.p < 0.05


def test_equal_systems_are_told_apart_in_at_most_five_percent_of_runs_however_often_one_looks() -> None:
    """Looked at after each of 200 differences; a t-test at every look would be wrong in far more runs."""
    rng = np.random.default_rng(0)
    wrong = {
        "even": sum(ever_decides(rng.choice([-1, 1], 200)) for _ in range(400)),
        "small": sum(ever_decides(rng.normal(0, 0.1, 200)) for _ in range(400)),
        "heavy": sum(ever_decides(rng.standard_t(2, 200)) for _ in range(400)),
        "mostly ties": sum(ever_decides(rng.choice([-1, 0, 1], 200, p=[0.1, 0.8, 0.1])) for _ in range(400)),
    }
    assert all(count <= 0.05 * 400 + 8 for count in wrong.values()), wrong  # two standard errors of 400 runs


def test_a_clear_difference_is_decided_early() -> None:
    rng = np.random.default_rng(1)
    needed = []
    for _ in range(50):
        bets = Bets()
        while bets.p >= 0.05 and bets.n < 400:
            bets.add(float(np.clip(rng.normal(0.1, 0.1), -1, 1)))
        needed.append(bets.n)
    assert np.median(needed) < 30


def test_decided_pairs_are_no_longer_asked_about(make_study: MakeStudy) -> None:
    from dataclasses import replace

    study = make_study(systems=3, passages=40, adaptive=True)
    rng = np.random.default_rng(0)
    rows = [
        replace(sitting(study, task.id, f"r{k}", careful(rng)), slot=0, submitted=float(k))
        for k, task in enumerate(study.tasks)
    ]
    states = pair_states(study, rows)
    assert {(s.first, s.second) for s in states if s.decided()} >= {("human", "system02")}
    assert all(s.n == 40 for s in states)
    weights = wanted_tasks(study, [s for s in states if s.decided()])
    assert set(weights.values()) == {0}
    assert set(wanted_tasks(study, pair_states(study, [])).values()) == {2}


def test_the_chance_of_a_decision_is_that_of_a_simulation() -> None:
    """The predictive probability against drawing the rest of the study many times."""
    rng = np.random.default_rng(3)
    gaps = rng.normal(0.25, 1, 20)
    sums = np.zeros((20, 2, 1))
    sums[:, 0, 0] = gaps
    table = JudgementSums(("a", "b"), tuple(map(str, range(20))), sums, np.ones((20, 2, 1)), np.ones(2))
    found = decision_chance(table, 0, 1, 4.0, 0.05)
    d, s = gaps.mean(), gaps.std(ddof=1)
    truths = rng.normal(d, s / np.sqrt(20), 4000)
    finals = (gaps.sum() + rng.normal(truths[:, None], s, (4000, 60)).sum(axis=1)) / 80
    drawn = np.mean(np.abs(finals) > 1.96 * s / np.sqrt(80))
    assert found is not None and abs(found - drawn) < 0.03
