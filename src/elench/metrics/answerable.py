"""answerable and wellformed: can a question be answered from the context, and is it one as people write them?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from elench.metrics import Metric, Score, register
from elench.metrics.roundtrip import readable
from elench.records.record import Record
from elench.requests import Classify, Read


@register
@dataclass(frozen=True)
class Answerable(Metric):
    """Answerability by a reader: the probability that the context answers the question (1 − P(unanswerable)).

    No intended answer is needed: any answer counts.
    """

    name: ClassVar[str] = "answerable"
    judges: ClassVar[tuple[str, ...]] = ("question",)
    reads: ClassVar[tuple[str, ...]] = ("context",)
    roles: ClassVar[tuple[str, ...]] = ("reader",)
    citation: ClassVar[str] = (
        "Unanswerable questions after SQuAD 2.0 (Rajpurkar et al. 2018), with elench's own reader."
    )
    limits: ClassVar[str] = (
        "An extractive reader: questions whose answer is not a span of the context (yes or no, why, sums) can look "
        "unanswerable; a small change of a name or number can escape it."
    )
    example: ClassVar[dict[str, Any]] = {
        "context": "The Rhine rises in the Swiss Alps and flows into the North Sea.",
        "question": "Where does the Rhine rise?",
        "judge": "question",
    }

    async def score(self, record: Record) -> Score:
        reading = await Read(readable(self.candidate(record)), self.text(record, "context"))
        evidence = {"predicted": reading.best or reading.answer, "unanswerable": reading.unanswerable}
        return Score(1.0 - reading.unanswerable, evidence)


@register
@dataclass(frozen=True)
class Wellformed(Metric):
    """Well-formedness: is this a question as people write them, and does it make sense? Judged by its words alone."""

    name: ClassVar[str] = "wellformed"
    judges: ClassVar[tuple[str, ...]] = ("question",)
    reads: ClassVar[tuple[str, ...]] = ()
    roles: ClassVar[tuple[str, ...]] = ("wellformed",)
    citation: ClassVar[str] = (
        "Trained on the query well-formedness ratings of Faruqui and Das 2018, on questions of SQuAD and on bad copies "
        "of them."
    )
    limits: ClassVar[str] = (
        "It misses much nonsense that looks like a question: a phrase of the same topic in the wrong place, or what "
        "only knowledge of the world shows. A good question may have no answer."
    )
    example: ClassVar[dict[str, Any]] = {"question": "Where does the Rhine rise?", "judge": "question"}

    async def score(self, record: Record) -> Score:
        said = await Classify("wellformed", self.candidate(record))
        return Score(said["well formed"], {"probability": said["well formed"]})
