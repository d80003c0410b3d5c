"""Forward selection finds what informs; its errors equal a plain cross-validation; twins cluster."""

from __future__ import annotations

import numpy as np
import pytest

from quaestor.errors import UsageError
from quaestor.meta.estimation import prediction_powered, ratings_needed, system_means
from quaestor.meta.judgements import Judgements
from quaestor.meta.redundancy import _folds, _path, forward_selection, likeness
from quaestor.records import Record
from tests.meta.made import table


def two_sources(n: int = 300) -> Judgements:
    """Ratings made of two things; one metric for each, a twin of the first, and noise."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, n))
    human = (2 * first + second + 0.5 * rng.normal(size=n))[:, None]
    columns = [first, first + 0.3 * rng.normal(size=n), second + 0.3 * rng.normal(size=n), rng.normal(size=n)]
    names = ("first", "twin", "second", "noise")
    records = [Record(id=str(k), group=str(k // 2)) for k in range(n)]
    return Judgements(records, names, np.stack(columns, 1), dict.fromkeys(names, "metric"), ("q",), human, "made")


def test_informative_metrics_come_first_and_twins_late() -> None:
    found = forward_selection(two_sources(), "q")
    assert [step.metric for step in found.steps][:2] == ["first", "second"]
    assert found.steps[1].r2 > found.steps[0].r2 + 0.1
    assert abs(found.steps[3].r2 - found.steps[1].r2) < 0.02
    assert (found.n, found.folds, found.repeats) == (300, 5, 10)
    assert forward_selection(two_sources(), "q") == found


def test_errors_equal_a_regression_fitted_fold_by_fold() -> None:
    data = two_sources()
    fold = _folds(data.items, 5, 3)
    path = _path(data.scores, data.human[:, 0], fold, 2)
    x, y = data.scores[:, [m for m, _ in path]], data.human[:, 0]
    squares = 0.0
    for f in range(5):
        inside = np.column_stack([np.ones(300), x])
        weights, *_ = np.linalg.lstsq(inside[fold != f], y[fold != f], rcond=None)
        squares += ((inside[fold == f] @ weights - y[fold == f]) ** 2).sum()
    assert path[-1][1] == pytest.approx(squares / 300, rel=1e-6)
    assert all(len({fold[k], fold[k + 1]}) == 1 for k in range(0, 300, 2)), "records of one context share a fold"


def test_likeness_puts_twins_together() -> None:
    found = likeness(two_sources())
    assert {frozenset(group) for group in found.clusters} == {
        frozenset({"first", "twin"}),
        frozenset({"second"}),
        frozenset({"noise"}),
    }
    at = [found.metrics.index(name) for name in ("first", "second")]
    data = two_sources().scores
    assert found.matrix[at[0], at[1]] == pytest.approx(np.corrcoef(data[:, 0], data[:, 2])[0, 1], abs=1e-9)


def test_too_few_records_are_refused() -> None:
    with pytest.raises(UsageError, match="20 are needed"):
        forward_selection(table(items=3), "quality")


def test_powered_mean_is_the_rectified_metric_mean() -> None:
    human, scores = [1.0, 2.0, 4.0, None, 3.0, None, 5.0], [1.0, 1.5, 3.0, 2.0, 3.5, 9.0, 4.0]
    fixed = prediction_powered(human, scores, weight=1.0)
    rectifier = np.mean([1 - 1, 2 - 1.5, 4 - 3, 3 - 3.5, 5 - 4])
    assert fixed.value == pytest.approx(np.mean(scores) + rectifier)
    assert (fixed.rated, fixed.scored, fixed.alone) == (5, 7, 3.0)
    tuned = prediction_powered(human, scores)
    slope = np.polyfit([1.0, 1.5, 3.0, 3.5, 4.0], [1, 2, 4, 3, 5], 1)[0]
    assert tuned.weight == pytest.approx(slope)
    assert prediction_powered([1.0, None], [1.0, 2.0]).reason == (
        "only 1 outputs have both a rating and a score (at least 5 needed)"
    )
    assert prediction_powered(range(9), [1] * 9).weight == 0.0
    half_scored = prediction_powered([1] * 6 + [5] * 6, [0.1, 0.2, 0.1, 0.2, 0.1, 0.2] + [None] * 6)
    assert half_scored.alone == 3.0 and half_scored.rated == 6 and half_scored.weight == 0.0
    rng = np.random.default_rng(0)
    rated, good = rng.normal(size=20), rng.normal(size=60)
    some = prediction_powered([*rated, *[None] * 40], [*(rated + good[:20] / 9), *good[20:]])
    more = prediction_powered([*rated, *[None] * 40, *rated], [*(rated + good[:20] / 9), *good[20:], *[None] * 20])
    assert more.worth == some.worth and more.value == some.value  # per rating: ratings without a score do not count
    with pytest.raises(UsageError, match="plain lists of numbers"):
        prediction_powered(["a"] * 6, [1] * 6)
    with pytest.raises(UsageError, match="one of each per output"):
        prediction_powered([1, 2], [1])


def test_system_means_are_sorted_and_complete() -> None:
    found = system_means(table(), "m0", "quality")
    values = [e.value for e in found.values()]
    assert values == sorted(values, key=lambda v: -(v or 0)) and len(values) == 5


def test_ratings_needed_follow_the_normal_formula() -> None:
    # (1.959964 + 0.841621)² · 2 / 0.5² = 62.8
    assert ratings_needed(0.5, 1.0).ratings == 63
    assert ratings_needed(0.5, 1.0, correlation=0.6).ratings == 41  # 62.8 · (1 - .36) = 40.2
    assert ratings_needed(0.5, 1.0, same_items=0.5).ratings == 32
    few = ratings_needed(0.1, 1.0, correlation=0.5, outputs=100)
    assert few.ratings is None and "100" in (few.reason or "")
    with pytest.raises(UsageError, match="greater than 0"):
        ratings_needed(0, 1)
