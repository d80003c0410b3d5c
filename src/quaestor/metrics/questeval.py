"""QuestEval (Scialom et al. 2021), and SummaQA and QAGS, which it unites: a summary questioned against its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from quaestor.errors import Unscored, UsageError
from quaestor.metrics import register
from quaestor.metrics.base import Metric, Score, param
from quaestor.metrics.questeval_questions import Asked, Question, ask, place, read
from quaestor.records import Record
from quaestor.requests import Embed, Floats, Importance, Reading, together, whichever
from quaestor.text.answers import agreement, f1
from quaestor.text.casing import cased_like

if TYPE_CHECKING:
    from rich.console import RenderableType

CHECKS = ("exact", "overlap", "off")


@dataclass(frozen=True)
class Verdict:
    """A question, its answer in the text it was made from, and what the other text says."""

    direction: str
    """precision: asked of the summary, read in the source; recall: asked of the source, read in the summary."""
    question: Question
    reading: Reading
    agreement: float
    """F1 of the two answers."""
    weight: float = 1.0
    likeness: float | None = None
    """BERTScore of the two answers, in the published code's form."""

    @property
    def verdict(self) -> str:
        """supported, contradicted (the other text answers differently), or missing (it does not answer)."""
        if not self.reading.answer:
            return "missing"
        return "supported" if self.agreement >= 0.5 else "contradicted"

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
            "span": place(own, answer.text, answer.start),
            "other_span": self.reading.span,
        }
        return shown if self.likeness is None else {**shown, "bertscore": round(self.likeness, 4)}


@dataclass(frozen=True)
class Questioning(Metric):
    """What the question-based metrics have in common."""

    judges: ClassVar[tuple[str, ...]] = ("summary",)
    reads: ClassVar[tuple[str, ...]] = ("context",)
    roles: ClassVar[tuple[str, ...]] = ("parser", "asker", "reader")
    example: ClassVar[dict[str, Any]] = {
        "judge": "summary",
        "context": (
            "The old bridge over the river Neckar was closed on Monday after engineers found cracks in two pillars. "
            "Mayor Anna Weber said repairs would cost 3 million euros and take until October."
        ),
        "summary": "The bridge over the Neckar was closed on Monday because of cracks in two pillars.",
    }
    questions: int = param(16, "most answers asked about in a summary, spread evenly over it (0: all)")
    points: int = param(32, "most answers asked about in a source, spread evenly over it (0: all)")
    near: int = param(2, "passages of about 80 words of a long text that are read for a question (0: all of it)")
    beams: int = param(1, "questions written for each answer, all of which count (the default asker, cloze, has one)")
    casing: str = param(
        "source", "names a summary writes in lower case: asked about as the source writes them, or as they are",
        ("source", "own"),
    )  # fmt: skip
    filter: str = param(
        "exact", "round trip: keep a question if its own text gives the answer back, or half of it", CHECKS
    )

    def check(self) -> None:
        if min(self.questions, self.points, self.near) < 0 or self.beams < 1:
            raise UsageError(f"{self.name}: questions, points and near must be 0 or more, beams 1 or more")

    async def made(self, text: str, where: str, form: str = "paper") -> Asked:
        """The questions of a text; Unscored when there is nothing to ask about, or no question stood the check."""
        most = self.questions if where == "summary" else self.points
        asked = await ask(text, form=form, beams=self.beams, most=most, check=self.filter, reads=self.near)
        if not asked.candidates:
            raise Unscored(f"no entity or noun in the {where} to ask about")
        if not asked.kept:
            raise Unscored(f"none of {asked.written} questions on the {where} stood the round trip")
        return asked

    def cased(self, summary: str, source: str) -> str:
        """The summary as it is asked about."""
        return cased_like(summary, source) if self.casing == "source" else summary

    async def read(self, asked: Asked, text: str, direction: str) -> list[Verdict]:
        """What the other text says to each question."""
        readings = await together(*[read(q.question, text, self.near) for q in asked.kept])
        return [
            Verdict(direction, q, r, self.agree(r.answer, q.answer.text) if r.answer else 0.0)
            for q, r in zip(asked.kept, readings, strict=True)
        ]

    def agree(self, answer: str, other: str) -> float:
        """How well the answers of both texts agree."""
        return agreement(answer, other)

    def explain(self, evidence: Mapping[str, Any]) -> RenderableType:
        """A table for the terminal: what was asked in both directions, both answers, verdicts; the worst first."""
        from rich.markup import escape
        from rich.table import Table

        order = {"contradicted": 0, "missing": 1, "supported": 2}
        parts = ", ".join(f"{k} {evidence[k]:.3f}" for k in ("precision", "recall") if evidence.get(k) is not None)
        table = Table(title=escape(f"{self} {parts}".strip()), title_justify="left")
        for column in ("asked of", "question", "its answer", "the other text", "weight", "verdict"):
            table.add_column(column, justify="right" if column == "weight" else "left", no_wrap=column == "verdict")
        for row in sorted(evidence["questions"], key=lambda q: (order[q["verdict"]], -q["weight"])):
            colour = {"contradicted": "red", "missing": "yellow", "supported": "green"}[row["verdict"]]
            table.add_row(
                "summary" if row["direction"] == "precision" else "source",
                escape(row["question"]),
                escape(row["answer"]),
                escape(row["other"] or "—"),
                f"{row['weight']:.2f}",
                f"[{colour}]{row['verdict']}[/]",
            )
        return table


def _counts(asked: Asked) -> dict[str, Any]:
    return {
        "candidates": asked.candidates,
        "written": asked.written,
        "kept": len(asked.kept),
        "keep_rate": round(len(asked.kept) / max(asked.written, 1), 4),
    }


@register
@dataclass(frozen=True)
class QuestEval(Questioning):
    """QuestEval: does the summary say only what the source says (precision), and all that matters (recall)?

    Questions about names and noun phrases are made from both texts; those whose own text gives the answer back are
    kept. Precision = mean of F1(answer in the source, answer in the summary) over the summary's questions (1). Recall =
    Σ W(q) (1 − P(unanswerable | summary, q)) / Σ W(q) over the source's questions (2). The score is their harmonic mean
    (§4.3). form=code is QuestEval 0.2.4: answers of the first five sentences, no round trip, each direction the mean of
    answerability, BERTScore and F1, the score the mean of both directions. Outside that form F1 does not mind how the
    two texts part words ("44 - year - old", "44-year-old").
    """

    name: ClassVar[str] = "questeval"
    roles: ClassVar[tuple[str, ...]] = ("parser", "asker", "reader", "weights", "encoder")
    citation: ClassVar[str] = "Scialom et al.: QuestEval: Summarization Asks for Fact-based Evaluation. EMNLP 2021."
    limits: ClassVar[str] = (
        "Only as good as its reader and asker, which here are small: many questions fail the round trip, and a correct "
        "paraphrase may count as contradicted. English. Few questions on a short summary make a coarse number. On "
        "extractive summaries source-overlap is cheaper and as good: see docs/results/questeval.md."
    )
    form: str = param("paper", "the paper's formulas, or the published code's (0.2.4)", ("paper", "code"))
    part: str = param("f", "harmonic mean of both parts, or one of them", ("f", "precision", "recall"))
    weights: str = param("learned", "importance of the source's questions", ("uniform", "learned"))
    against: str = param("source", "what the summary is held against", ("source", "references", "both"))
    join: str = param("max", "several texts to hold against: the best, or the mean", ("max", "mean"))

    def needs(self) -> tuple[str, ...]:
        return {"source": ("context",), "references": ("references",), "both": ("context", "references")}[self.against]

    def roles_needed(self) -> tuple[str, ...]:
        weigh = self.form == "paper" and self.weights == "learned" and self.part != "precision"
        extra = ("encoder",) if self.form == "code" else ("weights",) if weigh else ()
        return ("parser", "asker", "reader", *extra)

    async def score(self, record: Record) -> Score:
        summary = self.candidate(record)
        texts: list[tuple[str, str]] = []
        if self.against != "references":
            texts.append(("source", self.text(record, "context")))
        if self.against != "source":
            usable = self.given_references(record)
            texts += [(f"reference {i}", r) for i, r in enumerate(record.references, 1) if r in usable]
        places, scores = await whichever(*[self.compare(summary, text) for _, text in texts])
        best = max(range(len(scores)), key=lambda i: (scores[i].value, -i))
        evidence = {**scores[best].evidence, "against": texts[places[best]][0]}
        if len(scores) == 1:
            return replace(scores[best], evidence=evidence)
        evidence["texts"] = {
            texts[at][0]: {"score": s.value, **{k: s.evidence[k] for k in ("precision", "recall")}}
            for at, s in zip(places, scores, strict=True)
        }
        if self.join == "max":
            return replace(scores[best], evidence=evidence)
        del evidence["precision"], evidence["recall"]  # of one text: they do not make up the mean
        return Score(sum(s.value for s in scores) / len(scores), evidence)

    async def compare(self, summary: str, source: str) -> Score:
        """The summary against one text."""
        precision, recall = await together(self.precision(summary, source), self.recall(summary, source))
        verdicts = [*precision[1], *recall[1]]
        if self.part == "precision":
            value = precision[0]
        elif self.part == "recall":
            value = recall[0]
        elif self.form == "code":
            value = (precision[0] + recall[0]) / 2
        else:
            total = precision[0] + recall[0]
            value = 2 * precision[0] * recall[0] / total if total else 0.0
        evidence: dict[str, Any] = {
            "precision": precision[0] if precision[1] else None,
            "recall": recall[0] if recall[1] else None,
            "summary_questions": precision[2],
            "source_questions": recall[2],
            "questions": [
                v.evidence(summary, source) if v.direction == "precision" else v.evidence(source, summary)
                for v in verdicts
            ],
        }
        return Score(value, evidence)

    async def precision(self, summary: str, source: str) -> tuple[float, list[Verdict], dict[str, Any]]:
        """Equation (1): the summary's questions, answered by the source."""
        if self.part == "recall":
            return 0.0, [], {}
        asked = await self.asked(summary if self.form == "code" else self.cased(summary, source), "summary")
        verdicts = await self.read(asked, source, "precision")
        if self.form == "code":
            return *await self.as_code(verdicts), _counts(asked)
        return sum(v.agreement for v in verdicts) / len(verdicts), verdicts, _counts(asked)

    async def recall(self, summary: str, source: str) -> tuple[float, list[Verdict], dict[str, Any]]:
        """Equation (2): the source's questions, by weight, answered by the summary."""
        if self.part == "precision":
            return 0.0, [], {}
        asked = await self.asked(source, "source")
        verdicts = await self.read(asked, summary, "recall")
        if self.form == "code":
            return *await self.as_code(verdicts), _counts(asked)
        if self.weights == "learned":
            weights = await together(*[Importance(source, q.question, q.answer.text) for q in asked.kept])
            verdicts = [replace(v, weight=w) for v, w in zip(verdicts, weights, strict=True)]
        total = sum(v.weight for v in verdicts)
        known = sum(v.weight * (1 - v.reading.unanswerable) for v in verdicts)
        return known / total if total else 0.0, verdicts, _counts(asked)

    async def asked(self, text: str, where: str) -> Asked:
        """The questions of a text in this form; the published code checks none."""
        if self.form == "code":
            return await replace(self, filter="off").made(text, where, "code")
        return await self.made(text, where)

    def agree(self, answer: str, other: str) -> float:
        return f1(answer, other) if self.form == "code" else agreement(answer, other)

    async def as_code(self, verdicts: Sequence[Verdict]) -> tuple[float, list[Verdict]]:
        """A direction's score in the published code: the plain mean of answerability, BERTScore and F1."""
        liked = await together(*[likeness(v.reading.answer, v.question.answer.text) for v in verdicts])
        verdicts = [replace(v, likeness=b) for v, b in zip(verdicts, liked, strict=True)]
        parts = [x for v in verdicts for x in (1 - v.reading.unanswerable, v.likeness or 0.0, v.agreement)]
        return sum(parts) / len(parts), list(verdicts)


async def likeness(answer: str, gold: str) -> float:
    """BERTScore F of two answers, special tokens left out; 0 for an empty one."""
    if not answer.strip() or not gold.strip():
        return 0.0
    a, b = await together(Embed(answer), Embed(gold))
    x, y = (_rows(v.vectors, v.special) for v in (a, b))
    if not len(x) or not len(y):
        return 0.0
    cosines = x @ y.T
    precision, recall = float(cosines.max(1).mean()), float(cosines.max(0).mean())
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0


def _rows(vectors: Floats, special: Sequence[bool]) -> Floats:
    import numpy as np

    rows = vectors[~np.asarray(special, dtype=bool)].astype(np.float32)
    unit: Floats = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return unit


@register
@dataclass(frozen=True)
class SummaQA(Questioning):
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
        asked = await self.made(source, "source")
        verdicts = await self.read(asked, summary, "recall")
        n = len(verdicts)
        agreement = sum(v.agreement for v in verdicts) / n
        confidence = sum(v.reading.confidence for v in verdicts) / n
        value = {"f1": agreement, "confidence": confidence, "both": (agreement + confidence) / 2}[self.view]
        evidence = {
            "f1": agreement,
            "confidence": confidence,
            "source_questions": _counts(asked),
            "questions": [v.evidence(source, summary) for v in verdicts],
        }
        return Score(value, evidence)


@register
@dataclass(frozen=True)
class QAGS(Questioning):
    """QAGS: do source and summary give the same answers to the summary's questions?

    Questions from the summary alone, read in both texts; the mean F1 of the two readings (Wang et al. 2020, eq. 3).
    """

    name: ClassVar[str] = "qags"
    citation: ClassVar[str] = "Wang, Cho, Lewis: Asking and Answering Questions to Evaluate Consistency. ACL 2020."
    limits: ClassVar[str] = "Precision only: an empty but true summary wins."

    async def score(self, record: Record) -> Score:
        summary, source = self.candidate(record), self.text(record, "context")
        asked = await self.made(self.cased(summary, source), "summary")
        verdicts = [
            replace(v, agreement=self.agree(v.reading.answer, v.question.found) if v.reading.answer else 0.0)
            for v in await self.read(asked, source, "precision")
        ]
        evidence = {
            "summary_questions": _counts(asked),
            "questions": [v.evidence(summary, source) for v in verdicts],
        }
        return Score(sum(v.agreement for v in verdicts) / len(verdicts), evidence)
