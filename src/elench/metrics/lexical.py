"""What word-matching metrics share: cut both texts into words, compare with each reference, keep the best."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from elench.errors import Unscored
from elench.metrics.base import ReferenceMetric, Score
from elench.metrics.evidence import Evidence
from elench.records.record import Record
from elench.text.words import Words


@dataclass(frozen=True)
class LexicalMetric(ReferenceMetric):
    """A metric on the words of two texts. It asks no model, and works its evidence out only when someone looks."""

    @abstractmethod
    def words(self, text: str) -> Words:
        """The words of a text, as this metric cuts it."""

    @abstractmethod
    def match(self, candidate: Words, reference: Words) -> float:
        """The score of the judged words against one reference's."""

    @abstractmethod
    def evidence(self, candidate: Words, reference: Words) -> dict[str, Any]:
        """What a person can check."""

    def counts(self, candidate: Words, reference: Words) -> tuple[float, ...]:
        """Sufficient statistics for a corpus score, where there is one."""
        return ()

    async def score(self, record: Record) -> Score:
        judged = self.judged(record)
        candidate = self.words(self.text(record, judged))
        if not candidate:
            raise Unscored(f"no scorable word in the {judged}")
        texts = self.given_references(record)
        scored = [(self.match(candidate, words), i, words) for i, words in enumerate(map(self.words, texts)) if words]
        if not scored:
            raise Unscored("no scorable word in any reference")
        best, at, words = max(scored, key=lambda found: found[0])
        value = sum(found[0] for found in scored) / len(scored) if self.references == "mean" else best
        return Score(value, Evidence(_explain, self, candidate, words, texts[at]), self.counts(candidate, words))

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        own, other = self.words(candidate), self.words(reference)
        if not own or not other:
            raise Unscored(f"no scorable word in the {'reference' if own else self.judged(record)}")
        return Score(self.match(own, other), Evidence(_explain, self, own, other, reference), self.counts(own, other))


def _explain(metric: LexicalMetric, candidate: Words, reference: Words, text: str) -> dict[str, object]:
    return {**metric.evidence(candidate, reference), "reference": text}
