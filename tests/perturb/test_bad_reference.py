"""Bad references follow the paper's rule word for word."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elench.errors import UsageError
from elench.perturb.bad_reference import BadReferences, span_length

OTHERS = [" ".join(f"w{p}x{k}" for k in range(60)) for p in range(5)]


@pytest.mark.parametrize(
    ("words", "length"),
    [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3), (8, 3), (9, 4), (15, 4), (16, 5), (20, 5), (21, 4), (24, 4),
     (25, 5), (30, 6), (57, 11)],
)  # fmt: skip
def test_span_length_is_the_papers_table(words: int, length: int) -> None:
    assert span_length(words) == length  # QAScore section 4.2


@given(words=st.integers(1, 60), seed=st.integers(0, 10_000))
def test_a_span_of_the_right_length_from_another_passage_replaces_inner_words(words: int, seed: int) -> None:
    text = [f"q{k}" for k in range(words)]
    own = OTHERS[0]
    bad = BadReferences(OTHERS).make(" ".join(text), own, np.random.default_rng(seed)).split()
    assert len(bad) == words
    changed = [k for k in range(words) if bad[k] != text[k]]
    assert len(changed) == span_length(words)
    assert changed == list(range(changed[0], changed[-1] + 1))
    if words > 2:
        assert changed[0] > 0 and changed[-1] < words - 1
    span = " ".join(bad[changed[0] : changed[-1] + 1])
    assert span not in own
    assert any(span in other for other in OTHERS[1:])


def test_every_inner_place_is_used() -> None:
    rng = np.random.default_rng(0)
    maker = BadReferences(OTHERS)
    text = "a b c d e f g h"
    places = set()
    for _ in range(200):
        bad = maker.make(text, OTHERS[0], rng).split()
        places.add(next(k for k, word in enumerate(bad) if word.startswith("w")))
    assert places == {1, 2, 3, 4}


def test_words_of_the_own_passage_are_never_used_even_when_another_passage_has_them() -> None:
    own = "alpha beta gamma delta epsilon zeta"
    copycat = own + " omega psi chi phi"
    for seed in range(50):
        text = "Who is it then ?"
        bad = BadReferences([own, copycat]).make(text, own, np.random.default_rng(seed))
        span = " ".join(new for new, old in zip(bad.split(), text.split(), strict=True) if new != old)
        assert span not in own


def test_one_passage_is_refused_with_a_remedy() -> None:
    with pytest.raises(UsageError, match="at least two different contexts"):
        BadReferences(["one passage only"]).make("Who is it ?", "one passage only", np.random.default_rng(0))


def test_a_language_without_blanks_keeps_its_first_and_last_characters() -> None:
    """Before, a Chinese question was one word and its bad reference a whole other passage."""
    own, other = (
        "长江是亚洲最长的河流，全长约六千三百公里。",
        "东京塔位于日本东京都港区，高三百三十三米，建于一九五八年。",
    )
    question = "亚洲最长的河流有多长？"
    bad = BadReferences([own, other]).make(question, own, np.random.default_rng(0))
    same = [a == b for a, b in zip(question, bad, strict=True)]
    assert len(bad) == len(question) and same[0] and same[-1] and same.count(False) <= span_length(len(question))
    assert not all(same)
