"""CIDEr: n-grams weighed by how rare they are among the references of the whole file."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from quaestor.errors import Unscored, UsageError
from quaestor.metrics import CorpusMetric, Score, param, register
from quaestor.metrics.base import Corpus
from quaestor.records import Record
from quaestor.text.evidence import Evidence
from quaestor.text.ngrams import Gram, grams
from quaestor.text.tokens import REMEMBERED, Tokens
from quaestor.text.treebank import words_coco

ORDERS = 4
Keys = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
_STEP = np.uint64(0xD1B54A32D192ED03)
_ORDER_MASK = np.uint64(3)
BLOCK = 4096
"""Sets of references whose n-grams are counted at once."""


@lru_cache(maxsize=1 << 18)
def word_key(word: str) -> int:
    """A word as 62 bits and two free ones, the same in every process, so that sums have the same order everywhere."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "big") & ~3


def words_of(text: Iterable[str], length: int) -> Keys:
    """The keys of a text's words."""
    return np.fromiter(map(word_key, text), np.uint64, length)


def gram_keys(words: Keys) -> list[Keys]:
    """The 1-grams to 4-grams of a row of words as 64-bit keys; the two lowest bits say the order."""
    found, rolling = [words], words
    for order in range(1, min(ORDERS, len(words))):
        rolling = rolling[:-1] * _STEP
        rolling += words[order:]
        found.append(rolling + np.uint64(order))
    return found


def counted(keys: Keys) -> tuple[Keys, Floats]:
    """Distinct keys in order, and how often each comes."""
    keys.sort()
    first = np.empty(len(keys), bool)
    first[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    starts = first.nonzero()[0]
    counts = np.empty(len(starts))
    counts[:-1] = starts[1:] - starts[:-1]
    counts[-1:] = len(keys) - starts[-1:]
    return keys[starts], counts


class Vector(NamedTuple):
    """A text as weighed n-grams: sorted keys, their weights, the length per order, and how many bigrams it has."""

    keys: Keys
    weights: Floats
    norms: Floats
    bigrams: int


class Block:
    """The n-grams of many texts, counted together: what one numpy call costs is paid once, not once a text."""

    def __init__(self, documents: Sequence[tuple[Tokens, ...]]) -> None:
        self.texts = [text for texts in documents for text in texts]
        lengths = [len(text) for text in self.texts]
        owner = np.repeat(np.arange(len(lengths), dtype=np.uint64), np.array(lengths, np.intp))
        every = gram_keys(words_of(chain.from_iterable(self.texts), len(owner)))
        whole = [owner[: len(k)] == owner[order:] for order, k in enumerate(every)]
        keys = np.concatenate([k[w] for k, w in zip(every, whole, strict=True)])
        owners = np.concatenate([owner[: len(k)][w] for k, w in zip(every, whole, strict=True)])
        self.keys, rank = np.unique(keys, return_inverse=True)
        many = np.uint64(max(len(self.keys), 1))
        placed, self.counts = counted(owners * many + rank.astype(np.uint64))
        self.rank, self.owner = (placed % many).astype(np.intp), (placed // many).astype(np.intp)
        sizes = np.array([len(texts) for texts in documents], np.intp)
        document = np.repeat(np.arange(len(documents), dtype=np.uint64), sizes)
        once, _ = counted(document[self.owner] * many + placed % many)
        self.having = np.bincount((once % many).astype(np.intp), minlength=len(self.keys))

    def vectors(self, rarity: Rarity) -> Iterator[tuple[Tokens, Vector]]:
        """Each text with its weighed n-grams."""
        keys = self.keys[self.rank]
        weights = self.counts * rarity.weigh(self.keys)[self.rank]
        orders = (keys & _ORDER_MASK).view(np.intp)
        squares = np.bincount(self.owner * ORDERS + orders, weights * weights, len(self.texts) * ORDERS)
        norms = np.sqrt(squares).reshape(-1, ORDERS)
        bounds = np.searchsorted(self.owner, np.arange(len(self.texts) + 1)).tolist()
        for i, text in enumerate(self.texts):
            at = slice(bounds[i], bounds[i + 1])
            yield text, Vector(keys[at], weights[at], norms[i], max(len(text) - 1, 0))


class Rarity:
    """How rare each n-gram is: log of documents over documents that have it. A document is one set of references."""

    def __init__(self, documents: list[tuple[Tokens, ...]]) -> None:
        self.documents = len(documents)
        block = Block(documents[:BLOCK])
        found = [(block.keys, block.having)]
        for start in range(BLOCK, len(documents), BLOCK):
            more = Block(documents[start : start + BLOCK])
            found.append((more.keys, more.having))
        self.keys, where = np.unique(np.concatenate([keys for keys, _ in found]), return_inverse=True)
        having = np.bincount(where, np.concatenate([have for _, have in found]))
        if self.documents > 1:
            self.unseen = math.log(self.documents)
            self.rare = self.unseen - np.log(having)
        else:  # nothing to tell rare from common: the script gives 0, here every gram weighs the same
            self.unseen, self.rare = 1.0, np.ones(len(having))
        self.known: OrderedDict[Tokens, Vector] = OrderedDict(block.vectors(self))

    def weigh(self, keys: Keys) -> Floats:
        """The rarity of each key."""
        if not len(self.keys):
            return np.full(len(keys), self.unseen)
        at = self.keys.searchsorted(keys)
        np.minimum(at, len(self.keys) - 1, out=at)
        return np.where(self.keys[at] == keys, self.rare[at], self.unseen)

    def vector(self, text: Tokens) -> Vector:
        """The text's weighed n-grams (tf · idf)."""
        keys, counts = counted(np.concatenate(gram_keys(words_of(text, len(text)))))
        weights = counts * self.weigh(keys)
        orders = (keys & _ORDER_MASK).view(np.intp)
        return Vector(keys, weights, np.sqrt(np.bincount(orders, weights * weights, ORDERS)), max(len(text) - 1, 0))

    def reference(self, text: Tokens) -> Vector:
        """As `vector`, remembered: references come again with every system."""
        known = self.known.get(text)
        if known is None:
            known = self.known[text] = self.vector(text)
            if len(self.known) > 2 * REMEMBERED:
                self.known.popitem(last=False)
        return known


def similarity(own: Vector, other: Vector, clipped: bool, sigma: float) -> float:
    """Mean over the orders of the cosine; with `clipped` (CIDEr-D) no gram counts more often than the reference has it,
    and texts whose lengths differ count less: exp(-Δ² / 2σ²)."""
    at = other.keys.searchsorted(own.keys)
    np.minimum(at, len(other.keys) - 1, out=at)
    common = (other.keys[at] == own.keys).nonzero()[0]
    a, b = own.weights[common], other.weights[at[common]]
    orders = (own.keys[common] & _ORDER_MASK).view(np.intp)
    products = np.bincount(orders, (np.minimum(a, b) if clipped else a) * b, ORDERS).tolist()
    norms = (own.norms * other.norms).tolist()
    total: float = sum(product / norm for product, norm in zip(products, norms, strict=True) if norm > 0)
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
    common: dict[Gram, float] = {}
    for order, keys in enumerate(gram_keys(words_of(candidate, len(candidate))), 1):
        for gram, weight in zip(grams(candidate, order), rarity.weigh(keys).tolist(), strict=True):
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
