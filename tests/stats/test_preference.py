"""The interval of P(people agree) against the exact one that scipy's noncentral t gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import linregress, nct, norm

from elench.stats.preference import agreement


@pytest.mark.parametrize("systems", [6, 12, 40])
def test_the_interval_equals_the_noncentral_t_where_items_add_no_noise(systems: int) -> None:
    """Every item repeats the system's values, so the system means are the data. Then slope / deviation of the
    regression of ratings on scores, times the root of the sum of squares, is a noncentral t (scipy 1.17)."""
    rng = np.random.default_rng(systems)
    score = rng.normal(size=systems)
    people = 0.7 * score + rng.normal(size=systems) * 0.6
    items = 4
    item, system = (place.ravel() for place in np.indices((items, systems)))
    lead = 0.8
    one = agreement(score[system], people[system], item, system, item, np.array([lead]), items)[0]

    line = linregress(score, people)
    root = np.sqrt(((score - score.mean()) ** 2).sum())
    statistic = line.slope / line.stderr
    limits = [brentq(lambda d, p=p: nct.cdf(statistic, systems - 2, d) - p, -40, 80) for p in (0.975, 0.025)]
    expected = [norm.cdf(lead * limit / root / np.sqrt(2)) for limit in limits]
    assert [one.low, one.high] == pytest.approx(expected, abs=0.015)
