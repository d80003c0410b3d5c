"""Claims that the support model learns from: right ones follow from their passage, wrong ones differ by one thing."""

from __future__ import annotations

import numpy as np
import pytest

from elench.train.changes import cut, negate, opposite, other_name, other_number, swapped_names
from elench.train.claims import CONTRADICTED, NOT_FOUND, SUPPORTED, ClaimMaker, paragraphs
from elench.train.examples import Example
from elench.train.fused import both, full_name, moved_apposition, resolved, stated_apposition
from elench.train.statements import statement
from elench.train.support import chances
from tests.train.tiny import OTHER, STORY

ANSWERS = ("Toledo", "1999", "Dora", "many parks", "Oslo")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.fixture
def maker() -> ClaimMaker:
    asked = [
        ("Where does Anna live?", "Oslo"),
        ("When did Carl move to Rome?", "1999"),
        ("Who sold the house?", "Dora"),
    ]
    story = [Example(str(i), STORY, q, (a,), STORY.index(a), "A") for i, (q, a) in enumerate(asked)]
    metal = [Example("m", OTHER, "Where were swords made?", ("Toledo",), OTHER.index("Toledo"), "B")]
    second = "Oslo has many parks. Anna walks there in spring with Carl."
    near = [Example("n", second, "What has Oslo?", ("many parks",), second.index("many"), "A")]
    return ClaimMaker(
        paragraphs([*story, *metal, *near]), {"Smiths in Toledo made swords of it.": "In Toledo, smiths made swords."}
    )


def test_negation_is_put_in_or_taken_out(rng: np.random.Generator) -> None:
    assert negate("It is old.", "", rng) in ("It is not old.", "It isn't old.", "It is never old.")
    assert negate("It was not old.", "", rng) == "It was old."
    assert negate("They cannot swim.", "", rng) == "They can swim."
    assert negate("Fish swim.", "", rng) is None


def test_numbers_and_names_become_others(rng: np.random.Generator) -> None:
    for _ in range(20):
        changed = other_number("It cost 1,500 coins.", "It cost 1,500 coins in 1920.", rng)
        assert changed is not None and changed != "It cost 1,500 coins." and changed.endswith(" coins.")
    assert other_name("Then Anna left.", "Then Anna left. Later Carl came.", rng) == "Then Carl left."
    assert other_name("Then Anna left.", "Then Anna left.", rng) is None
    assert swapped_names("When Anna saw how old Carl was", "", rng) == "When Carl saw how old Anna was"
    assert swapped_names("Then Anna and Carl left", "", rng) is None
    assert opposite("a hot day", "", rng) == "a cold day"


def test_a_cut_sentence_leaves_out_a_part_and_keeps_the_rest(rng: np.random.Generator) -> None:
    long = "In 1999, the old house on the hill was sold, which surprised the whole town."
    for _ in range(10):
        assert cut(long, rng) in (
            "The old house on the hill was sold, which surprised the whole town.",
            "In 1999, the old house on the hill was sold.",
        )
    assert cut("In 1999, it was not sold to him, which surprised the town.", rng) is None, "a negation may be lost"


def test_each_kind_of_claim_has_its_label_and_its_evidence(maker: ClaimMaker, rng: np.random.Generator) -> None:
    labels = {
        "right answer": SUPPORTED,
        "copied": SUPPORTED,
        "shortened": SUPPORTED,
        "paraphrased": SUPPORTED,
        "fused": SUPPORTED,
    }
    labels |= {"wrong answer": CONTRADICTED, "changed question": CONTRADICTED}
    labels |= {
        "answer elsewhere": NOT_FOUND,
        "other ending": NOT_FOUND,
        "elsewhere": NOT_FOUND,
        "added detail": NOT_FOUND,
    }
    claims = maker.draw(400, rng)
    assert {c.kind for c in claims} >= {"right answer", "wrong answer", "copied", "paraphrased", "elsewhere"}
    for claim in claims:
        assert claim.label == labels.get(claim.kind, CONTRADICTED)
        if claim.kind == "right answer":
            assert any(answer in claim.claim and answer in claim.premise for answer in ANSWERS)
        if claim.kind == "copied":
            assert claim.claim in claim.premise
        if claim.kind == "answer elsewhere":
            answer = next(a for a in ANSWERS if a in claim.claim)
            assert answer.lower() not in claim.premise.lower()


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("Who built the lighthouse?", "Agnes Thorne", "Agnes Thorne built the lighthouse."),
        ("When was the bridge opened to traffic?", "1902", "The bridge was opened to traffic in 1902."),
        ("Where is Pune Airport located?", "in India", "Pune Airport is located in India."),
        ("What was the capital of Norway?", "Oslo", "The capital of Norway was Oslo."),
        ("In what year did Bell become an American?", "1882", "Bell did become an American in 1882."),
        ("How many people were injured?", "about 300", "About 300 people were injured."),
        ("On what date was it recorded?", "21 July 1983", "It was recorded on 21 July 1983."),
        ("Who did she marry?", "Carl", None),
        ("What network in Italy aired it?", "La3", None),
        ("What is the boat used for?", "fishing", None),
    ],
)
def test_an_answered_question_becomes_a_statement_or_nothing(question: str, answer: str, expected: str | None) -> None:
    assert statement(question, answer) == expected


def test_entailment_pairs_are_drawn_in_their_shares() -> None:
    drawn = chances(["snli"] * 6 + ["mnli"] * 2 + ["rest"] * 2, {"snli": 0.3, "mnli": 0.5})
    assert drawn == pytest.approx([0.05] * 6 + [0.25] * 2 + [0.1] * 2)


def test_a_fused_claim_names_what_a_pronoun_stands_for_and_where_it_was_found() -> None:
    text = ["Anna Berg, a Swedish painter, moved to Rome.", "She sold her house.", "In 1920 Berg returned."]
    assert resolved(text, 1) == ("Anna Berg sold her house.", (0, 1))
    assert moved_apposition(text, 1) == ("Anna Berg, a Swedish painter, sold her house.", (0, 1))
    assert stated_apposition(text, 0) == ("Anna Berg was a Swedish painter.", (0,))
    assert full_name(["They met Anna Berg there.", text[2]], 1) == ("In 1920 Anna Berg returned.", (0, 1))
    assert both(text, 1) == ("She sold her house, and in 1920 Berg returned.", (1, 2))
    assert resolved(["It rained.", "She left."], 1) is None
