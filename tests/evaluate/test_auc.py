"""AUC: pairs counted, DeLong's variance with clusters, paired tests, and nothing claimed from three originals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from elench.errors import UsageError
from elench.evaluate.auc import Area, areas, grid, notes
from elench.records.record import Record
from elench.stats.roc import area_and_influence, area_interval, auc, equal_areas


def records(n: int, each: int = 1) -> list[Record]:
    """n originals, each as a positive with `each` negatives made from it."""
    rows = []
    for i in range(n):
        for k, label in [(0, "positive"), *((k, "negative") for k in range(each))]:
            told = {"of": str(i), "kind": "original" if label == "positive" else "drop", "label": label}
            rows.append(Record(f"{i}-{label}-{k}", extra={"perturbed": told}))
    return rows


def test_auc_counts_pairs() -> None:
    rng = np.random.default_rng(0)
    good, bad = rng.integers(0, 6, 40).astype(float), rng.integers(0, 6, 30).astype(float)
    pairs = [(g > b) + 0.5 * (g == b) for g in good for b in bad]
    assert auc(good, bad) == pytest.approx(sum(pairs) / len(pairs))
    assert auc(good, bad) == pytest.approx(stats.mannwhitneyu(good, bad).statistic / (40 * 30), abs=1e-12)


def test_the_variance_is_delongs_when_records_are_independent() -> None:
    """DeLong et al. 1988: var(V10) / m + var(V01) / n, with structural components counted by hand."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(0.5, 1, 60), rng.normal(size=50)
    wins = (x[:, None] > y) + 0.5 * (x[:, None] == y)
    delong = wins.mean(axis=1).var(ddof=1) / 60 + wins.mean(axis=0).var(ddof=1) / 50
    _, influence = area_and_influence(np.r_[x, y], np.r_[np.ones(60, bool), np.zeros(50, bool)], np.arange(110))
    assert (influence**2).sum() == pytest.approx(delong, rel=0.02)  # n / (n - 1) per side instead of over all


def test_intervals_cover_with_several_negatives_per_original() -> None:
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(200):
        shared = rng.normal(size=30)
        values = np.stack([shared + rng.normal(size=30) + 1, *(shared + rng.normal(size=30) for _ in range(3))], 1)
        area = areas(records(30, 3), {"m": values.ravel().tolist()})[0]
        assert area.low is not None and area.high is not None
        inside += area.low <= stats.norm.cdf(0.5) <= area.high  # a positive and another original's negative: sd 2
    assert inside >= 178  # 95 % of 200 is 190; four standard errors below


def test_two_equal_metrics_share_a_letter_and_a_better_one_does_not() -> None:
    rng = np.random.default_rng(3)
    good = np.tile([1.0, 0.0], 80)
    noise = rng.normal(size=(3, 160))
    found = areas(records(80), {"a": (2 * good + noise[0]).tolist(), "copy": (5 + 4 * good + 2 * noise[0]).tolist(),
                                "poor": (0.3 * good + noise[1]).tolist(),
                                "gaps": [None if k % 3 == 0 else float(v) for k, v in enumerate(2 * good + noise[0])]})  # fmt: skip
    own = {a.metric: a.letters for a in found if a.kind == "all"}
    assert own == {"a": "a", "copy": "a", "gaps": "a", "poor": "b"}
    p = equal_areas(2 * good + noise[0], 0.3 * good + noise[1], good > 0, np.repeat(np.arange(80), 2))
    assert p < 0.001


def test_three_originals_have_no_interval() -> None:
    area = areas(records(3), {"m": [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]})[0]
    assert (area.auc, area.low, area.high) == (1.0, None, None)
    assert any("too few originals" in line for line in notes([area]))
    assert area_interval(1.0, np.zeros(20)) == (None, None)


def test_bad_input_is_refused_and_gaps_are_counted() -> None:
    with pytest.raises(UsageError, match="elench perturb"):
        areas([Record("1")], {"m": [1.0]})
    assert areas(records(2), {"m": [1.0, None, 2.0, 0.0]})[0].left_out == 1


def test_the_table_gives_every_metric_its_own_n() -> None:
    full = [Area("full", kind, 0.9, 0.8, 1.0, 20, n, 0) for kind, n in (("drop", 20), ("number", 5), ("all", 25))]
    part = [
        Area("part", kind, 0.7, 0.6, 0.8, 18, n, left)
        for kind, n, left in (("drop", 11, 11), ("number", 5, 2), ("all", 16, 11))
    ]
    for found in ([*full, *part], [*part, *full]):
        table = grid(found)
        assert "number (n=5)" in table.header and "drop" in table.header and "all" in table.header
        first, second = (" ".join(map(str, row)) for row in table.rows)
        assert first.startswith("full") and first.count("n=") == 2 and "n=20" in first and "n=25" in first
        assert "n=11" in second and "n=16" in second and "18–20 positives" in notes(found)[0]
        assert notes(found)[-1].endswith(": part 11 (18 positives kept).")
    assert "drop (n=20)" in grid(full).header and "; 20 positives;" in notes(full)[0]


def test_positives_by_people_are_the_higher_of_two_values_as_scipy_counts_them() -> None:
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(4)
    right = rng.random(60) < 0.5
    values = np.round(rng.normal(size=60) + right, 1)
    records = [
        Record(str(k), question="q", answer="a", group=str(k // 3), human={"correct": float(r), "style": float(k)})
        for k, r in enumerate(right)
    ]
    (found,) = areas(records, {"m": [float(v) for v in values]}, human="correct")
    outside = mannwhitneyu(values[right], values[~right]).statistic / right.sum() / (~right).sum()
    assert found.auc == pytest.approx(outside)
    assert (found.positives, found.negatives, found.originals) == (right.sum(), (~right).sum(), 20)
    with pytest.raises(UsageError, match="two values; 'style' has 60"):
        areas(records, {"m": [1.0] * 60}, human="style")
