"""Tests of two metrics against outside formulas, corrections against scipy and statsmodels' published rule, calibration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from elench.errors import UsageError
from elench.stats.correlation import correlate
from elench.stats.estimation import prediction_powered
from elench.stats.significance import (
    benjamini_hochberg,
    bootstrap_difference,
    holm,
    permutation_difference,
    williams,
    williams_difference,
)
from tests.evaluate.made import table


def test_williams_equals_steigers_form() -> None:
    """Steiger (1980) eq. 7 written out with the determinant of the correlation matrix from numpy."""
    r12, r13, r23, n = 0.6, 0.45, 0.5, 80
    matrix = np.array([[1, r12, r13], [r12, 1, r23], [r13, r23, 1]])
    mean = (r12 + r13) / 2
    below = 2 * (n - 1) / (n - 3) * np.linalg.det(matrix) + mean**2 * (1 - r23) ** 3
    t = (r12 - r13) * np.sqrt((n - 1) * (1 + r23) / below)
    assert williams(r12, r13, r23, n) == pytest.approx(2 * stats.t.sf(abs(t), n - 3), abs=1e-12)
    with pytest.raises(UsageError, match="at least 4"):
        williams(r12, r13, r23, 3)


def test_benjamini_hochberg_equals_scipy_and_holm_its_definition() -> None:
    p = np.array([0.01, 0.04, 0.03, 0.005, 0.8])
    assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p), abs=1e-12)
    # Holm 1979 by hand: sorted .005 .01 .03 .04 .8 times 5 4 3 2 1, never falling
    assert holm(p) == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.8])
    assert holm([]).tolist() == []


def good_and_bad(n: int = 150) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    human = rng.normal(size=n)
    return np.round(human * 2), human + rng.normal(size=n), human + 4 * rng.normal(size=n)


@pytest.mark.parametrize("coefficient", ["pearson", "spearman", "kendall-b"])
def test_a_clearly_better_metric_is_found_and_a_copy_is_not(coefficient: str) -> None:
    human, good, bad = good_and_bad()
    for test in (bootstrap_difference, permutation_difference):
        found = test(human, good, bad, coefficient, draws=200, seed=1)
        assert found.value is not None and found.value > 0.2
        assert found.p is not None and 0 < found.p < 0.02
        assert test(human, good, good * 3 + 1, coefficient, draws=200, seed=1).p == 1.0
        assert test(human, good, bad, coefficient, draws=200, seed=1) == found
    assert (williams_difference(human, good, bad).p or 1) < 0.01


def test_an_undefined_difference_has_a_reason() -> None:
    human, good, _ = good_and_bad()
    found = bootstrap_difference(human, good, np.ones_like(good))
    assert found.value is None and found.p is None
    assert found.reason == "the metric gives every record the same score"
    with pytest.raises(UsageError, match="same length"):
        permutation_difference([1, 2], [1, 2, 3], [1, 2, 3])


def test_false_alarms_stay_near_five_percent() -> None:
    """600 runs: 5 % ± 4 standard errors of a share (the full simulation: benchmarks/calibration.py)."""
    rng = np.random.default_rng(8)
    alarms = {"bootstrap": 0, "permutation": 0, "williams": 0}
    for run in range(600):
        quality = rng.normal(size=80)
        human = np.round(quality + rng.normal(size=80))
        a, b = (quality + 1.5 * rng.normal(size=80) for _ in range(2))
        alarms["bootstrap"] += (bootstrap_difference(human, a, b, draws=200, seed=run).p or 1) < 0.05
        alarms["permutation"] += (permutation_difference(human, a, b, draws=200, seed=run).p or 1) < 0.05
        alarms["williams"] += (williams_difference(human, a, b).p or 1) < 0.05
    for name, count in alarms.items():
        assert 0.05 - 0.036 <= count / 600 <= 0.05 + 0.036, name


def test_intervals_cover_the_truth() -> None:
    """300 runs: 95 % ± 4 standard errors."""
    rng = np.random.default_rng(9)
    hits = {"pearson": 0, "spearman": 0, "kendall-b": 0, "powered": 0}
    r = 1 / np.sqrt(2)
    truth = {"pearson": r, "spearman": 6 / np.pi * np.arcsin(r / 2), "kendall-b": 2 / np.pi * np.arcsin(r)}
    shape = table(items=80, systems=1, metrics=1)
    for run in range(300):
        human = rng.normal(size=(80, 1))
        data = type(shape)(shape.records, ("m",), human + rng.normal(size=(80, 1)), {"m": "metric"}, ("q",), human)
        found = correlate(data, draws=200, seed=run, coefficients=tuple(truth))
        for name, target in truth.items():
            hits[name] += bool(found.low[name][0, 0] <= target <= found.high[name][0, 0])
        score = rng.exponential(size=200)
        rating = np.where(np.arange(200) < 25, score + rng.normal(size=200), np.nan)
        e = prediction_powered(rating, score)
        assert e.low is not None and e.high is not None
        hits["powered"] += e.low <= 1.0 <= e.high
    for name, count in hits.items():
        assert count / 300 >= 0.95 - 0.05, name
