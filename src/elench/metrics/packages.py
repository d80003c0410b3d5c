"""BLEURT, COMET and CTC: learned metrics of other projects, computed by their own packages where installed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.errors import Unscored
from elench.metrics import Metric, ReferenceMetric, Score, param, register
from elench.records.record import Record
from elench.requests import Rate

NOT_INCLUDED = "Its package and checkpoint do not come with elench; nothing is fetched without --pull. "
EXAMPLE = {
    "judge": "question",
    "context": "Jack drove his car to the bazaar to purchase milk and honey for his large family.",
    "question": "Where did Jack buy his milk and honey?",
    "references": ["Where did Jack get the milk and the honey?"],
}


@register
@dataclass(frozen=True)
class Bleurt(ReferenceMetric):
    """BLEURT: a model trained on ratings of translations says how well the text conveys a reference.

    The number is what `BleurtScorer(checkpoint).score(references=…, candidates=…)` of the package gives.
    """

    name: ClassVar[str] = "bleurt"
    roles: ClassVar[tuple[str, ...]] = ("bleurt",)
    languages: ClassVar[tuple[str, ...]] = ()
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    citation: ClassVar[str] = "Sellam, Das, Parikh: BLEURT. ACL 2020."
    limits: ClassVar[str] = NOT_INCLUDED + "Give the checkpoint with --model bleurt=FOLDER (BLEURT-20 is recommended)."
    example: ClassVar[Mapping[str, Any]] = EXAMPLE

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        return Score(_number(await Rate("bleurt", candidate, reference=reference)))


@register
@dataclass(frozen=True)
class Comet(ReferenceMetric):
    """COMET: a model trained on ratings of translations reads the context, the text and a reference.

    The context takes the place of the source sentence, as in Table 2 of QRelScore. The number is what `predict` of the
    package unbabel-comet gives for {src, mt, ref}.
    """

    name: ClassVar[str] = "comet"
    roles: ClassVar[tuple[str, ...]] = ("comet",)
    languages: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ("context", "references")
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    citation: ClassVar[str] = "Rei, Stewart, Farinha, Lavie: COMET. EMNLP 2020."
    limits: ClassVar[str] = (
        NOT_INCLUDED + "Give the checkpoint with --model comet=FILE; it is a pickle, which the package opens, so take "
        "it from a source you trust. Trained on single sentences: a long context is cut by the package."
    )
    example: ClassVar[Mapping[str, Any]] = EXAMPLE

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        context = self.text(record, "context")
        return Score(_number(await Rate("comet", candidate, reference=reference, source=context)))


@register
@dataclass(frozen=True)
class Ctc(Metric):
    """CTC consistency: how well each word of the text aligns with the context, on average.

    The embedding-based alignment of the paper (E-roberta); --model ctc=E-bert, D-cnndm or R-cnndm takes another. The
    number is what `SummarizationScorer(align).score(doc, [], text, aspect="consistency")` of ctc-score gives.
    """

    name: ClassVar[str] = "ctc"
    judges: ClassVar[tuple[str, ...]] = ("question", "answer", "summary")
    reads: ClassVar[tuple[str, ...]] = ("context",)
    roles: ClassVar[tuple[str, ...]] = ("ctc",)
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    citation: ClassVar[str] = "Deng, Tan, Liu, Xing, Hu: Compression, Transduction, and Creation. EMNLP 2021."
    limits: ClassVar[str] = NOT_INCLUDED + "The signature names the alignment model but cannot hash its weights."
    example: ClassVar[Mapping[str, Any]] = EXAMPLE
    judge: str = param(
        "", "which text is judged; default: the record's own field", ("", "question", "answer", "summary")
    )

    async def score(self, record: Record) -> Score:
        return Score(_number(await Rate("ctc", self.candidate(record), source=self.text(record, "context"))))


def _number(value: float | None) -> float:
    if value is None or not math.isfinite(value):
        raise Unscored("the package gave no score for this text")
    return value
