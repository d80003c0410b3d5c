"""Coefficients equal scipy's (1.17) to 1e-9, in the data and in every resample; levels and gaps do what they say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from elench.errors import UsageError
from elench.stats import weighted
from elench.stats.correlation import coefficient, correlate
from elench.stats.pairwise import all_pairs, calibrated_accuracy, pairs_within
from tests.evaluate.made import table

SCIPY = {
    "pearson": lambda x, y: stats.pearsonr(x, y)[0],
    "spearman": lambda x, y: stats.spearmanr(x, y)[0],
    "kendall-b": lambda x, y: stats.kendalltau(x, y, variant="b")[0],
    "kendall-c": lambda x, y: stats.kendalltau(x, y, variant="c")[0],
}
lists = st.integers(3, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-4, 4), min_size=n, max_size=n) for _ in range(2)])
)


@given(lists)
@settings(deadline=None, max_examples=60)
def test_coefficients_equal_scipy_with_many_ties(pair: tuple[list[int], list[int]]) -> None:
    x, y = (np.array(column, dtype=float) for column in pair)
    for name, reference in SCIPY.items():
        found = coefficient(x, y, name)
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            assert found.value is None
            assert "same" in (found.reason or "")
        else:
            assert found.value == pytest.approx(reference(x, y), abs=1e-9)


@pytest.mark.parametrize("name", ["pearson", "spearman", "kendall-b"])
def test_a_draw_is_the_coefficient_of_the_repeated_records(name: str) -> None:
    rng = np.random.default_rng(3)
    x, y = np.round(rng.normal(size=(40, 2)), 1), rng.integers(1, 4, size=(40, 1)).astype(float)
    times = rng.multinomial(40, np.full(40, 1 / 40), size=5)
    kernel = weighted.kendall if name == "kendall-b" else getattr(weighted, name)
    drawn = kernel(x, y, times.astype(float))
    for b, m in itertools.product(range(5), range(2)):
        expected = SCIPY[name](np.repeat(x[:, m], times[b]), np.repeat(y[:, 0], times[b]))
        assert drawn[b, m, 0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", SCIPY)
def test_values_that_change_from_draw_to_draw(name: str) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(4, 12, 2)), rng.normal(size=(4, 12, 1))
    times = rng.multinomial(12, np.full(12, 1 / 12), size=4)
    drawn = weighted.per_draw(x, y, times.astype(float), name)
    for b, m in itertools.product(range(4), range(2)):
        column, rating = np.repeat(x[b, :, m], times[b]), np.repeat(y[b, :, 0], times[b])
        if name == "kendall-c":  # scipy's m counts the distinct values of this draw, ours all units
            distinct = (times[b] > 0).sum()
            assert drawn[b, m, 0] * (12 - 1) / 12 * distinct / (distinct - 1) == pytest.approx(
                SCIPY[name](column, rating)
            )
        else:
            assert drawn[b, m, 0] == pytest.approx(SCIPY[name](column, rating), abs=1e-9)


def test_kendall_influence_is_the_derivative_by_the_weights() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 6, size=(30, 1)).astype(float), rng.integers(0, 4, size=(30, 1)).astype(float)
    for variant in "bc":
        _, influence = weighted.kendall_influence(x, y, variant)
        step = 1e-6
        for k in (0, 11, 29):
            up, down = np.ones((1, 30)), np.ones((1, 30))
            up[0, k] += step
            down[0, k] -= step
            slope = (weighted.kendall(x, y, up, variant) - weighted.kendall(x, y, down, variant)) / (2 * step)
            # pairs of a record with itself are no pairs: tau-b has none, tau-c's n² is the weights' sum
            assert influence[k, 0, 0] == pytest.approx(slope[0, 0, 0], abs=1e-6)


def accuracy_by_hand(h: list[float], m: list[float]) -> float:
    """Deutsch et al. 2023, by trying every threshold on every pair."""
    pairs = list(itertools.combinations(range(len(h)), 2))
    best = 0.0
    for epsilon in {0.0} | {abs(m[i] - m[j]) for i, j in pairs}:
        right = 0
        for i, j in pairs:
            gap = m[i] - m[j]
            sign = 0 if abs(gap) <= epsilon else np.sign(gap)
            right += sign == np.sign(h[i] - h[j])
        best = max(best, right / len(pairs))
    return best


@given(lists)
@settings(deadline=None, max_examples=40)
def test_pairwise_accuracy_finds_the_best_threshold(pair: tuple[list[int], list[int]]) -> None:
    h, m = ([float(v) for v in column[:14]] for column in pair)
    found = calibrated_accuracy(np.array(m)[:, None], np.array(h)[:, None], all_pairs(len(h)))
    assert found.value[0, 0] == pytest.approx(accuracy_by_hand(h, m), abs=1e-12)


def test_pairs_within_groups_weigh_groups_alike() -> None:
    pairs = pairs_within(np.array([0, 0, 1, 1, 1, 2]))
    assert pairs.weight.sum() == pytest.approx(1)
    assert pairs.weight[(pairs.i == 0) & (pairs.j == 1)] == pytest.approx(0.5)


def test_group_level_is_the_mean_over_groups() -> None:
    data = table(gaps=0.05)
    found = correlate(data, "group", draws=50)
    for m, (name, reference) in itertools.product(range(3), SCIPY.items()):
        values = []
        for g in range(20):
            x, y = data.scores[5 * g : 5 * g + 5, m], data.human[5 * g : 5 * g + 5, 0]
            both = np.isfinite(x)
            if both.sum() >= 3 and np.ptp(y[both]) > 0:
                values.append(reference(x[both], y[both]))
        assert found.values[name][m, 0] == pytest.approx(np.mean(values), abs=1e-9)
        assert found.n[m, 0] == len(values)


def test_system_level_correlates_means() -> None:
    data = table()
    found = correlate(data, "system", draws=50)
    means = [[np.mean(c[k::5]) for k in range(5)] for c in (data.scores[:, 0], data.human[:, 0])]
    for name, reference in SCIPY.items():
        assert found.values[name][0, 0] == pytest.approx(reference(*means), abs=1e-9)
    assert found.n[0, 0] == 5


@pytest.mark.parametrize("level", ["segment", "group", "system"])
@pytest.mark.parametrize("over", ["items", "systems", "both"])
def test_intervals_hold_the_value_and_repeat_with_the_seed(level: str, over: str) -> None:
    data = table(gaps=0.02)
    first, again = (correlate(data, level, over=over, draws=120, seed=9) for _ in range(2))
    for name in first.values:
        low, value, high = first.low[name], first.values[name], first.high[name]
        assert ((low <= value) & (value <= high)).all(), name
        assert np.array_equal(low, again.low[name])


def test_gaps_are_left_out_per_metric_and_counted() -> None:
    data = table(gaps=0.2)
    found = correlate(data, draws=50)
    for m in range(3):
        both = np.isfinite(data.scores[:, m])
        assert found.records[m, 0] == both.sum() < 100
        expected = SCIPY["spearman"](data.scores[both, m], data.human[both, 0])
        assert found.values["spearman"][m, 0] == pytest.approx(expected, abs=1e-9)


def test_one_group_or_item_has_a_value_but_no_interval() -> None:
    found = correlate(table(items=1, systems=8), "group", draws=50)
    assert np.isfinite(found.values["pearson"]).all() and (found.n == 1).all()
    assert np.isnan(found.low["pearson"]).all() and np.isnan(found.high["kendall-b"]).all()
    assert np.isnan(correlate(table(items=2, systems=8), draws=50).low["pearson"]).all()


def test_unequal_lists_and_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="same length"):
        coefficient([1, 2, 3], [1, 2])
    with pytest.raises(UsageError, match="choose pearson"):
        coefficient([1, 2, 3], [3, 1, 2], "cosine")
    with pytest.raises(UsageError, match="2 system"):
        correlate(table(systems=2), "system")
    assert (
        coefficient([1, 2, np.nan], [1, 2, 3]).reason
        == "only 2 records have both a score and a rating (at least 3 needed)"
    )
