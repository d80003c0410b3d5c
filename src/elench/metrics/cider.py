"""CIDEr: n-grams weighed by how rare they are among the references of the whole file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from elench.errors import Unscored, UsageError
from elench.metrics import CorpusMetric, Score, param, register
from elench.metrics.base import Corpus
from elench.metrics.evidence import Evidence
from elench.records.record import Record
from elench.text.gram_keys import LONGEST, Floats, Keys, counted, find, gram_keys, sums_by_order
from elench.text.ngrams import Gram, grams
from elench.text.treebank import words_coco
from elench.text.words import REMEMBERED, Words


class Vector(NamedTuple):
    """A text as tf·idf: its distinct n-grams, the weight of each, and the length of the vector per order."""

    keys: Keys
    weights: Floats
    lengths: Floats
    words: int


class Rarity:
    """idf = log(documents / documents that have the n-gram). A document is one set of references.

    An n-gram that no document has counts as if one had it, as in the COCO script. With one document nothing is rarer
    than anything else: every n-gram weighs 1 (the script gives 0).
    """

    def __init__(self, keys: Keys, having: Floats, documents: int) -> None:
        self.keys, self.having, self.documents = keys, having, documents
        self.rarest = math.log(documents) if documents > 1 else 1.0
        self._idf = self.rarest - np.log(having) if documents > 1 else np.ones(len(keys))
        self._references: dict[Words, Vector] = {}
        """Vectors of references, which come again with every system."""

    @classmethod
    def among(cls, documents: Sequence[Sequence[Words]]) -> Rarity:
        """The rarity of n-grams in a file: in how many documents each occurs."""
        distinct = [counted(np.concatenate([gram_keys(text) for text in texts]))[0] for texts in documents if texts]
        keys, having = counted(np.concatenate(distinct) if distinct else np.empty(0, np.uint64))
        return cls(keys, having, len(documents))

    def __reduce__(self) -> tuple[object, ...]:
        return Rarity, (self.keys, self.having, self.documents)

    def idf(self, keys: Keys) -> Floats:
        """The rarity of each n-gram."""
        if not len(self.keys):
            return np.full(len(keys), self.rarest)
        at, known = find(keys, self.keys)
        return np.where(known, self._idf[at], self.rarest)

    def vector(self, text: Words) -> Vector:
        """tf·idf of each n-gram of a text (equation 1; its common factor 1 / Σ tf cancels in the cosine)."""
        keys, tf = counted(gram_keys(text))
        weights = tf * self.idf(keys)
        return Vector(keys, weights, np.sqrt(sums_by_order(keys, weights * weights)), len(text))

    def reference(self, text: Words) -> Vector:
        """As `vector`, remembered."""
        known = self._references.get(text)
        if known is None:
            if len(self._references) >= 2 * REMEMBERED:
                self._references.clear()
            known = self._references[text] = self.vector(text)
        return known


def similarity(candidate: Vector, reference: Vector, clipped: bool, sigma: float) -> float:
    """Mean over the orders of the cosine (equation 2).

    With `clipped` (CIDEr-D) no n-gram counts more often than the reference has it, and texts of different length count
    less: exp(-Δ² / 2σ²).
    """
    at, shared = find(candidate.keys, reference.keys)
    own, other = candidate.weights[shared], reference.weights[at[shared]]
    products = sums_by_order(candidate.keys[shared], (np.minimum(own, other) if clipped else own) * other)
    lengths = candidate.lengths * reference.lengths
    cosines = [product / both for product, both in zip(products.tolist(), lengths.tolist(), strict=True) if both > 0]
    penalty = math.exp(-((candidate.words - reference.words) ** 2) / (2 * sigma**2)) if clipped else 1.0
    return penalty * float(sum(cosines)) / LONGEST


def cider_of(
    candidate: Words, references: Sequence[Words], rarity: Rarity, clipped: bool = True, sigma: float = 6
) -> float:
    """Ten times the mean similarity to the references (equation 3)."""
    own = rarity.vector(candidate)
    return 10 * sum(similarity(own, rarity.reference(r), clipped, sigma) for r in references) / len(references)


def _explain(
    candidate: Words, references: list[Words], rarity: Rarity, clipped: bool, sigma: float
) -> dict[str, object]:
    own = rarity.vector(candidate)
    orders = range(1, LONGEST + 1)
    seen = {gram for text in references for order in orders for gram in grams(text, order)}
    named = [gram for order in orders for gram in grams(candidate, order)]  # in the order of gram_keys
    weights = rarity.idf(gram_keys(candidate)).tolist()
    common: dict[Gram, float] = {}
    for gram, weight in zip(named, weights, strict=True):
        if gram in seen:
            common[gram] = common.get(gram, 0.0) + weight
    heaviest = sorted(common.items(), key=lambda pair: (-pair[1], pair[0]))[:20]
    return {
        "matched": [[" ".join(gram), round(weight, 4)] for gram, weight in heaviest],
        "by_reference": [round(10 * similarity(own, rarity.reference(r), clipped, sigma), 4) for r in references],
        "documents": rarity.documents,
        **({} if rarity.documents > 1 else {"note": "one set of references: every n-gram weighs the same"}),
    }


@dataclass(frozen=True)
class _Cider(CorpusMetric):
    judges: ClassVar[tuple[str, ...]] = ("question", "answer", "summary")
    reads: ClassVar[tuple[str, ...]] = ("references",)
    range: ClassVar[tuple[float, float]] = (0.0, 10.0)
    example: ClassVar[Mapping[str, Any]] = {
        "question": "Which animal guards the gate of the temple?",
        "references": ["What animal guards the temple gate?", "Which animal stands at the gate of the temple?"],
        "judge": "question",
    }
    judge: str = param("", "which text is judged; default: the record's own", ("", "question", "answer", "summary"))
    clipped: ClassVar[bool]

    async def gather(self, record: Record) -> Corpus:
        """The record's references, as one document: equal sets, as of several systems on one item, count once."""
        return Counter({tuple(sorted(self.given_references(record))): 1})

    def prepare(self, corpus: Corpus) -> Rarity:
        """The weight of each n-gram of the file."""
        return Rarity.among([tuple(map(words_coco, texts)) for texts in corpus if isinstance(texts, tuple)])

    async def score_given(self, record: Record, rarity: Rarity) -> Score:
        judged = self.judged(record)
        candidate = words_coco(self.text(record, judged))
        references = [words for words in map(words_coco, self.given_references(record)) if words]
        if not candidate:
            raise Unscored(f"no scorable word in the {judged}")
        if not references:
            raise Unscored("no scorable word in any reference")
        given = (candidate, references, rarity, self.clipped, getattr(self, "sigma", 6.0))
        return Score(cider_of(*given), Evidence(_explain, *given))


@register
@dataclass(frozen=True)
class Cider(_Cider):
    """Cosine of rare n-grams between a text and its references, rarity taken from the whole file."""

    name: ClassVar[str] = "cider"
    citation: ClassVar[str] = "Vedantam et al. 2015, CIDEr, equations 1-3"
    limits: ClassVar[str] = (
        "Depends on the file: a word is rare or common among its references, so scores of two files do not compare. "
        "Repeating a rare word can raise it: see cider-d, which the COCO script prints under the name CIDEr."
    )
    clipped: ClassVar[bool] = False


@register
@dataclass(frozen=True)
class CiderD(_Cider):
    """CIDEr that cannot be gamed by repeating words or by length; what the COCO script prints as CIDEr."""

    name: ClassVar[str] = "cider-d"
    citation: ClassVar[str] = "Vedantam et al. 2015, CIDEr, section 6; as the COCO caption script"
    limits: ClassVar[str] = (
        "Depends on the file: a word is rare or common among its references, so scores of two files do not compare. "
        "A document is one distinct set of references, so several systems in one file do not count it twice; with one "
        "document, where the script gives 0, every n-gram weighs the same."
    )
    clipped: ClassVar[bool] = True
    sigma: float = param(6.0, "how much a different length is forgiven")

    def check(self) -> None:
        if self.sigma <= 0:
            raise UsageError(f"{self}: sigma must be above 0")
