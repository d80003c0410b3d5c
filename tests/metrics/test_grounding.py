"""support, context-recall and context-precision: which passages are judged, how verdicts join, what the score is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

import elench
from elench.metrics.grounding import SourceText, join
from elench.metrics.support import claims
from elench.models.base import Model, ModelSet
from elench.requests import Classify, Embed, TokenVectors
from elench.text.one_sided import notes

WORDS = ("rhine", "alps", "sea", "basel", "not")


class WordEncoder(Model):
    """Counts a few words: enough to tell which sentence is nearest."""

    role: ClassVar[str] = "encoder"
    name, sha256 = "words", "0" * 64

    def lengths(self, requests: Sequence[Any]) -> list[int]:
        return [1] * len(requests)

    def answer(self, batch: Sequence[Embed]) -> list[TokenVectors]:
        return [
            TokenVectors(
                ("x",),
                (1,),
                ((0, 1),),
                (False,),
                np.array([[r.text.lower().count(w) + 0.01 for w in WORDS]], dtype=np.float32),
            )
            for r in batch
        ]


class WordSupport(Model):
    """Supported if every word of the claim stands in the passage; contradicted if one side alone says "not"."""

    role: ClassVar[str] = "support"
    name, sha256 = "rule", "1" * 64

    def lengths(self, requests: Sequence[Any]) -> list[int]:
        return [1] * len(requests)

    def answer(self, batch: Sequence[Classify]) -> list[dict[str, float]]:
        return [self.judge(r.first.lower().strip("."), r.second.lower().strip(".")) for r in batch]

    def judge(self, passage: str, claim: str) -> dict[str, float]:
        known, said = set(passage.replace(".", "").split()), set(claim.replace(".", "").split())
        if ("not" in known) != ("not" in said):
            return {"supported": 0.1, "contradicted": 0.8, "not found": 0.1}
        if said <= known:
            return {"supported": 0.9, "contradicted": 0.05, "not found": 0.05}
        return {"supported": 0.2, "contradicted": 0.1, "not found": 0.7}


@pytest.fixture
def models() -> ModelSet:
    return ModelSet(loaded={"encoder": WordEncoder(), "support": WordSupport()})


CONTEXT = "The Rhine rises in the Alps. It reaches the sea. Basel is old. Geese fly south."


def score(record: dict[str, Any], spec: str, models: ModelSet) -> float:
    value = elench.score([{"id": "1", **record}], [spec], models=models)[spec, "1"]
    assert value is not None
    return float(value)


def test_support_is_the_mean_over_sentences_and_min_the_least(models: ModelSet) -> None:
    record = {"context": CONTEXT, "summary": "The Rhine rises in the Alps. Basel is not old.", "judge": "summary"}
    assert score(record, "support", models) == pytest.approx((0.9 + 0.1) / 2)
    assert score(record, "support[reduce=min]", models) == pytest.approx(0.1)


def test_an_answer_is_judged_with_its_question(models: ModelSet) -> None:
    record = {"context": "who wrote it Ann", "question": "who wrote it", "answer": "Ann", "judge": "answer"}
    assert score(record, "support", models) == pytest.approx(0.9)


def test_the_most_supporting_passage_counts() -> None:
    said = [
        {"supported": 0.2, "contradicted": 0.7, "not found": 0.1},
        {"supported": 0.3, "contradicted": 0.6, "not found": 0.1},
        {"supported": 0.25, "contradicted": 0.25, "not found": 0.5},
    ]
    found = join("c", ["a", "a b", "a b c"], said)
    assert (found.verdict, found.passage, found.supported) == ("contradicted", "a b", 0.3)


def test_passages_are_the_nearest_the_three_and_the_eight_nearest_sentences_in_their_order() -> None:
    source = SourceText(tuple(f"s{k}" for k in range(10)), np.eye(10, dtype=np.float32))
    claim = np.array([0.1, 0.0, 0.0, 0.9, 0.5, 0.3, 0.2, 0.05, 0.04, 0.03], dtype=np.float32)
    assert source.passages(claim) == ["s3", "s3 s4 s5", "s0 s3 s4 s5 s6 s7 s8 s9"]
    short = SourceText(("s0", "s1"), np.eye(2, dtype=np.float32))
    assert short.passages(claim[:2]) == ["s0", "s0 s1"]
    long = SourceText(tuple(f"{k} " * 90 for k in range(4)), np.eye(4, dtype=np.float32))
    assert [p.split() for p in long.passages(claim[:4])] == [["3"] * 90, ["0"] * 90 + ["3"] * 90]  # not 270 words


def test_context_precision_is_average_precision(models: ModelSet) -> None:
    passages = ["Geese fly south.", "The Rhine rises in the Alps.", "Basel is old.", "The Rhine rises in the Alps."]
    record = {"context": passages, "answer": "x", "references": ["The Rhine rises in the Alps."], "judge": "answer"}
    # useful at ranks 2 and 4: (1/2 + 2/4) / 2
    assert score(record, "context-precision", models) == pytest.approx(0.5)


def test_context_recall_is_the_supported_share_of_the_reference(models: ModelSet) -> None:
    reference = "The Rhine rises in the Alps. Paris has a tower."
    record = {"context": CONTEXT, "answer": "x", "references": [reference], "judge": "answer"}
    assert score(record, "context-recall", models) == pytest.approx((0.9 + 0.2) / 2)


def test_long_sentences_are_split_at_clauses_and_short_ones_are_not() -> None:
    assert claims("He came, and she left. Fine.") == ["He came, and she left.", "Fine."]
    long = " ".join(["word"] * 30) + ", which " + " ".join(["more"] * 20) + "."
    assert len(claims(long)) == 2


def test_what_stands_on_one_side_only_is_noted() -> None:
    def noted(text: str, other: str) -> list[tuple[str, str, str]]:
        return [(n["what"], n["text"], n["side"]) for n in notes(text, [other], "answer", "reference")]

    assert noted("He did not win 3 races.", "He won three races.") == [("negation", "not", "answer")]
    assert noted("He won 3 races.", "He never won three races.") == [("negation", "never", "reference")]
    assert noted("Carl won 4 races.", "In Rome Carl won three races.") == [("number", "4", "answer")]
    assert noted("It is by Gustave Eiffel.", "It is by Maurice Koechlin.") == [("name", "Gustave, Eiffel", "answer")]
    assert noted("It cost 1,000 euros.", "The price was 1000 euros.") == []


def test_every_answer_metric_names_what_stands_on_one_side() -> None:
    record = {"id": "1", "question": "Who?", "answer": "not Ann", "references": ["Ann", "Bob"], "judge": "answer"}
    evidence = elench.score([record], ["f1", "bleu"]).outcomes[0].scores
    for spec in ("f1", "bleu"):
        assert evidence[spec].evidence["notes"] == [{"what": "negation", "text": "not", "side": "answer"}]


def test_a_metric_of_the_context_notes_what_the_context_lacks_whatever_the_reference_says() -> None:
    record = {"id": "1", "summary": "Built by Tom Arden.", "references": ["Built by Agnes Thorne."], "judge": "summary",
              "context": "The keeper was Tom Arden."}  # fmt: skip
    scores = elench.score([record], ["source-overlap", "f1"]).outcomes[0].scores
    assert "notes" not in scores["source-overlap"].evidence
    assert scores["f1"].evidence["notes"] == [{"what": "name", "text": "Tom, Arden", "side": "summary"}]


def test_words_the_context_does_not_have_lower_support_and_are_named(models: ModelSet) -> None:
    summary = "Rhine and Danube meet in Vienna."  # content: Rhine, Danube, meet, Vienna; the context has one of four
    record = {"context": CONTEXT, "summary": summary, "judge": "summary"}
    alone = score(record, "support[words=off]", models)
    odds = alone / (1 - alone) / 2.718281828**3.5  # two new names, and 3 of 4 words are new: 2 + 2 · 3/4
    assert score(record, "support", models) == pytest.approx(odds / (1 + odds))
    (outcome,) = elench.score([record], ["support"], models=models).outcomes
    assert outcome.scores["support"].evidence["sentences"][0]["unknown_words"] == ["Danube", "meet", "Vienna"]


def test_inflections_and_the_words_of_the_question_count_as_known(models: ModelSet) -> None:
    record = {"context": "The Rhine rises in the Alps.", "question": "Which river rises there?", "judge": "answer"}
    for answer in ("The rivers rise there.", "Rhine.", "It did not."):
        case = {**record, "answer": answer}
        assert score(case, "support", models) == pytest.approx(score(case, "support[words=off]", models))
