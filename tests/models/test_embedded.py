"""The embedded models do what they are for: sense, not just shapes."""

from __future__ import annotations

import numpy as np
import pytest

from elench.models.base import ModelSet
from elench.requests import Continue, Embed, Parse, Relate, WordVectors

pytestmark = pytest.mark.embedded
PASSAGE = "Jane Austen wrote Emma in London. The novel was published in December 1815."


@pytest.fixture(scope="module")
def models() -> ModelSet:
    return ModelSet()


def test_the_encoder_puts_like_texts_together(models: ModelSet) -> None:
    texts = ("The cat sleeps on the sofa.", "A kitten is napping on the couch.", "Interest rates rose in March.")
    means = [v.vectors.mean(0) for v in models["encoder"].answer([Embed(t, 6) for t in texts])]
    a, b, c = (m / np.linalg.norm(m) for m in means)
    assert a @ b > 0.5 > a @ c


def test_the_encoder_relates_a_question_to_its_passage(models: ModelSet) -> None:
    asked = [Relate(q, PASSAGE) for q in ("When was the novel Emma published?", "How do magnets attract iron?")]
    related, unrelated = (sum(r.layers) for r in models["encoder"].answer(asked))
    assert related > unrelated


def test_the_language_model_expects_what_fits(models: ModelSet) -> None:
    prefix = f"{PASSAGE}\nQuestion: Who wrote Emma?\nAnswer:"
    asked = [Continue(prefix, t) for t in (" Jane Austen", " Charles Dickens")]
    right, wrong = models["causal"].answer(asked)
    assert right.total > wrong.total
    assert "".join(right.pieces).replace("Ġ", " ") == " Jane Austen"


def test_the_tokenizer_of_the_language_model_keeps_every_digit_apart(models: ModelSet) -> None:
    (found,) = models["causal"].answer([Continue("", "In 1815,  3 cats")])
    assert found.pieces == ("In", "Ġ", "1", "8", "1", "5", ",", "ĠĠ", "3", "Ġcats")


def test_the_parser_finds_names_phrases_and_edges(models: ModelSet) -> None:
    (parsed, empty) = models["parser"].answer([Parse(PASSAGE), Parse("")])
    words = [w.text for w in parsed.words]
    a, b, kind = parsed.entities[0]
    assert (words[a:b], kind) == (["Jane", "Austen"], "PERSON")
    assert len(parsed.sentences) == 2 and empty.words == ()
    wrote = words.index("wrote")
    assert parsed.words[wrote].lemma == "write" and parsed.words[words.index("Austen")].head == wrote
    assert all(PASSAGE[w.span[0] : w.span[1]] == w.text for w in parsed.words)


def test_word_vectors_know_neighbours(models: ModelSet) -> None:
    (found,) = models["vectors"].answer([WordVectors(("King", "queen", "carburetor", "qzxv"))])
    near = found @ found.T
    assert near[0, 1] > 0.7 > near[0, 2]
    assert np.allclose(np.linalg.norm(found, axis=1), [1, 1, 1, 0], atol=1e-5)
