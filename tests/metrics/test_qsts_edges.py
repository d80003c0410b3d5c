"""Which relations of a parsed question QSTS compares, and which it ignores."""

from __future__ import annotations

import pytest

from elench.metrics.qsts_edges import IGNORED, SKIPPED, STOP_WORDS, outline
from elench.requests import Parse
from tests.metrics.qsts_models import load_models

embedded = pytest.mark.embedded


@pytest.fixture(scope="module")
def models():
    return load_models()


SENTENCES = {
    "det": "What is the name of the river?",
    "expl": "There are six hotels in Paris.",
    "case": "What is Anna's favourite song?",
    "preconj": "Both the king and the queen died.",
    "predet": "Who ate all the cakes?",
    "prep": "Who lives in Paris?",
    "agent": "Who was killed by Brutus?",
    "punct": "Who lives in Paris?",
}


@embedded
@pytest.mark.parametrize("label", sorted(SKIPPED))
def test_each_ignored_relation_fires_on_a_sentence(models, label):
    parsed = models["parser"].answer([Parse(SENTENCES[label])])[0]
    assert label in {w.relation for w in parsed.words}
    assert label not in {e.relation for e in outline(parsed, "paper").edges} - {"prep"}


@embedded
def test_the_nine_labels_are_mapped_or_unknown_to_the_parser(models):
    emitted = set(models["parser"].pipeline.get_pipe("parser").labels)
    assert len(IGNORED) == 9
    for old, new in IGNORED.items():
        assert set(new) <= emitted
        assert new or old not in emitted


@embedded
def test_edges_are_read_through_prepositions_and_copulas(models):
    parsed = models["parser"].answer([Parse("What was the name of Vincent's brother?")])[0]
    assert [str(e) for e in outline(parsed, "paper").edges] == ["brother –poss→ vincent", "name –nmod→ brother"]
    assert [str(e) for e in outline(parsed, "ours").edges] == ["brother –poss→ vincent", "name –prep→ brother"]
    city = models["parser"].answer([Parse("Which city is the capital of France?")])[0]
    assert "capital –nsubj→ city" in [str(e) for e in outline(city, "paper").edges]
    born = models["parser"].answer([Parse("Was the composer born in Germany?")])[0]
    assert "born –obl→ germany" in [str(e) for e in outline(born, "paper").edges]


def test_stop_words_are_the_published_codes():
    assert len(STOP_WORDS) == 179  # nltk 3.9, corpus stopwords, english
    assert {"what", "whom", "wouldn't", "of"} <= STOP_WORDS and not {"name", "would"} & STOP_WORDS
