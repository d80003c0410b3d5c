"""Agreement equals the krippendorff package (0.9); KPQA's filter and rank pairs do what the paper says."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import zscore

from elench.errors import UsageError
from elench.records.record import Record
from elench.stats.agreement import (
    alpha_interval,
    krippendorff_alpha,
    rank_pair_accuracy,
    rating_matrix,
    z_filter,
    zscores,
)

cells = st.one_of(st.none(), st.integers(1, 5), st.integers(1, 5))
matrices = st.tuples(st.integers(2, 5), st.integers(2, 15)).flatmap(
    lambda size: st.lists(st.lists(cells, min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0])
)


@given(matrices)
@settings(deadline=None, max_examples=80)
def test_alpha_equals_krippendorff(matrix: list[list[int | None]]) -> None:
    numbers = np.array(matrix, dtype=float)
    for level in ("nominal", "ordinal", "interval"):
        found = krippendorff_alpha(matrix, level)
        if found.value is None:
            assert found.reason
            continue
        assert found.value == pytest.approx(krippendorff.alpha(numbers, level_of_measurement=level), abs=1e-9)


def test_alpha_says_why_it_is_undefined() -> None:
    assert krippendorff_alpha([[1, None], [None, 2]]).reason == "no item has two ratings"
    assert "all ratings are equal" in (krippendorff_alpha([[3, 3], [3, 3]]).reason or "")
    with pytest.raises(UsageError, match="raters × items"):
        krippendorff_alpha([[1, 2], [3]])
    with pytest.raises(UsageError, match="nominal, ordinal, interval"):
        krippendorff_alpha([[1, 2], [1, 2]], "ratio")


def test_alpha_interval_surrounds_alpha_and_narrows_with_items() -> None:
    rng = np.random.default_rng(0)

    def ratings(n: int) -> np.ndarray:
        return np.round(rng.normal(size=n) + 0.7 * rng.normal(size=(3, n)))

    widths = []
    for n in (40, 640):
        for level in ("nominal", "ordinal", "interval"):
            a = alpha_interval(ratings(n), level, draws=300)
            assert a.low is not None and a.value is not None and a.high is not None
            assert a.low <= a.value <= a.high
        widths.append(a.high - a.low)
    assert widths[1] < widths[0] / 2


def test_z_scores_equal_scipy_by_rater_and_item() -> None:
    matrix = np.array([[1, 2, 4], [2, 2, 5], [1, 5, 5.0]])
    assert zscores(matrix) == pytest.approx(zscore(matrix, axis=1), abs=1e-12)
    assert zscores(matrix, by="item") == pytest.approx(zscore(matrix, axis=0), abs=1e-12)
    assert np.isnan(zscores([[3, 3, 3], [1, 2, 3]])[0]).all()


def test_z_filter_drops_the_farthest_and_at_most_five() -> None:
    item = [5, 5, 5, 5, 5, 5, 5, 1, 1, 2]
    kept = z_filter(np.array(item, dtype=float)[:, None])[:, 0]
    assert np.isnan(kept).tolist() == [False] * 7 + [True] * 3
    # six ratings lie beyond |z| > 1, the sixth (the nearest, 8) must stay
    wide = np.array([0, 100, 1, 99, 2, 92, 48, 49, 50, 51, 52, 53, 50, 50, 50, 50], dtype=float)[:, None]
    assert (np.abs(zscores(wide, by="item")) > 1).sum() == 6
    filtered = z_filter(wide)[:, 0]
    assert np.flatnonzero(np.isnan(filtered)).tolist() == [0, 1, 2, 3, 4]
    assert z_filter([[4], [4], [4]])[:, 0].tolist() == [4, 4, 4]


def test_rank_pairs_count_only_clear_gaps_and_ties_are_no_match() -> None:
    human = [3, 1, 4, 3, 1, 5, 1, 4.5]
    scores = [0.9, 0.1, 0.5, 0.9, 0.7, 0.2, 0.3, 0.3]
    found = rank_pair_accuracy(human, scores, ["a", "a", "b", "b", "c", "c", "d", "d"])
    assert (found.n, found.ties) == (3, 1)
    assert found.value == pytest.approx(1 / 3)
    assert rank_pair_accuracy([1, 2], [1, 2], ["a", "a"]).reason == (
        "no two outputs of a group differ by 2 or more in rating"
    )
    with pytest.raises(UsageError, match="lengths must be equal"):
        rank_pair_accuracy([1], [1, 2], ["a"])


def test_rating_matrix_has_a_row_per_rater() -> None:
    records = [Record(id="a", ratings={"x": (1.0, None)}), Record(id="b", ratings={"x": (2.0, 3.0, 4.0)})]
    matrix = rating_matrix(records, "x")
    assert matrix.shape == (3, 2)
    assert np.isnan(matrix[1, 0]) and matrix[2, 1] == 4
    with pytest.raises(UsageError, match="there are: x"):
        rating_matrix(records, "y")
