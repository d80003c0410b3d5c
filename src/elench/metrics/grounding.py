"""Does a claim follow from a text? Picks the sentences it may follow from and asks the support model.

The sentences of the text nearest to the claim are chosen by the encoder: the nearest alone, the three nearest and the
eight nearest, joined in their order. The passage that supports the claim most counts: a copied claim shows in the
narrow ones, one that draws on several places in the wide one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elench.metrics.evidence import with_kinds
from elench.metrics.formulas import unit
from elench.requests import LAST, Classify, Embed, TokenVectors, together
from elench.text.passages import sentences

SUPPORTED, CONTRADICTED, NOT_FOUND = "supported", "contradicted", "not found"
LONG = 40
"""Words of a passage's sentence, at most; longer ones are cut."""
NEAREST = (1, 3, 8)
"""Sentences of the source in each passage that a claim is judged by."""
WIDEST = 240
"""Words of a passage, at most, if it has more than one sentence."""


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

    def nearest(self, claim: npt.NDArray[np.float32], most: int) -> list[int]:
        """The sentences nearest to a claim, nearest first."""
        order = np.argsort(-(self.vectors @ claim), kind="stable")
        return [int(i) for i in order[:most]]

    def passage(self, near: Sequence[int]) -> str:
        """These sentences, nearest first, as a text in their order; the least near are left out if it gets too long."""
        chosen, words = list(near[:1]), len(self.sentences[near[0]].split())
        for i in near[1:]:
            words += len(self.sentences[i].split())
            if words > WIDEST:
                break
            chosen.append(i)
        return " ".join(self.sentences[i] for i in sorted(chosen))

    def passages(self, claim: npt.NDArray[np.float32]) -> list[str]:
        """The passages that a claim is judged by."""
        near = self.nearest(claim, max(NEAREST))
        return list(dict.fromkeys(self.passage(near[:most]) for most in NEAREST))


def cut_source(*texts: str) -> tuple[str, ...]:
    """The sentences that claims are compared with."""
    return tuple(text[a:b] for text in texts for a, b in sentences(text, LONG))


async def read_source(*texts: str) -> SourceText:
    """A text, or several passages, as sentences with vectors; without any word it has no sentences."""
    found = cut_source(*texts)
    if not found:
        return SourceText((), np.zeros((0, 1), dtype=np.float32))
    known = await together(*[Embed(s, LAST) for s in dict.fromkeys(found)])
    vectors = dict(zip(dict.fromkeys(found), map(vector, known), strict=True))
    return SourceText(found, np.stack([vectors[s] for s in found]))


def vector(text: TokenVectors) -> npt.NDArray[np.float32]:
    """One vector of length 1 for a text: the mean over its pieces."""
    mean = text.vectors[~np.array(text.special)].mean(axis=0) if not all(text.special) else text.vectors.mean(axis=0)
    return unit(mean).astype(np.float32)


async def judge(claim: str, source: SourceText) -> ClaimVerdict:
    """Is the claim supported by the source, contradicted, or not found there?"""
    passages = source.passages(vector(await Embed(claim, LAST)))
    return join(claim, passages, await together(*[Classify("support", passage, claim) for passage in passages]))


def join(claim: str, passages: Sequence[str], said: Sequence[dict[str, float]]) -> ClaimVerdict:
    """One verdict from several passages: that of the most supporting one."""
    best = max(range(len(said)), key=lambda i: said[i][SUPPORTED])
    chances = said[best]
    return ClaimVerdict(claim, passages[best], chances[SUPPORTED], chances[CONTRADICTED], chances[NOT_FOUND])
