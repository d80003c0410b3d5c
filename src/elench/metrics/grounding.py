"""Does a claim follow from a text? Picks the passages it may follow from and asks the support model about each.

The sentences of the text nearest to the claim are chosen by the encoder. Judged are the nearest sentence alone, the
two nearest with their neighbours, and the three nearest joined. The most supporting passage counts, unless another
contradicts the claim more strongly than it supports it. A sentence that the supporting passage itself holds is no such
other: alone it lacks what the sentence beside it says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elench.metrics.evidence import with_kinds
from elench.metrics.formulas import unit
from elench.requests import Classify, Embed, TokenVectors, together
from elench.text.passages import sentences

SUPPORTED, CONTRADICTED, NOT_FOUND = "supported", "contradicted", "not found"
LONG = 40
"""Words of a passage's sentence, at most; longer ones are cut."""
PASSAGE = 8
"""Sentences of the source that a claim is shown with."""


@dataclass(frozen=True)
class ClaimVerdict:
    """What the support model says of a claim, and by which passage."""

    claim: str
    passage: str
    supported: float
    contradicted: float
    not_found: float

    @property
    def verdict(self) -> str:
        chances = ((self.supported, SUPPORTED), (self.contradicted, CONTRADICTED), (self.not_found, NOT_FOUND))
        return max(chances)[1]

    def evidence(self) -> dict[str, Any]:
        """The verdict as plain JSON, for the evidence of a score."""
        chances = {SUPPORTED: self.supported, CONTRADICTED: self.contradicted, NOT_FOUND: self.not_found}
        return {"sentence": self.claim, "passage": self.passage, "verdict": self.verdict, "probabilities": chances}


def evidence(verdicts: Sequence[ClaimVerdict]) -> dict[str, Any]:
    """The verdicts as the evidence of a score."""
    return with_kinds({"sentences": [v.evidence() for v in verdicts]}, sentences="sentences")


@dataclass(frozen=True)
class SourceText:
    """A text that claims are compared with: its sentences and their vectors."""

    sentences: tuple[str, ...]
    vectors: npt.NDArray[np.float32]

    def nearest(self, claim: npt.NDArray[np.float32], most: int = 3) -> list[int]:
        """The sentences nearest to a claim, nearest first."""
        order = np.argsort(-(self.vectors @ claim), kind="stable")
        return [int(i) for i in order[:most]]

    def passages(self, claim: npt.NDArray[np.float32]) -> list[tuple[str, ...]]:
        """The passages that a claim is judged by, as their sentences."""
        if len(self.sentences) <= 2:
            return [self.sentences]
        near = self.nearest(claim)
        groups = [[near[0]], *([i for i in range(k - 1, k + 2) if 0 <= i < len(self.sentences)] for k in near[:2])]
        groups.append(sorted(near))
        return list(dict.fromkeys(tuple(self.sentences[i] for i in group) for group in groups))


def cut_source(*texts: str) -> tuple[str, ...]:
    """The sentences that claims are compared with."""
    return tuple(text[a:b] for text in texts for a, b in sentences(text, LONG))


async def read_source(*texts: str) -> SourceText:
    """A text, or several passages, as sentences with vectors; without any word it has no sentences."""
    found = cut_source(*texts)
    if not found:
        return SourceText((), np.zeros((0, 1), dtype=np.float32))
    known = await together(*[Embed(s) for s in dict.fromkeys(found)])
    vectors = dict(zip(dict.fromkeys(found), map(vector, known), strict=True))
    return SourceText(found, np.stack([vectors[s] for s in found]))


def vector(text: TokenVectors) -> npt.NDArray[np.float32]:
    """One vector of length 1 for a text: the mean over its pieces."""
    mean = text.vectors[~np.array(text.special)].mean(axis=0) if not all(text.special) else text.vectors.mean(axis=0)
    return unit(mean).astype(np.float32)


async def judge(claim: str, source: SourceText) -> ClaimVerdict:
    """Is the claim supported by the source, contradicted, or not found there?"""
    passages = source.passages(vector(await Embed(claim)))
    said = await together(*[Classify("support", " ".join(passage), claim) for passage in passages])
    return join(claim, passages, said)


def join(claim: str, passages: Sequence[tuple[str, ...]], said: Sequence[dict[str, float]]) -> ClaimVerdict:
    """One verdict from several passages: the most supporting one, unless another contradicts more strongly."""
    best = max(range(len(said)), key=lambda i: said[i][SUPPORTED])
    held = set(passages[best])
    others = [i for i in range(len(said)) if i == best or not set(passages[i]) <= held]
    worst = max(others, key=lambda i: said[i][CONTRADICTED])
    chosen = worst if said[worst][CONTRADICTED] > said[best][SUPPORTED] else best
    chances = said[chosen]
    return ClaimVerdict(
        claim, " ".join(passages[chosen]), chances[SUPPORTED], chances[CONTRADICTED], chances[NOT_FOUND]
    )
