"""Standard errors and p-values where a naive resampling says too much: against brute force and counting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from elench.evaluate.judgements import Judgements
from elench.records.record import Record
from elench.stats.correlation import correlate
from elench.stats.pairwise import calibrated_draws, soft_accuracy
from elench.stats.roc import equal_areas
from tests.evaluate.made import table


def made(scores: np.ndarray, human: np.ndarray, groups: list[str], systems: list[str]) -> Judgements:
    records = [Record(id=str(k), group=g, system=s) for k, (g, s) in enumerate(zip(groups, systems, strict=True))]
    names = tuple(f"m{k}" for k in range(scores.shape[1]))
    return Judgements(records, names, scores, dict.fromkeys(names, "metric"), ("q",), human[:, None])


def test_soft_accuracy_varies_with_the_items() -> None:
    """Its standard error over items against 200 bootstraps that recompute every permutation p-value."""
    one = table(items=30, systems=5, metrics=2, seed=3)
    found = correlate(one, "system", over="items", draws=400, coefficients=("soft-accuracy",))
    error = float(np.sqrt(found.draws["soft-accuracy"][0].variance()[0, 0]))
    rng = np.random.default_rng(0)
    item, system = np.repeat(np.arange(30), 5), np.tile(np.arange(5), 30)
    i, j = np.triu_indices(5, 1)
    drawn = []
    for _ in range(200):
        rows = (rng.integers(0, 30, 30)[:, None] * 5 + np.arange(5)).ravel()
        soft = soft_accuracy(one.scores[rows, :1], one.human[rows], item, system)
        assert soft is not None
        drawn.append(float(soft[i, j].mean()))
    assert error == pytest.approx(np.std(drawn), rel=0.3)
    low, high = found.low["soft-accuracy"][0, 0], found.high["soft-accuracy"][0, 0]
    assert high - low > 2 * error  # it was [.86, .86] with p < .001


def test_the_tie_threshold_is_chosen_anew_in_every_draw() -> None:
    """Against a search over every threshold, draw by draw."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(24, 1)), rng.integers(0, 3, size=(24, 1)).astype(float)
    members = [np.arange(4 * g, 4 * g + 4) for g in range(6)]
    times = rng.multinomial(6, np.full(6, 1 / 6), size=20).astype(float)

    def best(weights: np.ndarray) -> float:
        gaps = np.unique([0.0, *np.abs(x - x.T).ravel()])
        values = []
        for epsilon in gaps:
            right = 0.0
            for w, m in zip(weights, members, strict=True):
                pairs = [(a, b) for k, a in enumerate(m) for b in m[k + 1 :]]
                verdict = [0 if abs(x[a, 0] - x[b, 0]) <= epsilon else np.sign(x[a, 0] - x[b, 0]) for a, b in pairs]
                right += w * np.mean(
                    [v == np.sign(y[a, 0] - y[b, 0]) for v, (a, b) in zip(verdict, pairs, strict=True)]
                )
            values.append(right / weights.sum())
        return max(values)

    found = calibrated_draws(x, y, members, times)[:, 0, 0]
    expected = [best(row) - best(np.ones(6)) for row in times]
    assert found == pytest.approx(expected, abs=1e-12)


def test_a_metric_with_a_value_in_four_groups_gets_no_interval() -> None:
    rng = np.random.default_rng(0)
    groups = [f"g{k // 6}" for k in range(72)]
    scores, human = rng.normal(size=(72, 2)), rng.integers(1, 6, 72).astype(float)
    scores[24:, 0] = 0.0  # constant in 8 of 12 groups
    found = correlate(made(scores, human, groups, ["s"] * 72), "group", draws=200, coefficients=("pearson",))
    assert found.n[:, 0].tolist() == [4, 12]
    assert np.isnan(found.low["pearson"][0, 0]) and np.isfinite(found.low["pearson"][1, 0])
    assert found.gap_ps([(0, 1)], 0, "pearson")[0] == 1.0


def test_a_difference_without_any_spread_has_the_p_of_equal_signs() -> None:
    """r = 1 against r = -1 in six records: one of 2⁵ patterns of signs, not p = 0."""
    human = np.array([1.0, 2, 3, 4, 5, 6])
    found = correlate(made(np.stack([human, -human], axis=1), human, list("abcdef"), ["s"] * 6), draws=200,
                      coefficients=("pearson",))  # fmt: skip
    assert found.gap_ps([(0, 1)], 0, "pearson")[0] == pytest.approx(2.0**-5)
    good = np.tile([True, False], 10)
    assert equal_areas(good.astype(float), np.ones(20), good, np.repeat(np.arange(10), 2)) == pytest.approx(2.0**-9)


def test_system_means_that_cancel_are_tied() -> None:
    """The same z-scores in another order: the means differ by 1e-17, which is no order (tau-b 5 / √30 by hand)."""
    values = {"a": (-1.1, 0.7, 0.4), "b": (0.7, 0.4, -1.1), "c": (0.5, 0.2, 0.1), "d": (-0.5, -0.4, 0.1)}
    assert sum(values["a"]) != sum(values["b"])
    scores = np.array([v for row in values.values() for v in row])[:, None]
    human = np.repeat([3.0, 2.0, 4.0, 1.0], 3)
    one = made(scores, human, ["x", "y", "z"] * 4, [s for s in values for _ in range(3)])
    found = correlate(one, "system", draws=100, coefficients=("kendall-b",)).values["kendall-b"][0, 0]
    assert found == pytest.approx(5 / np.sqrt(5 * 6))  # 5 of 6 pairs concordant, one tied in the metric
    again = correlate(replace(one, scores=one.scores + 1e6), "system", draws=100, coefficients=("kendall-b",))
    assert again.values["kendall-b"][0, 0] == pytest.approx(found)


def test_study_scores_have_the_t_interval_of_passage_means() -> None:
    """Equal numbers of ratings per passage: scipy's t interval of the passage means, also with five passages."""
    from scipy import stats

    from elench.study.analyse.scores import JudgementSums, intervals

    rng = np.random.default_rng(0)
    means = rng.normal(size=(5, 2))
    counts = np.full((5, 2, 1), 4.0)
    low, high = intervals(
        JudgementSums(("a", "b"), tuple("vwxyz"), means[:, :, None] * counts, counts, np.full(2, 20.0))
    )
    for k in range(2):
        expected = stats.ttest_1samp(means[:, k], 0).confidence_interval()
        assert (low[k, -1], high[k, -1]) == (pytest.approx(expected.low), pytest.approx(expected.high))
