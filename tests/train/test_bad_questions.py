"""Bad questions that the well-formedness model learns from; the expected texts are written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from elench.requests import Parsed, Word
from elench.train.bad_questions import (
    KINDS,
    Asked,
    BadQuestions,
    Wanderer,
    begun,
    common_beginnings,
    dangling,
    disordered,
    doubled,
    dropped,
    filled,
    joined,
    other_phrase,
    other_question_word,
    repeated,
    wrong_form,
)


def asked(text: str, tags: str, phrases: tuple[tuple[int, int], ...], root: str, answer: str = "") -> Asked:
    """A question with hand-written tags (POS/TAG, one for each word; the question mark is a word)."""
    words, at = [], 0
    for token, tag in zip(text.replace("?", " ?").split(), tags.split(), strict=True):
        start = text.index(token, at)
        at = start + len(token)
        pos, fine = tag.split("/")
        lemma = {"sold": "sell", "was": "be", "did": "do", "built": "build"}.get(token, token)
        relation = "ROOT" if token == root else "dep"
        words.append(Word(token, lemma, pos, fine, relation, 0, "", (start, at), False))
    return Asked(text, Parsed(tuple(words), ((0, len(words)),), (), phrases), answer, "A")


HOUSE = asked(
    "What did the king sell in the city?",
    "PRON/WP AUX/VBD DET/DT NOUN/NN VERB/VB ADP/IN DET/DT NOUN/NN PUNCT/.",
    ((0, 1), (2, 4), (6, 8)), "sell", "his house",
)  # fmt: skip
TOWER = asked(
    "When was the tower built for Anna?", "ADV/WRB AUX/VBD DET/DT NOUN/NN VERB/VBN ADP/IN PROPN/NNP PUNCT/.",
    ((2, 4), (6, 7)), "built", "1889",
)  # fmt: skip


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def every(change: object, rng: np.random.Generator, one: Asked = HOUSE, other: Asked = TOWER) -> set[str | None]:
    """All that a change makes of a question in many draws."""
    assert callable(change)
    return {change(one, other, rng) for _ in range(300)}


def test_a_phrase_takes_the_place_of_another(rng: np.random.Generator) -> None:
    assert every(repeated, rng) == {"What did the king sell in the king?", "What did the city sell in the city?"}
    assert every(other_phrase, rng) == {
        "What did the tower sell in the city?", "What did Anna sell in the city?",
        "What did the king sell in the tower?", "What did the king sell in Anna?",
    }  # fmt: skip


def test_two_questions_are_joined_where_both_have_a_word_of_the_same_tag(rng: np.random.Generator) -> None:
    assert every(joined, rng) == {
        "What did the tower built for Anna?", "What did the king sell for Anna?",
        "What did the king sell in the tower built for Anna?",
    }  # fmt: skip


def test_the_answer_is_left_in(rng: np.random.Generator) -> None:
    assert every(filled, rng) == {
        "What did the king sell his house in the city?", "What did the king sell in the city his house?",
    }  # fmt: skip
    assert every(filled, rng, TOWER) == {None}  # no verb that lacks an object


def test_a_question_word_that_does_not_fit(rng: np.random.Generator) -> None:
    assert "Who was the tower built for Anna?" in every(other_question_word, rng, TOWER)
    assert all(t and t.endswith(" was the tower built for Anna?") for t in every(other_question_word, rng, TOWER))


def test_the_end_or_a_word_is_missing(rng: np.random.Generator) -> None:
    assert every(dangling, rng) == {"What did the king sell in?", "What did the king sell in the?"}
    assert every(dropped, rng) == {
        "What the king sell in the city?", "What did the sell in the city?", "What did the king in the city?",
        "What did the king sell the city?", "What did the king sell in the?",
    }  # fmt: skip


def test_words_are_doubled_or_out_of_order(rng: np.random.Generator) -> None:
    twice = every(doubled, rng)
    assert {"What did did the king sell in the city?", "What did the king the king sell in the city?"} <= twice
    swapped = every(disordered, rng)
    assert {"did What the king sell in the city?", "What the king did sell in the city?"} <= swapped
    assert HOUSE.text not in twice | swapped


def test_a_verb_has_a_wrong_form(rng: np.random.Generator) -> None:
    assert every(wrong_form, rng) == {
        "What was the king sell in the city?", "What did the king sells in the city?",
        "What did the king selled in the city?", "What did the king selling in the city?",
    }  # fmt: skip


def test_a_wanderer_uses_known_neighbours_and_copies_no_question(rng: np.random.Generator) -> None:
    known = ["Who built the old tower in Rome?", "Who sold the old house in Rome?", "Who saw the old house of Anna?"]
    written = {Wanderer(known).write(rng) for _ in range(300)} - {None}
    assert "Who built the old house in Rome?" in written
    assert not written & set(known)
    neighbours = {(a, b) for t in known for a, b in zip(t.split(), t.split()[1:], strict=False)}
    assert all(set(zip(t.split(), t.split()[1:], strict=False)) <= neighbours for t in written if t)


def test_a_common_beginning_goes_on_with_a_phrase_and_an_end(rng: np.random.Generator) -> None:
    known = ["Who was the king of it?", "Who was the man of it?", "Who saw a man of it?"]
    assert common_beginnings(known, least=2) == ["Who was", "Who was the"]
    made = {begun("Who was the", HOUSE, TOWER, rng) for _ in range(300)}
    assert made == {
        "Who was the tower?", "Who was the Anna?", "Who was the tower in the city?", "Who was the Anna in the city?",
    }  # fmt: skip


def test_draws_are_repeatable_and_carry_the_target_of_their_kind() -> None:
    maker = BadQuestions([HOUSE, TOWER], [])
    first, again = (maker.draw(40, np.random.default_rng(1)) for _ in range(2))
    assert first == again and len(first) == 40
    assert all(b.target == KINDS[b.kind][1] < 0.5 and b.text not in (HOUSE.text, TOWER.text) for b in first)
