"""BERTScore: each piece of a text matched with the most similar piece of the other, by a language model's vectors."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from elench.errors import Unscored, UsageError
from elench.metrics import CorpusMetric, ReferenceMetric, Score, param, register
from elench.metrics.base import Corpus
from elench.metrics.evidence import with_kinds
from elench.metrics.formulas import f_measure, unit
from elench.records.record import Record
from elench.requests import Embed, TokenVectors, together

Weights = npt.NDArray[np.float64]
DOCUMENTS = "documents"


@dataclass(frozen=True)
class VectorMetric(ReferenceMetric, CorpusMetric):
    """What BERTScore and MoverScore share: vectors of both texts, pieces weighed by how rare they are in the file."""

    roles = ("encoder",)
    layer: int = param(-1, "encoder layer whose vectors are compared; -1: the catalog's choice for this model")
    idf: bool = param(False, "weigh pieces by log((n+1)/(having it+1)) over the n texts of the file")
    against: str = param("references", "what the text is compared with", ("references", "context"))
    space: bool = param(True, "begin every text with a blank, so that byte-level tokenizers see a first word as a word")

    @abstractmethod
    def match(self, candidate: TokenVectors, reference: TokenVectors, corpus: Corpus) -> Score:
        """Score the vectors of the judged text against those of one reference."""

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        return await self._compared(candidate, reference, Corpus())

    async def _compared(self, candidate: str, reference: str, corpus: Corpus) -> Score:
        layer = None if self.layer < 0 else self.layer
        own, other = await together(Embed(self.shown(candidate), layer), Embed(self.shown(reference), layer))
        return self.match(own, other, corpus)

    async def score_given(self, record: Record, corpus: Corpus) -> Score:
        candidate, references = self.candidate(record), self.given_references(record)
        scores = await together(*[self._compared(candidate, reference, corpus) for reference in references])
        return self.joined(references, scores)

    async def score(self, record: Record) -> Score:
        return await self.score_given(record, await self.gather(record) if self.idf else Corpus())

    @property
    def first_pass(self) -> bool:
        return self.idf

    async def gather(self, record: Record) -> Corpus:
        """How many texts have each piece, on either side; a text counts as often as it occurs in the file."""
        counts: Corpus = Corpus()
        sides = {"reference": self.given_references(record), "candidate": (self.candidate(record),)}
        for side, texts in sides.items():
            for coded in await together(*[Embed(self.shown(text), 0) for text in texts]):
                counts.update((side, piece) for piece in set(coded.ids))
                counts[side, DOCUMENTS] += 1
        return counts

    def given_references(self, record: Record) -> tuple[str, ...]:
        return (self.text(record, "context"),) if self.against == "context" else super().given_references(record)

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.against,)

    def shown(self, text: str) -> str:
        return f" {text.strip()}" if self.space else text.strip()

    def weights(self, text: TokenVectors, corpus: Corpus, side: str) -> Weights:
        """Weight of each piece, summing to 1; special tokens weigh 0. Without a rare piece all others weigh alike."""
        plain: Weights = np.array([0.0 if special else 1.0 for special in text.special])
        if not plain.any():
            raise Unscored("no scorable token")
        if self.idf and (documents := corpus[side, DOCUMENTS]):
            rare = plain * np.array([math.log((documents + 1) / (corpus[side, piece] + 1)) for piece in text.ids])
            plain = rare if rare.any() else plain
        weights: Weights = plain / plain.sum()
        return weights

    def check(self) -> None:
        if self.layer < -1:
            raise UsageError(f"{self}: layer is a number from 0, or -1 for the catalog's choice")


@register
@dataclass(frozen=True)
class BertScore(VectorMetric):
    """How well the pieces of two texts match, by cosine of a language model's vectors (BERTScore).

    P = Σᵢ wᵢ maxⱼ cos(xᵢ, yⱼ) over the judged text's pieces, R the same over the reference's, F = 2PR/(P+R)
    (eq. 1–3 of the paper); with `baseline` b, each becomes (x - b)/(1 - b). Equal to bert-score 0.3.13 on the same
    weights, except that long texts are read whole, in parts, where bert-score cuts them.
    """

    name: ClassVar[str] = "bertscore"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    citation: ClassVar[str] = "Zhang et al. 2020, BERTScore: Evaluating Text Generation with BERT, ICLR"
    limits: ClassVar[str] = (
        "Values lie in a narrow band whose place depends on the encoder; compare only scores of one signature. "
        "Negation, names and numbers change it little."
    )
    example: ClassVar[Mapping[str, Any]] = {
        "question": "Who wrote the book?",
        "references": ["Who is the author of the book?"],
        "judge": "question",
    }
    part: str = param("F", "precision, recall or their harmonic mean", ("P", "R", "F"))
    baseline: float = param(0.0, "score of unrelated texts, subtracted and stretched away: (x-b)/(1-b); 0: none")

    def match(self, candidate: TokenVectors, reference: TokenVectors, corpus: Corpus) -> Score:
        near = unit(candidate.vectors) @ unit(reference.vectors).T
        own, other = self.weights(candidate, corpus, "reference"), self.weights(reference, corpus, "reference")
        precision, recall = float(own @ near.max(1)), float(other @ near.max(0))
        values = {
            part: (value - self.baseline) / (1 - self.baseline)
            for part, value in zip("PRF", (precision, recall, f_measure(precision, recall)), strict=True)
        }
        matches = [
            [candidate.pieces[i], reference.pieces[j], round(float(near[i, j]), 4)]
            for i, j in enumerate(near.argmax(1).tolist())
            if not candidate.special[i]
        ]
        return Score(values[self.part], with_kinds({**values, "matches": matches}, matches="matches"))

    def check(self) -> None:
        super().check()
        if self.baseline >= 1:
            raise UsageError(f"{self}: the baseline must be below 1")
