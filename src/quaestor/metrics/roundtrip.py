"""roundtrip: does a reader, asked the question on the context, give the intended answer back?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from quaestor.errors import Unscored
from quaestor.metrics import Metric, Score, param, register
from quaestor.records import Record
from quaestor.requests import Read, Reading
from quaestor.text.answers import f1
from quaestor.text.tokens import words_squad

MOST_WORDS = 150
"""A longer question is more than a reader reads beside the text."""


def readable(question: str) -> str:
    """The question, if a reader can read all of it."""
    count = len(question.split())
    if count > MOST_WORDS:
        raise Unscored(f"a question of {count} words is longer than the reader reads ({MOST_WORDS})")
    return question


@register
@dataclass(frozen=True)
class RoundTrip(Metric):
    """Round trip: how surely a reader finds the intended answer by the question.

    The reader answers the question on the context. The score is the mean of two views of the same reading: the
    probability of the intended answer, and the token F1 of the answer the reader finds most probable with it.
    The probability is 0 where the intended answer does not stand in the context word for word.
    """

    name: ClassVar[str] = "roundtrip"
    judges: ClassVar[tuple[str, ...]] = ("question",)
    reads: ClassVar[tuple[str, ...]] = ("context", "answer")
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    citation: ClassVar[str] = (
        "Reader-based question scoring after Mohammadshahi et al. 2023 (RQUGE) and QuestEval's round trip (Scialom et "
        "al. 2021, §4.1)."
    )
    limits: ClassVar[str] = (
        "An extractive reader: answers that are not words of the context are judged by F1 alone. A question that the "
        "small reader cannot answer is not always a bad one."
    )
    example: ClassVar[dict[str, Any]] = {
        "context": "The Rhine rises in the Swiss Alps and flows into the North Sea.",
        "question": "Where does the Rhine rise?",
        "answer": "the Swiss Alps",
        "judge": "question",
    }
    view: str = param("both", "what counts: the answer's probability, the F1, or the mean of both", ("both", "p", "f1"))

    async def score(self, record: Record) -> Score:
        question, context, answer = (self.candidate(record), self.text(record, "context"), self.text(record, "answer"))
        if not words_squad(answer):
            raise Unscored("no word in the answer")
        return self.join(await Read(readable(question), context, gold=answer), answer)

    def join(self, reading: Reading, answer: str) -> Score:
        """The score that a reading gives."""
        found = reading.best or reading.answer
        gold, overlap = reading.gold or 0.0, f1(found, answer)
        value = {"p": gold, "f1": overlap, "both": (gold + overlap) / 2}[self.view]
        evidence = {
            "predicted": found,
            "p_answer": gold,
            "f1": overlap,
            "unanswerable": reading.unanswerable,
            "answer_in_context": reading.gold is not None,
        }
        return Score(value, evidence)
