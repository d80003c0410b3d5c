"""Prediction-powered means against closed forms and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from elench.stats.estimation import prediction_powered


def test_when_every_output_is_rated_a_metric_adds_nothing() -> None:
    """The interval is then the t interval of the ratings (scipy), however good the metric."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=40)
    rating = 0.9 * score + 0.3 * rng.normal(size=40)
    low, high = stats.ttest_1samp(rating, 0).confidence_interval()
    fixed = prediction_powered(rating, score, weight=0.7)
    assert (fixed.low, fixed.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))
    assert fixed.worth == pytest.approx(1.0, abs=1e-9)
    tuned = prediction_powered(rating, score)
    assert tuned.value == pytest.approx(rating.mean(), abs=1e-9) and 0.85 < (tuned.worth or 0) <= 1.01


def test_coverage_when_every_output_is_rated() -> None:
    """It was 77 % while outputs were taken as the whole population."""
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        score = rng.normal(size=20)
        found = prediction_powered(0.8 * score + 0.6 * rng.normal(size=20), score)
        inside += (found.low or 0) <= 0 <= (found.high or 0)
    assert 0.91 <= inside / 300 <= 0.99
