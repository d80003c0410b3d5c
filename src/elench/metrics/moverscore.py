"""MoverScore: how far one text's pieces must be moved to become the other's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from elench.errors import MissingExtra
from elench.metrics import Score, param, register
from elench.metrics.base import Corpus
from elench.metrics.bertscore import VectorMetric
from elench.metrics.evidence import with_kinds
from elench.metrics.formulas import unit
from elench.requests import TokenVectors


@register
@dataclass(frozen=True)
class MoverScore(VectorMetric):
    """How little one text's meaning must be moved to become the other's (MoverScore, n-gram 1).

    1 - WMD: the least Σᵢⱼ Fᵢⱼ ‖xᵢ - yⱼ‖ over flows F that carry the idf weights of one text's pieces to the other's
    (eq. 1–3 of the paper); vectors have length 1, one layer of the encoder, pieces weighed by the idf of their side.
    """

    name: ClassVar[str] = "moverscore"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    citation: ClassVar[str] = (
        "Zhao et al. 2019, MoverScore: Text Generation Evaluating with Contextualized Embeddings and Earth Mover "
        "Distance, EMNLP"
    )
    limits: ClassVar[str] = (
        "idf weights come from the scored file, so a score belongs to its file; in a file of one record all pieces "
        "weigh the same. One layer is used, not a mean over five."
    )
    example: ClassVar[Mapping[str, Any]] = {
        "answer": "Jane Austen wrote it in 1811.",
        "references": ["It was written by Jane Austen."],
        "judge": "answer",
    }
    idf: bool = param(True, "weigh pieces by log((n+1)/(having it+1)) over the n texts of their side")

    def match(self, candidate: TokenVectors, reference: TokenVectors, corpus: Corpus) -> Score:
        try:
            import ot
        except ImportError:
            raise MissingExtra("moverscore (POT)", "models") from None
        own, other = self.weights(candidate, corpus, "candidate"), self.weights(reference, corpus, "reference")
        rows, columns = np.flatnonzero(own), np.flatnonzero(other)
        near = unit(candidate.vectors[rows]).astype(np.float64) @ unit(reference.vectors[columns]).T.astype(np.float64)
        distance = np.sqrt(np.maximum(2 - 2 * near, 0))
        flow = ot.emd(own[rows], other[columns], np.ascontiguousarray(distance))
        moves = [
            [
                candidate.pieces[rows[i]],
                reference.pieces[columns[j]],
                round(float(near[i, j]), 4),
                round(float(flow[i, j]), 4),
                round(float(distance[i, j]), 4),
            ]
            for i, j in zip(*np.nonzero(flow > 1e-6), strict=True)
        ]
        kind = ("matches", "share moved", "distance")
        return Score(1 - float((flow * distance).sum()), with_kinds({"moves": moves}, moves=kind))
