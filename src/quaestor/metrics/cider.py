"""CIDEr: n-grams weighed by how rare they are among the references of the whole file."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from quaestor.errors import Unscored, UsageError
from quaestor.metrics import CorpusMetric, Score, param, register
from quaestor.metrics.base import Corpus
from quaestor.records import Record
from quaestor.text.evidence import Evidence
from quaestor.text.ngrams import Gram, grams
from quaestor.text.tokens import REMEMBERED, Tokens
from quaestor.text.treebank import words_coco

ORDERS = 4


class Vector(NamedTuple):
    """A text as weighed n-grams: per order the weights and their length; and how many bigrams it has."""

    weights: list[dict[Gram, float]]
    norms: list[float]
    bigrams: int


class Rarity:
    """How rare each n-gram is: log of documents over documents that have it. A document is one set of references."""

    def __init__(self, documents: list[tuple[Tokens, ...]]) -> None:
        having: Counter[Gram] = Counter()
        for document in documents:
            having.update({gram for text in document for order in range(1, ORDERS + 1) for gram in grams(text, order)})
        self.documents = len(documents)
        if self.documents > 1:
            self.unseen = math.log(self.documents)
            self.weight = {gram: self.unseen - math.log(count) for gram, count in having.items()}
        else:  # nothing to tell rare from common: the script gives 0, here every gram weighs the same
            self.unseen, self.weight = 1.0, {}
        self.known: OrderedDict[Tokens, Vector] = OrderedDict()

    def vector(self, text: Tokens) -> Vector:
        """The text's weighed n-grams (tf · idf)."""
        rarity, unseen = self.weight.get, self.unseen
        weights: list[dict[Gram, float]] = []
        for order in range(1, ORDERS + 1):
            counts = Counter(grams(text, order))
            weights.append({gram: count * rarity(gram, unseen) for gram, count in counts.items()})
        norms = [math.sqrt(sum([w * w for w in own.values()])) for own in weights]
        return Vector(weights, norms, max(len(text) - 1, 0))

    def reference(self, text: Tokens) -> Vector:
        """As `vector`, remembered: references come again with every system."""
        known = self.known.get(text)
        if known is None:
            known = self.known[text] = self.vector(text)
            if len(self.known) > REMEMBERED:
                self.known.popitem(last=False)
        return known


def similarity(own: Vector, other: Vector, clipped: bool, sigma: float) -> float:
    """Mean over the orders of the cosine; with `clipped` (CIDEr-D) no gram counts more often than the reference has it,
    and texts whose lengths differ count less: exp(-Δ² / 2σ²)."""
    total = 0.0
    for order in range(ORDERS):
        norms = own.norms[order] * other.norms[order]
        if not norms:
            continue
        a, b = own.weights[order], other.weights[order]
        common = [
            gram for gram in a if gram in b
        ]  # in the order of the text, so that sums are the same in every process
        if clipped:
            total += sum([min(a[gram], b[gram]) * b[gram] for gram in common]) / norms
        else:
            total += sum([a[gram] * b[gram] for gram in common]) / norms
    if clipped:
        total *= math.exp(-((own.bigrams - other.bigrams) ** 2) / (2 * sigma**2))
    return total / ORDERS


def cider_of(
    candidate: Tokens, references: list[Tokens], rarity: Rarity, clipped: bool = True, sigma: float = 6
) -> float:
    """Ten times the mean similarity to the references."""
    own = rarity.vector(candidate)
    return 10 * sum(similarity(own, rarity.reference(r), clipped, sigma) for r in references) / len(references)


_latest: list[tuple[Corpus, Rarity]] = []


def rarity_of(corpus: Corpus) -> Rarity:
    """The n-gram weights of a file, worked out once for the corpus at hand."""
    for known, rarity in _latest:
        if known is corpus and rarity.documents == len(corpus):
            return rarity
    rarity = Rarity([tuple(map(words_coco, texts)) for texts in corpus if isinstance(texts, tuple)])
    _latest[:] = [(corpus, rarity), *_latest[:3]]
    return rarity


def _explain(
    candidate: Tokens, references: list[Tokens], rarity: Rarity, clipped: bool, sigma: float
) -> dict[str, Any]:
    own = rarity.vector(candidate)
    seen = {gram for text in references for order in range(1, ORDERS + 1) for gram in grams(text, order)}
    common = {gram: weight for weights in own.weights for gram, weight in weights.items() if gram in seen}
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

    async def score_given(self, record: Record, corpus: Corpus) -> Score:
        judged = self.judged(record)
        candidate = words_coco(self.text(record, judged))
        references = [words for words in map(words_coco, self.given_references(record)) if words]
        if not candidate:
            raise Unscored(f"no scorable word in the {judged}")
        if not references:
            raise Unscored("no scorable word in any reference")
        rarity = rarity_of(corpus)
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
