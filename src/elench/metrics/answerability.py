"""Answerability, and BLEU, METEOR and ROUGE mixed with it: does a question keep what one needs to answer it?"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from elench.errors import Unscored, UsageError
from elench.metrics import ReferenceMetric, Score, param, register
from elench.metrics.bleu import sentence_bleu
from elench.metrics.formulas import f_measure
from elench.metrics.meteor import meteor
from elench.metrics.rouge import rouge_l
from elench.records.record import Record
from elench.text.wordlists import FUNCTION_WORDS, QUESTION_WORDS
from elench.text.words import REMEMBERED, words_nltk

KINDS = ("ner", "qt", "re", "fw")
"""Named entity, question type, relevant content word, function word."""
CITATION = "Nema and Khapra 2018, Towards a Better Metric for Evaluating Question Generation Systems"


@lru_cache(maxsize=REMEMBERED)
def kinds_of_words(text: str) -> dict[str, Counter[str]]:
    """The words of a text by kind, in lower case; a capital letter makes a name, whatever is not a function word."""
    found: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for token in words_nltk(text):
        word = token.lower()
        if not any(map(str.isalnum, word)):
            continue
        if word in QUESTION_WORDS:
            kind = "qt"
        elif word in FUNCTION_WORDS:
            kind = "fw"
        else:
            kind = "ner" if token[0].isupper() else "re"
        found[kind][word] += 1
    return found


@dataclass(frozen=True)
class AnswerabilityMetric(ReferenceMetric):
    """What the family shares: equations (3) and (4) of the QAScore paper."""

    judges: ClassVar[tuple[str, ...]] = ("question",)
    languages = ("en",)
    limits: ClassVar[str] = (
        "English only. Names are recognised by capitals, so a lower-cased question has none. Kinds of words that "
        "neither text has are left out and the other weights grow to sum to 1 (the equation is silent there)."
    )
    example: ClassVar[Mapping[str, Any]] = {
        "context": "Gull Rock lighthouse was designed by Ada Marsh, who lived in it for thirty years.",
        "question": "Who designed the lighthouse of Gull Rock?",
        "references": ["Who was the designer of Gull Rock lighthouse?"],
        "judge": "question",
    }
    ner: float = param(0.6, "weight of named entities")
    qt: float = param(0.2, "weight of the question word")
    re: float = param(0.1, "weight of other content words")
    fw: float = param(0.1, "weight of function words")
    against: str = param("references", "compare with the references or with the context", ("references", "context"))

    def check(self) -> None:
        weights = [getattr(self, kind) for kind in KINDS]
        if min(weights) < 0 or abs(sum(weights) - 1) > 1e-9:
            raise UsageError(f"{self}: the weights ner, qt, re and fw must be at least 0 and sum to 1")

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.against,)

    def given_references(self, record: Record) -> tuple[str, ...]:
        return (self.text(record, "context"),) if self.against == "context" else super().given_references(record)

    def answerability(self, candidate: str, reference: str) -> Score:
        """P = Σ w_i h_i / k_i(q), R = Σ w_i h_i / k_i(r), answerability = 2 P R / (P + R); equation (3)."""
        own, other = kinds_of_words(candidate), kinds_of_words(reference)
        if not any(own.values()):
            raise Unscored("no scorable word in the question")
        present = [kind for kind in KINDS if own[kind] or other[kind]]
        whole = sum(getattr(self, kind) for kind in present)
        if not whole:
            raise Unscored("no kind of word that has a weight")
        precision = recall = 0.0
        shared: dict[str, list[str]] = {}
        for kind in present:
            common = own[kind] & other[kind]
            shared[kind] = sorted(common)
            weighed = common.total() * getattr(self, kind) / whole
            precision += weighed / own[kind].total() if weighed else 0.0
            recall += weighed / other[kind].total() if weighed else 0.0
        value = f_measure(precision, recall)
        evidence = {
            "answerability": value,
            "precision": precision,
            "recall": recall,
            "shared": shared,
            "missing": {kind: sorted(other[kind] - own[kind]) for kind in present},
        }
        return Score(value, evidence)

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        return self.answerability(candidate, reference)


@register
@dataclass(frozen=True)
class Answerability(AnswerabilityMetric):
    """Does the question keep the names, question word and content words one needs to answer it?"""

    name: ClassVar[str] = "answerability"
    citation: ClassVar[str] = f"{CITATION}; equation (3) of Ji et al. 2022, QAScore"


@dataclass(frozen=True)
class Mixed(AnswerabilityMetric):
    """δ · Answerability + (1 - δ) · another metric; equation (4)."""

    citation: ClassVar[str] = f"{CITATION}; equations (3) and (4) of Ji et al. 2022, QAScore"
    delta: float = param(0.7, "weight of answerability against the other metric")

    def check(self) -> None:
        super().check()
        if not 0 <= self.delta <= 1:
            raise UsageError(f"{self}: delta must lie between 0 and 1")

    @abstractmethod
    def other(self, candidate: str, reference: str) -> float:
        """The metric that answerability is mixed with."""

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        answerable = self.answerability(candidate, reference)
        other = self.other(candidate, reference)
        evidence = {**answerable.evidence, self.name.removeprefix("q-"): other}
        return Score(self.delta * answerable.value + (1 - self.delta) * other, evidence)


@register
@dataclass(frozen=True)
class QBleu(Mixed):
    """BLEU mixed with answerability."""

    name: ClassVar[str] = "q-bleu"
    n: int = param(4, "longest n-gram that counts, 1 to 4", (1, 2, 3, 4))

    def other(self, candidate: str, reference: str) -> float:
        return sentence_bleu(candidate, [reference], self.n)


@register
@dataclass(frozen=True)
class QMeteor(Mixed):
    """METEOR mixed with answerability."""

    name: ClassVar[str] = "q-meteor"

    def other(self, candidate: str, reference: str) -> float:
        return meteor(candidate, reference)


@register
@dataclass(frozen=True)
class QRouge(Mixed):
    """ROUGE-L mixed with answerability."""

    name: ClassVar[str] = "q-rouge"

    def other(self, candidate: str, reference: str) -> float:
        return rouge_l(candidate, reference)
