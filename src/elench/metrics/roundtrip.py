"""roundtrip and qa-overlap: does a reader, asked the question on the context, give the intended answer back?"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.errors import Unscored
from elench.metrics import Metric, Score, param, register
from elench.records.record import Record
from elench.requests import Read, Reading
from elench.text.answers import f1, holds
from elench.text.words import words_squad

MOST_WORDS = 150
"""A longer question is more than a reader reads beside the text."""
FLOOR = 1e-6
"""The smallest value whose logarithm `qa-overlap` takes, so that the score stays finite."""
EXAMPLE = {
    "context": "The Rhine rises in the Swiss Alps and flows into the North Sea.",
    "question": "Where does the Rhine rise?",
    "answer": "the Swiss Alps",
    "judge": "question",
}


def readable(question: str) -> str:
    """The question, if a reader can read all of it."""
    count = len(question.split())
    if count > MOST_WORDS:
        raise Unscored(f"a question of {count} words is longer than the reader reads ({MOST_WORDS})")
    return question


@dataclass(frozen=True)
class ReaderMetric(Metric):
    """What the two metrics share: one reading of the question on the context, with the intended answer."""

    judges: ClassVar[tuple[str, ...]] = ("question",)
    reads: ClassVar[tuple[str, ...]] = ("context", "answer")
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    example: ClassVar[dict[str, Any]] = EXAMPLE

    async def score(self, record: Record) -> Score:
        question, context, answer = (self.candidate(record), self.text(record, "context"), self.text(record, "answer"))
        if not words_squad(answer):
            raise Unscored("no word in the answer")
        return self.judge_reading(await Read(readable(question), context, gold=answer), question, answer)

    @abstractmethod
    def judge_reading(self, reading: Reading, question: str, answer: str) -> Score:
        """The score that a reading gives."""


@register
@dataclass(frozen=True)
class RoundTrip(ReaderMetric):
    """Round trip: how surely a reader finds the intended answer by the question.

    The reader answers the question on the context. The score is the mean of two views of the same reading: the
    probability of the intended answer, and the token F1 of the reader's best span with it, multiplied by the
    probability that the question has an answer at all: a span that the reader does not believe in does not count.
    The probability is 0 where the intended answer does not occur in the context word for word.
    """

    name: ClassVar[str] = "roundtrip"
    citation: ClassVar[str] = (
        "Reader-based question scoring after Mohammadshahi et al. 2023 (RQUGE) and QuestEval's round trip (Scialom et "
        "al. 2021, §4.1)."
    )
    limits: ClassVar[str] = (
        "An extractive reader: answers that are not words of the context are judged by F1 alone. A question that the "
        "small reader cannot answer is not always a bad one."
    )
    view: str = param("both", "what counts: the answer's probability, the F1, or the mean of both", ("both", "p", "f1"))

    def judge_reading(self, reading: Reading, question: str, answer: str) -> Score:
        span = reading.best or reading.answer
        probability, overlap = reading.gold or 0.0, f1(span, answer)
        believed = overlap * (1 - reading.unanswerable)
        value = {"p": probability, "f1": believed, "both": (probability + believed) / 2}[self.view]
        evidence = {
            "predicted": span,
            "p_answer": probability,
            "f1": overlap,
            "unanswerable": reading.unanswerable,
            "answer_in_context": reading.gold is not None,
        }
        return Score(value, evidence)


@register
@dataclass(frozen=True)
class QAOverlap(ReaderMetric):
    """Logarithm of the F1 that the reader's answer is expected to have with the intended answer.

    log Σ_s p(s | context, question) F1(s, answer), over the spans s that the reader may answer with: a span one word
    too long counts in part. view=probability takes log p(answer | context, question) instead. A question that contains
    its answer, other than in a choice ("A or B"), does not ask for it and gets the lowest score, log 1e-6. Not QAScore,
    whose equation (6) it resembles: that one asks a language model for every word of the answer.
    """

    name: ClassVar[str] = "qa-overlap"
    range: ClassVar[tuple[float, float]] = (math.log(FLOOR), 0.0)
    citation: ClassVar[str] = (
        "elench; after equation (6) of Ji et al. 2022 (QAScore), with an extractive reader as the language model."
    )
    limits: ClassVar[str] = (
        "Knows only answers that occur in the context: others, such as yes and no, are unscored. Says little about "
        "fluency or conciseness. Chosen on QGEval-SQuAD, where its agreement is therefore optimistic: see "
        "docs/results/qrelscore.md."
    )
    view: str = param("overlap", "expected F1, or the probability of the answer itself", ("overlap", "probability"))

    def judge_reading(self, reading: Reading, question: str, answer: str) -> Score:
        if reading.gold is None or reading.overlap is None:
            raise Unscored("the answer does not occur in the context (or is longer than the reader reads at once)")
        leaked = names_its_answer(question, answer)
        value = 0.0 if leaked else reading.overlap if self.view == "overlap" else reading.gold
        evidence = {
            "probability": reading.gold,
            "expected overlap": reading.overlap,
            "reader's answer": reading.answer,
            "unanswerable": reading.unanswerable,
        }
        if leaked:
            evidence["note"] = "the question contains its answer"
        return Score(math.log(min(1.0, max(value, FLOOR))), evidence)


def names_its_answer(question: str, answer: str) -> bool:
    """Does the question contain the answer, other than as one of a choice ("A or B")?"""
    return holds(question, answer) and not holds(question, "or")
