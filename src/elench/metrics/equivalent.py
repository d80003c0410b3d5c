"""equivalent: does an answer say the same as a reference, to this question?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from elench.metrics import ReferenceMetric, Score, register
from elench.records.record import Record
from elench.requests import Classify
from elench.text.answers import with_question


@register
@dataclass(frozen=True)
class Equivalent(ReferenceMetric):
    """Equivalence: the probability that the answer says the same as a reference, to this question.

    A model reads "question reference" and "question answer" as a pair, of a long question the last 40 words. It was
    trained on judged answers and on copies of right ones with a negation, number or name changed.
    """

    name: ClassVar[str] = "equivalent"
    judges: ClassVar[tuple[str, ...]] = ("answer",)
    reads: ClassVar[tuple[str, ...]] = ("question", "references")
    roles: ClassVar[tuple[str, ...]] = ("equivalent",)
    citation: ClassVar[str] = (
        "Answer equivalence after Bulian et al. 2022 and semantic answer similarity (Risch et al. 2021), with elench's "
        "own small model."
    )
    limits: ClassVar[str] = (
        "A small model: two names or numbers that it does not know to be the same are different to it. A long answer "
        "that holds the right one and more is judged as a whole."
    )
    example: ClassVar[dict[str, Any]] = {
        "question": "Where does the Rhine rise?",
        "answer": "It rises in the Alps of Switzerland.",
        "references": ["in the Swiss Alps"],
        "judge": "answer",
    }

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        question = self.text(record, "question")
        texts = [with_question(question, answer) for answer in (reference, candidate)]
        said = await Classify("equivalent", *texts)
        return Score(said["equivalent"], {"probability": said["equivalent"]})
