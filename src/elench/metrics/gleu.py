"""GLEU (Google BLEU): n-gram overlap for single sentences, the smaller of precision and recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.metrics import register
from elench.metrics.lexical import LexicalMetric
from elench.text.ngrams import pool, shared_by_order, shared_runs
from elench.text.words import Words, words_13a

ORDERS = 4


def gleu_counts(candidate: Words, reference: Words) -> tuple[int, int]:
    """Shared 1- to 4-grams, and the grams of the side that has more."""
    longest = max(len(candidate), len(reference))
    most = sum(max(longest - order, 0) for order in range(ORDERS))
    return sum(shared_by_order(candidate, pool(reference), ORDERS)), most


@register
@dataclass(frozen=True)
class Gleu(LexicalMetric):
    """The smaller of precision and recall over all 1- to 4-grams: BLEU's cousin for single sentences."""

    name: ClassVar[str] = "gleu"
    citation: ClassVar[str] = (
        "Wu et al. 2016, Google's Neural Machine Translation System; as nltk's sentence_gleu on 13a words"
    )
    limits: ClassVar[str] = "Words must agree letter by letter: a good paraphrase scores low."
    example: ClassVar[Mapping[str, Any]] = {
        "question": "When was the harbour bridge opened to cars?",
        "references": ["When was the harbour bridge opened?"],
        "judge": "question",
    }

    def words(self, text: str) -> Words:
        return words_13a(text)

    def match(self, candidate: Words, reference: Words) -> float:
        match, most = gleu_counts(candidate, reference)
        return match / most

    def counts(self, candidate: Words, reference: Words) -> tuple[float, ...]:
        return gleu_counts(candidate, reference)

    def corpus_score(self, totals: Sequence[float]) -> float | None:
        return totals[0] / totals[1]

    def evidence(self, candidate: Words, reference: Words) -> dict[str, Any]:
        match, most = gleu_counts(candidate, reference)
        return {"matched": shared_runs(candidate, pool(reference), ORDERS), "shared_grams": match, "grams": most}
