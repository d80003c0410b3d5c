"""What QuestEval, SummaQA and QAGS have in common: parameters, questions put to the other text, their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from elench.errors import Unscored, UsageError
from elench.metrics.base import Metric, param
from elench.metrics.questeval_questions import (
    GeneratedQuestion,
    QuestionSet,
    Recipe,
    generate_questions,
    locate,
    read_near,
)
from elench.requests import Classify, Reading, together
from elench.text.answers import agreement, f1
from elench.text.casing import cased_like
from elench.text.passages import passage_of, sentences

UNANSWERABLE = "unanswerable"
"""What the published program's reader writes where the text has no answer, and what is then scored."""
BY_FORM = -1
"""A parameter's value that means: the form's own."""
CAPS = {"questions": 16, "points": 32, "near": 2}
"""form=ours: most answers asked about in a summary and in a source, and passages read for a question."""


@dataclass(frozen=True)
class CheckedQuestion:
    """A question, its answer in the text it comes from, and what the other text says."""

    direction: str
    """precision: asked of the summary, read in the source; recall: asked of the source, read in the summary."""
    question: GeneratedQuestion
    reading: Reading
    agreement: float
    """F1 of the two answers."""
    weight: float = 1.0
    bertscore: float | None = None
    """BERTScore of the two answers, in the published program's form."""
    support: dict[str, float] | None = None
    """form=ours, where the answers differ: does one text's sentence follow from the other's (see `confirm`)?"""

    @property
    def differs(self) -> bool:
        """Does the other text answer, and differently?"""
        return bool(self.reading.answer) and self.agreement < 0.5

    @property
    def verdict(self) -> str:
        """supported, contradicted (the other text answers differently), or missing (it does not answer)."""
        if not self.differs:
            return "supported" if self.reading.answer else "missing"
        confirmed = self.support is None or max(self.support, key=self.support.__getitem__) == "contradicted"
        return "contradicted" if confirmed else "missing"

    def evidence(self, own: str, other: str) -> dict[str, Any]:
        """As plain values, with the places of both answers for highlighting."""
        answer = self.question.answer
        shown = {
            "direction": self.direction,
            "question": self.question.question,
            "answer": answer.text,
            "kind": answer.kind,
            "other": self.reading.answer,
            "f1": round(self.agreement, 4),
            "unanswerable": round(self.reading.unanswerable, 4),
            "confidence": round(self.reading.confidence, 4),
            "weight": round(self.weight, 4),
            "verdict": self.verdict,
            "span": locate(own, answer.text, answer.start),
            "other_span": self.reading.span,
        }
        if self.bertscore is not None:
            shown["bertscore"] = round(self.bertscore, 4)
        if self.support is not None:
            shown["contradicted"] = round(self.support["contradicted"], 4)
        return shown


@dataclass(frozen=True)
class QuestionMetric(Metric):
    """What the question-based metrics have in common."""

    judges: ClassVar[tuple[str, ...]] = ("summary",)
    example: ClassVar[dict[str, Any]] = {
        "judge": "summary",
        "context": (
            "The old bridge over the river Neckar was closed on Monday after engineers found cracks in two pillars. "
            "Mayor Anna Weber said repairs would cost 3 million euros and take until October."
        ),
        "summary": "The bridge over the Neckar was closed on Monday because of cracks in two pillars.",
    }
    form: str = param("paper", "the paper's definition, or our improvements (docs/decisions/0012)", ("paper", "ours"))
    questions: int = param(
        BY_FORM, "most answers asked about in a summary, spread evenly over it; 0: all; -1: all, or 16 in form=ours"
    )
    points: int = param(
        BY_FORM, "most answers asked about in a source, spread evenly over it; 0: all; -1: all, or 32 in form=ours"
    )
    near: int = param(
        BY_FORM,
        "passages of about 80 words of a long text that are read for a question; 0: the whole text; -1: the whole "
        "text, or 2 in form=ours",
    )
    beams: int = param(
        1, "questions kept for each answer: 20 in the paper's experiments, 1 in its recommendation (§5.5, Figure 4)"
    )
    filter: str = param(
        "exact",
        "round-trip check: keep a question if its own text gives the answer back, or half of it",
        ("exact", "overlap", "off"),
    )

    def check(self) -> None:
        if min(self.questions, self.points, self.near) < BY_FORM or self.beams < 1:
            raise UsageError(f"{self.name}: questions, points and near must be -1 or more, beams 1 or more")
        if self.form == "ours" and self.beams > 1:
            raise UsageError(f"{self.name}[form=ours]: its cloze questions have one variant; leave out beams")

    @property
    def reads(self) -> tuple[str, ...]:
        return ("context",)

    @property
    def roles(self) -> tuple[str, ...]:
        return ("parser", "reader", "support") if self.form == "ours" else ("parser", "asker", "reader")

    def cap(self, name: str) -> int:
        """A cap as given, or the form's own."""
        given: int = getattr(self, name)
        return given if given != BY_FORM else CAPS[name] if self.form == "ours" else 0

    async def questions_of(self, text: str, where: str) -> QuestionSet:
        """The questions of a text; Unscored when there is nothing to ask about, or no question passed the check."""
        most = self.cap("questions" if where == "summary" else "points")
        check = "off" if self.form == "code" else self.filter
        recipe = Recipe(self.form, self.form == "ours", self.beams, most, check, self.cap("near"))
        made = await generate_questions(text, recipe)
        if not made.candidates:
            raise Unscored(f"no entity or noun in the {where} to ask about")
        if not made.questions:
            raise Unscored(f"none of {made.written} questions on the {where} passed the round-trip check")
        return made

    def as_asked(self, summary: str, source: str) -> str:
        """The summary as questions are asked about it; form=ours writes lower-case names as the source does."""
        return cased_like(summary, source) if self.form == "ours" else summary

    async def check_against(self, made: QuestionSet, own: str, other: str, direction: str) -> list[CheckedQuestion]:
        """What the other text says to each question about a text."""
        readings = await together(*[read_near(q.question, other, self.cap("near")) for q in made.questions])
        checked = [
            CheckedQuestion(direction, q, r, self.agree(r.answer, q.answer.text))
            for q, r in zip(made.questions, readings, strict=True)
        ]
        return await confirm(checked, own, other) if self.form == "ours" else checked

    def agree(self, found: str, expected: str) -> float:
        """How well the answers of both texts agree: F1; form=ours does not mind how the texts split words."""
        if self.form == "code":
            return f1(found or UNANSWERABLE, expected)
        if not found:
            return 0.0
        return agreement(found, expected) if self.form == "ours" else f1(found, expected)


async def confirm(checked: Sequence[CheckedQuestion], own: str, other: str) -> list[CheckedQuestion]:
    """form=ours: a different answer contradicts only where the support model says so of the sentences that hold the two
    answers; a reader that picked another part of the text is not a contradiction. No score depends on it."""
    differ = [c for c in checked if c.differs]
    asked = [Classify("support", _sentence_at(other, c.reading), _own_sentence(own, c)) for c in differ]
    said = dict(zip(map(id, differ), await together(*asked), strict=True))
    return [replace(c, support=said.get(id(c))) for c in checked]


def _own_sentence(text: str, checked: CheckedQuestion) -> str:
    return passage_of(text, checked.question.answer.start, sentences(text))


def _sentence_at(text: str, reading: Reading) -> str:
    span = reading.span or locate(text, reading.answer)
    return passage_of(text, span[0], sentences(text)) if span else text


def counts(made: QuestionSet) -> dict[str, Any]:
    """How many answers were found, questions written and kept."""
    kept = len(made.questions)
    return {
        "candidates": made.candidates,
        "written": made.written,
        "kept": kept,
        "keep_rate": round(kept / max(made.written, 1), 4),
    }
