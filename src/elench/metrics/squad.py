"""Token F1 and exact match: how the SQuAD script compares an answer with the gold answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.metrics import register
from elench.metrics.lexical import LexicalMetric
from elench.text.answers import token_f1
from elench.text.ngrams import pool, shared_by_order, shared_runs
from elench.text.words import Words, words_squad

EXAMPLE: Mapping[str, Any] = {
    "question": "Where did the passengers sleep?",
    "answer": "in the village hall",
    "references": ["the village hall", "a hall in the village"],
    "judge": "answer",
}


@dataclass(frozen=True)
class Squad(LexicalMetric):
    """What the two share: the script's normalisation."""

    citation: ClassVar[str] = "Rajpurkar et al. 2016, SQuAD; its evaluation script"
    limits: ClassVar[str] = (
        "Made for short answers: long ones that say the same in other words score low. Articles do not count."
    )
    example: ClassVar[Mapping[str, Any]] = EXAMPLE

    def words(self, text: str) -> Words:
        return words_squad(text)

    def evidence(self, candidate: Words, reference: Words) -> dict[str, Any]:
        shared = shared_by_order(candidate, pool(reference), 1)[0]
        return {
            "matched": shared_runs(candidate, pool(reference), 1),
            "precision": f"{shared}/{len(candidate)}",
            "recall": f"{shared}/{len(reference)}",
        }


@register
@dataclass(frozen=True)
class F1(Squad):
    """Overlap of the words of an answer and a gold answer, articles and punctuation left out."""

    name: ClassVar[str] = "f1"

    def match(self, candidate: Words, reference: Words) -> float:
        return token_f1(candidate, reference)


@register
@dataclass(frozen=True)
class ExactMatch(Squad):
    """1 if the answer is a gold answer, but for case, articles and punctuation; else 0."""

    name: ClassVar[str] = "em"

    def match(self, candidate: Words, reference: Words) -> float:
        return float(candidate == reference)
