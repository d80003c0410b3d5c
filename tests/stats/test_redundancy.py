"""Forward selection finds what informs; its errors equal a plain cross-validation; twins cluster."""

from __future__ import annotations

import numpy as np
import pytest

from elench.errors import UsageError
from elench.evaluate.judgements import Judgements
from elench.records.record import Record
from elench.stats.estimation import prediction_powered, ratings_needed, system_means
from elench.stats.redundancy import _folds, _nested_path, forward_selection, likeness
from tests.evaluate.made import table


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


def test_errors_are_of_folds_that_took_no_part_in_the_choice() -> None:
    """By hand: for every fold choose among the others by cross-validation, fit on them, and take the error on the fold."""
    data = two_sources()
    x, y = (data.scores - data.scores.mean(axis=0)) / data.scores.std(axis=0), data.human[:, 0]
    fold = _folds(data.items, 5, 3)

    def error(train: np.ndarray, test: np.ndarray, columns: list[int]) -> float:
        inside = np.column_stack([np.ones(300), x[:, columns]])
        weights, *_ = np.linalg.lstsq(inside[train], y[train], rcond=None)
        return float(((inside[test] @ weights - y[test]) ** 2).sum())

    squares = np.zeros(2)
    for f in range(5):
        chosen: list[int] = []
        for step in range(2):
            rest = [k for k in range(4) if k not in chosen]
            inner = [
                sum(error((fold != f) & (fold != g), fold == g, [*chosen, k]) for g in range(5) if g != f) for k in rest
            ]
            chosen.append(rest[int(np.argmin(inner))])
            squares[step] += error(fold != f, fold == f, chosen)
    path = _nested_path(data.scores, y, fold, 2)
    assert [e for _, e in path] == pytest.approx(squares / 300, rel=1e-6)
    assert all(len({fold[k], fold[k + 1]}) == 1 for k in range(0, 300, 2)), "records of one context share a fold"


def test_noise_explains_nothing() -> None:
    """15 metrics of noise, n = 100: R² at step 3 was positive in 77 % of the audit's runs, on the folds that chose."""
    rng = np.random.default_rng(5)
    positive = 0
    names = tuple(f"n{k}" for k in range(15))
    records = [Record(id=str(k)) for k in range(100)]
    for run in range(25):
        data = Judgements(
            records,
            names,
            rng.normal(size=(100, 15)),
            dict.fromkeys(names, "metric"),
            ("q",),
            rng.normal(size=(100, 1)),
        )
        positive += forward_selection(data, "q", steps=3, repeats=3, seed=run).steps[2].r2 > 0
    assert positive <= 5


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


def by_hand(human: list[float | None], scores: list[float]) -> float:
    """Each rated output with the slope of the others, against the mean score of all outputs but those others."""
    rated = [k for k, h in enumerate(human) if h is not None]
    terms = []
    for k in rated:
        others = [i for i in rated if i != k]
        slope = np.polyfit([scores[i] for i in others], [human[i] for i in others], 1)[0]
        free = [scores[i] for i in range(len(scores)) if i not in others]
        terms.append(human[k] - slope * (scores[k] - np.mean(free)))
    return float(np.mean(terms))


def test_the_tuned_mean_has_no_bias_with_ten_ratings() -> None:
    """The audit's case: a curved relation and n = 10 gave a bias of −.059 (of .25 standard errors)."""
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(1500):
        score = rng.exponential(size=300)
        rating = 1 + 0.6 * score**1.5 + 0.6 * rng.normal(size=300)
        given = np.where(np.arange(300) < 10, rating, np.nan)
        errors.append((prediction_powered(given, score).value or 0) - rating.mean())
    assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(1500)


def test_whole_sources_rated_keep_their_coverage() -> None:
    """The audit: coverage .39 with 8 sources of 20 outputs; 95 % ± 4 standard errors of 200 runs is wanted."""
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(50), 20)
    inside = 0
    for _ in range(200):
        score = np.repeat(rng.normal(size=50), 20) * 0.8 + rng.normal(size=1000)
        rating = 0.5 * score + np.repeat(rng.normal(size=50), 20) * 0.8 + 0.5 * rng.normal(size=1000)
        e = prediction_powered(np.where(groups < 8, rating, np.nan), score, groups=groups.tolist())
        inside += bool(e.low is not None and e.high is not None and e.low <= 0 <= e.high)
    assert inside >= 178


def test_equal_ratings_have_a_mean_but_no_interval() -> None:
    found = prediction_powered([1.0] * 8 + [None] * 4, list(range(12)))
    assert found.value == 1.0 and found.low is None and "all ratings are equal" in (found.reason or "")


def test_powered_mean_is_the_rectified_metric_mean() -> None:
    human, scores = [1.0, 2.0, 4.0, None, 3.0, None, 5.0], [1.0, 1.5, 3.0, 2.0, 3.5, 9.0, 4.0]
    fixed = prediction_powered(human, scores, weight=1.0)
    rectifier = np.mean([1 - 1, 2 - 1.5, 4 - 3, 3 - 3.5, 5 - 4])
    assert fixed.value == pytest.approx(np.mean(scores) + rectifier)
    assert (fixed.rated, fixed.scored, fixed.alone) == (5, 7, 3.0)
    tuned = prediction_powered(human, scores)
    slope = np.polyfit([1.0, 1.5, 3.0, 3.5, 4.0], [1, 2, 4, 3, 5], 1)[0]
    assert tuned.weight == pytest.approx(slope)
    assert tuned.value == pytest.approx(by_hand(human, scores))
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
    # Holm's first step over 45 pairs: (3.2608 + 0.8416)² · 2 / 0.5² = 134.6; five per group, alike .25: twice as many
    assert ratings_needed(0.5, 1.0, comparisons=45).ratings == 135
    assert ratings_needed(0.5, 1.0, per_group=5, same_group=0.25).ratings == 126
    few = ratings_needed(0.1, 1.0, correlation=0.5, outputs=100)
    assert few.ratings is None and "100" in (few.reason or "")
    with pytest.raises(UsageError, match="greater than 0"):
        ratings_needed(0, 1)
