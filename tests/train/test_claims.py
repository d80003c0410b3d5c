"""Claims that the support model learns from: right ones follow from their passage, wrong ones differ by one thing."""

from __future__ import annotations

import numpy as np
import pytest

from elench.train.changes import cut, negate, opposite, other_name, other_number, swapped_names
from elench.train.claims import CONTRADICTED, KINDS, NOT_FOUND, SUPPORTED, ClaimMaker, paragraphs
from elench.train.examples import Example
from tests.train.tiny import OTHER, STORY


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
    labels = {"right answer": SUPPORTED, "copied": SUPPORTED, "shortened": SUPPORTED, "paraphrased": SUPPORTED}
    labels |= {"wrong answer": CONTRADICTED, "changed question": CONTRADICTED}
    labels |= {"answer elsewhere": NOT_FOUND, "other ending": NOT_FOUND, "elsewhere": NOT_FOUND}
    claims = maker.draw(400, rng)
    assert {c.kind for c in claims} >= {"right answer", "wrong answer", "copied", "paraphrased", "elsewhere"}
    for claim in claims:
        assert claim.label == labels.get(claim.kind, CONTRADICTED)
        if claim.kind == "right answer":
            assert claim.claim.split("? ")[1] in claim.premise
        if claim.kind == "copied":
            assert claim.claim in claim.premise
        if claim.kind == "answer elsewhere":
            assert claim.claim.split("? ")[1].lower() not in claim.premise.lower()


def test_shares_of_kinds_are_a_distribution() -> None:
    assert sum(share for share, _ in KINDS.values()) == pytest.approx(1.0)
