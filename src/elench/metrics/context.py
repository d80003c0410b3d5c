"""context-recall and context-precision: did retrieval bring what the reference answer needs, and little else?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from elench.errors import Unscored
from elench.metrics import Metric, Score, register
from elench.metrics.grounding import SUPPORTED, ClaimVerdict, evidence, judge, read_source
from elench.metrics.support import claims
from elench.records.record import Record
from elench.requests import together
from elench.text.answers import with_question


async def supported_claims(record: Record, references: tuple[str, ...], *passages: str) -> list[list[ClaimVerdict]]:
    """For each reference, the verdict on each of its claims; a single claim is judged together with the question."""
    source = await read_source(*passages)
    if not source.sentences:
        raise Unscored("no word in the context")
    found = [claims(reference) for reference in references]
    if record.question:
        found = [[with_question(record.question, c) if len(part) == 1 else c for c in part] for part in found]
    said = await together(*[together(*[judge(claim, source) for claim in part]) for part in found if part])
    if not said:
        raise Unscored("no word in the references")
    return [list(part) for part in said]


@dataclass(frozen=True)
class _ContextMetric(Metric):
    """Judges the context, whatever text of the record is judged otherwise."""

    judges: ClassVar[tuple[str, ...]] = ("answer", "summary", "question")
    reads: ClassVar[tuple[str, ...]] = ("context", "references")
    roles: ClassVar[tuple[str, ...]] = ("encoder", "support")
    citation: ClassVar[str] = "After the context metrics of RAGAS (Es et al. 2024), with elench's own support model."
    noted: ClassVar[bool] = False
    reads_judged: ClassVar[bool] = False
    example: ClassVar[dict[str, Any]] = {
        "context": ["The Rhine rises in the Swiss Alps.", "Basel has many museums."],
        "question": "Where does the Rhine rise?",
        "answer": "in the Alps",
        "references": ["The Rhine rises in the Swiss Alps."],
        "judge": "answer",
    }

    def texts(self, record: Record) -> tuple[str, tuple[str, ...]]:
        """The context and the references; the judged text is not read, and may be absent."""
        self.judged(record)
        return self.text(record, "context"), self.given_references(record)


@register
@dataclass(frozen=True)
class ContextRecall(_ContextMetric):
    """Context recall: the share of the reference's sentences that the context supports (best reference)."""

    name: ClassVar[str] = "context-recall"
    limits: ClassVar[str] = "As good as its support model; a reference that needs outside knowledge is never covered."

    async def score(self, record: Record) -> Score:
        context, references = self.texts(record)
        parts = await supported_claims(record, references, context)
        shares = [sum(v.supported for v in part) / len(part) for part in parts]
        best = max(range(len(parts)), key=lambda i: shares[i])
        return Score(shares[best], evidence(parts[best]))


@register
@dataclass(frozen=True)
class ContextPrecision(_ContextMetric):
    """Context precision: are the passages that support the reference ranked before those that do not?

    The mean over the supporting passages of the share of supporting ones among the passages up to it (average
    precision); 0 where no passage supports any sentence of the reference.
    """

    name: ClassVar[str] = "context-precision"
    limits: ClassVar[str] = "Needs the context as a list of passages; with one passage it is 1 or 0."

    async def score(self, record: Record) -> Score:
        context, references = self.texts(record)
        passages = tuple(p for p in (record.passages or (context,)) if p.strip())
        said = await together(*[supported_claims(record, references, passage) for passage in passages])
        best = [max((v for part in parts for v in part), key=lambda v: v.supported) for parts in said]
        useful = [v.verdict == SUPPORTED for v in best]
        ranks = [sum(useful[: i + 1]) / (i + 1) for i, good in enumerate(useful) if good]
        value = sum(ranks) / len(ranks) if ranks else 0.0
        return Score(value, evidence(best))
