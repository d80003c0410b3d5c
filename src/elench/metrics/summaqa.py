"""SummaQA and QAGS: the two halves that QuestEval unites, questions from the source and from the summary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from elench.metrics import register
from elench.metrics.base import Score, param
from elench.metrics.evidence import with_kinds
from elench.metrics.questeval_base import QuestionMetric, counts
from elench.records.record import Record


@register
@dataclass(frozen=True)
class SummaQA(QuestionMetric):
    """SummaQA: how many of the source's questions does the summary answer?

    Questions from the source alone; the mean over them of F1(answer in the summary, answer in the source) and the
    reader's confidence. Written questions instead of masked sentences.
    """

    name: ClassVar[str] = "summaqa"
    citation: ClassVar[str] = "Scialom et al.: Answers Unite! EMNLP 2019."
    limits: ClassVar[str] = "Recall only: a summary that adds false statements is not punished. Longer summaries win."
    view: str = param("both", "mean of F1 and confidence, or one of them", ("both", "f1", "confidence"))

    async def score(self, record: Record) -> Score:
        summary, source = self.candidate(record), self.text(record, "context")
        made = await self.questions_of(source, "source")
        checked = await self.check_against(made, source, summary, "recall")
        overlap = sum(c.agreement for c in checked) / len(checked)
        confidence = sum(c.reading.confidence for c in checked) / len(checked)
        value = {"f1": overlap, "confidence": confidence, "both": (overlap + confidence) / 2}[self.view]
        evidence = {
            "f1": overlap,
            "confidence": confidence,
            "source_questions": counts(made),
            "questions": [c.evidence(source, summary) for c in checked],
        }
        return Score(value, with_kinds(evidence, questions="questions"))


@register
@dataclass(frozen=True)
class QAGS(QuestionMetric):
    """QAGS: do source and summary give the same answers to the summary's questions?

    Questions from the summary alone, read in both texts; the mean F1 of the two readings (Wang et al. 2020, eq. 3).
    """

    name: ClassVar[str] = "qags"
    citation: ClassVar[str] = "Wang, Cho, Lewis: Asking and Answering Questions to Evaluate Consistency. ACL 2020."
    limits: ClassVar[str] = "Precision only: an empty but true summary wins."

    async def score(self, record: Record) -> Score:
        summary, source = self.candidate(record), self.text(record, "context")
        made = await self.questions_of(self.as_asked(summary, source), "summary")
        checked = [
            replace(c, agreement=self.agree(c.reading.answer, c.question.own_answer))
            for c in await self.check_against(made, summary, source, "precision")
        ]
        evidence = {
            "summary_questions": counts(made),
            "questions": [c.evidence(summary, source) for c in checked],
        }
        value = sum(c.agreement for c in checked) / len(checked)
        return Score(value, with_kinds(evidence, questions="questions"))
