"""Discrimination against SciPy, calibration by hand."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from elench.stats.roc import auc, calibration_error, reliability


def test_the_area_is_mann_whitneys_u_over_the_number_of_pairs():
    rng = np.random.default_rng(1)
    good, bad = rng.integers(0, 6, 40).astype(float), rng.integers(0, 5, 30).astype(float)  # with ties
    assert auc(good, bad) == pytest.approx(mannwhitneyu(good, bad).statistic / (40 * 30))
    assert auc([0.9, 0.8, 0.4], [0.4, 0.1]) == pytest.approx(5.5 / 6)


def test_reliability_compares_what_is_said_with_what_happens():
    curve = reliability([0.05, 0.15, 0.12, 0.95, 1.0], [False, False, True, True, True])
    assert curve == [(0.05, 0.0, 1), (pytest.approx(0.135), 0.5, 2), (0.975, 1.0, 2)]
    assert calibration_error(curve) == pytest.approx((0.05 + 2 * 0.365 + 2 * 0.025) / 5)


def test_calibration_error_is_the_mean_gap():
    confidence, right = [0.9, 0.9, 0.9, 0.9, 0.5, 0.5], [True, True, True, False, True, False]
    error = calibration_error(reliability(confidence, right, bins=15))
    assert error == pytest.approx((abs(3.6 - 3) + abs(1.0 - 1)) / 6)
