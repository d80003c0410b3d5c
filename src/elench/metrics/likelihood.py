"""Likelihood: how readily a language model would write one text after having read another (BARTScore)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.errors import Unscored
from elench.metrics import ReferenceMetric, Score, param, register
from elench.metrics.evidence import with_kinds
from elench.records.record import Record
from elench.requests import Continue, Request, TokenScores, Translate


@register
@dataclass(frozen=True)
class Likelihood(ReferenceMetric):
    """How readily a language model writes one text after reading another: mean log-probability per token (BARTScore).

    (1/m) Σₜ log p(yₜ | y₍<ₜ₎, x) (eq. 2 of the paper with equal weights), where x → y is context → judged text
    (`direction=faithful`), judged text → reference (`recall`) or reference → judged text (`precision`). A causal model
    reads x, a line break, then y; a sequence-to-sequence model scores y with its end-of-text tokens, as BARTScore does.
    """

    name: ClassVar[str] = "likelihood"
    range: ClassVar[tuple[float, float]] = (float("-inf"), 0.0)
    citation: ClassVar[str] = "Yuan et al. 2021, BARTScore: Evaluating Generated Text as Text Generation, NeurIPS"
    limits: ClassVar[str] = "Fluent, frequent wording scores well whether or not it is right; long names score badly."
    example: ClassVar[Mapping[str, Any]] = {
        "context": "Jane Austen wrote Emma in 1815. It was her fourth novel.",
        "question": "When did Jane Austen write Emma?",
        "judge": "question",
    }
    direction: str = param(
        "faithful",
        "faithful: context → text; recall: text → reference; precision: reference → text",
        ("faithful", "recall", "precision"),
    )
    model: str = param("causal", "which kind of language model answers", ("causal", "seq2seq"))

    @property
    def reads(self) -> tuple[str, ...]:
        return ("context",) if self.direction == "faithful" else ("references",)

    @property
    def roles(self) -> tuple[str, ...]:
        return (self.model,)

    def given_references(self, record: Record) -> tuple[str, ...]:
        if self.direction == "faithful":
            return (self.text(record, "context"),)
        return super().given_references(record)

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        read, written = (candidate, reference) if self.direction == "recall" else (reference, candidate)
        read, written = read.strip(), written.strip()
        request: Request[TokenScores] = (
            Continue(f"{read}\n", written) if self.model == "causal" else Translate(read, written)
        )
        scores = await request
        if not scores.logprobs:
            raise Unscored("no scorable token")
        tokens = [[piece, round(value, 4)] for piece, value in zip(scores.pieces, scores.logprobs, strict=True)]
        evidence = with_kinds({"tokens": tokens, "parts": scores.chunks, "cut": scores.cut}, tokens="logprobs")
        return Score(scores.total / len(scores.logprobs), evidence)
