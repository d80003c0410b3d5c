"""Letters say what the tests say, no more and no less."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from elench.stats.letters import letters


@st.composite
def verdicts(draw: st.DrawFn) -> np.ndarray:
    n = draw(st.integers(0, 9))
    return np.array(draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n)), dtype=bool).reshape(n, n)


@given(verdicts())
@settings(deadline=None, max_examples=300)
def test_two_rows_share_no_letter_if_and_only_if_they_differ(differs: np.ndarray) -> None:
    found = letters(differs)
    assert all(found)
    for i in range(len(differs)):
        for j in range(i):
            assert bool(set(found[i]) & set(found[j])) == (not (differs[i, j] or differs[j, i]))


def test_the_classic_display() -> None:
    differs = np.zeros((4, 4), dtype=bool)
    differs[0, 2] = differs[0, 3] = differs[1, 3] = True
    assert letters(differs) == ["a", "ab", "bc", "c"]
    assert letters(np.zeros((2, 2), dtype=bool)) == ["a", "a"]


def test_one_significant_pair_separates_only_that_pair() -> None:
    """The audit's case: 1 of 78 pairs significant; contiguous runs separated 20."""
    differs = np.zeros((13, 13), dtype=bool)
    differs[0, 7] = True
    assert letters(differs) == ["a"] + ["ab"] * 6 + ["b"] + ["ab"] * 5


def test_thirty_rows_stay_fast() -> None:
    rng = np.random.default_rng(0)
    place = np.arange(30)
    differs = (np.abs(place[:, None] - place) > 8) & (rng.random((30, 30)) < 0.9)
    found = letters(np.triu(differs))
    for i in range(30):
        for j in range(i):
            assert bool(set(found[i]) & set(found[j])) == (not differs[j, i])


def test_more_letters_than_the_alphabet_stay_single_characters() -> None:
    """Five pairs of rivals among ten rows: 2⁵ = 32 maximal sets without a significant pair, so 32 letters."""
    differs = np.zeros((10, 10), dtype=bool)
    for k in range(0, 10, 2):
        differs[k, k + 1] = True
    found = letters(differs)
    assert len(set("".join(found))) <= 32
    for i in range(10):
        for j in range(i):
            assert bool(set(found[i]) & set(found[j])) == (not differs[j, i])
