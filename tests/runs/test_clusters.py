"""The interval of a mean by what is independent: against statsmodels' cluster-robust standard error and scipy."""

from __future__ import annotations

import json

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from elench.metrics.base import Score
from elench.records.record import Record
from elench.runs import clusters
from elench.runs.summary import Outcome, Summary


def outcomes(values, groups=None, systems=None, ids=None):
    made = []
    for k, value in enumerate(values):
        system = systems[k] if systems else None
        record = Record(str(ids[k] if ids else k), system=system, group=str(groups[k]) if groups is not None else None)
        made.append(Outcome(record.id, system, {"length": Score(float(value))}, {}, record))
    return made


def summary(rows):
    found = Summary(["length"])
    for row in rows:
        found.add(row)
    return found.to_object()["length"]


def robust(values, groups):
    fit = sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    return fit.conf_int()[0]


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_groups_count_once(offset: float) -> None:
    rng = np.random.default_rng(0)
    groups = np.sort(rng.integers(0, 20, 100))
    values = 50 + rng.normal(size=20)[groups] + rng.normal(size=100) + offset
    found = summary(outcomes(values, groups))
    assert found["ci95"] == pytest.approx(robust(values - offset, groups) + offset, abs=1e-8)
    assert found["interval"] == "95 % t interval of the mean over 20 groups (100 records)"
    assert 20 <= found["effective_n"] < 60
    line = clusters.interval_lines([found, found])
    assert line == [f"{found['interval']}; effective n ≈ {found['effective_n']:.0f}"]


def test_single_records_have_the_ordinary_t_interval_and_shared_ids_are_one_item() -> None:
    rng = np.random.default_rng(1)
    values = 5 + rng.random(30)
    low, high = stats.ttest_1samp(values, 0).confidence_interval()
    assert summary(outcomes(values))["ci95"] == pytest.approx([low, high], abs=1e-9)
    ids, systems = [k // 2 for k in range(30)], ["a", "b"] * 15
    found = summary(outcomes(values, systems=systems, ids=ids))
    assert found["ci95"] == pytest.approx(robust(values, np.array(ids)), abs=1e-9)
    assert "15 items (30 records)" in found["interval"]
    low, high = stats.ttest_1samp(values[::2], 0).confidence_interval()
    assert found["systems"]["a"]["ci95"] == pytest.approx([low, high], abs=1e-9)


def test_few_groups_or_equal_scores_have_no_interval_but_a_reason() -> None:
    found = summary(outcomes([1.0, 2, 3, 4, 5, 6, 7, 8], [0, 0, 1, 1, 2, 2, 3, 3]))
    assert found["ci95"] is None and found["interval"] == "no interval: 4 groups (8 records), at least 5 needed"
    assert summary(outcomes([0.1] * 9))["interval"] == "no interval: 9 records, all scores are equal"
    assert summary([])["n"] == 0


def test_the_interval_covers_the_mean_where_groups_are_alike() -> None:
    """20 passages × 5 questions, intraclass correlation .6: single records as independent cover 70 %."""
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(20), 5)
    inside = 0
    for _ in range(300):
        values = 50 + np.sqrt(0.6) * rng.normal(size=20)[groups] + np.sqrt(0.4) * rng.normal(size=100)
        low, high = summary(outcomes(values, groups))["ci95"]
        inside += low <= 50 <= high
    assert 0.91 <= inside / 300 <= 0.99


def test_the_journal_restores_every_cluster() -> None:
    rng = np.random.default_rng(3)
    rows = outcomes(rng.random(60) + 3, rng.integers(0, 12, 60), ["a", "b"] * 30)
    whole = Summary(["length"])
    changes = []
    for start in range(0, 60, 20):
        for row in rows[start : start + 20]:
            whole.add(row)
        changes.append(json.loads(json.dumps(whole.clusters.changes())))
        if start == 20:
            state = json.loads(json.dumps(whole.state()))
    again = Summary(["length"], state, changes[:2])
    for row in rows[40:]:
        again.add(row)
    assert again.to_object() == whole.to_object()


def test_memory_is_bounded_and_the_interval_stays_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "MOST", 200)
    rng = np.random.default_rng(4)
    values = 50 + rng.normal(size=4000)
    found = Summary(["length"])
    for row in outcomes(values):
        found.add(row)
    assert len(found.clusters.place) == 200
    told = found.to_object()["length"]
    low, high = told["ci95"]
    assert "4000 records in 200 random batches" in told["interval"]
    assert high - low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(4000), rel=0.2)
