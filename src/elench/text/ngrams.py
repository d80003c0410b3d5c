"""Counting n-grams that a text shares with others, clipped: a gram counts as often as both sides have it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, repeat
from operator import and_, rshift
from typing import NamedTuple

Gram = tuple[str, ...]
_BITS = [1 << i for i in range(2048)]


def grams(tokens: Sequence[str], n: int) -> Iterator[Gram]:
    """The n-grams of a text, in order."""
    return zip(*(tokens[i:] for i in range(n)), strict=False)


class Pool(NamedTuple):
    """Texts to compare with, laid end to end: where each word occurs, as the bits of one integer."""

    where: dict[str, int]
    parts: tuple[int, ...]
    """The bits that belong to each text; a free bit lies between two texts, so that no gram reaches over."""
    lengths: tuple[int, ...]


def pool(*texts: Sequence[str]) -> Pool:
    """Lay out the texts (each a row of tokens)."""
    if len(texts) == 1 and len(texts[0]) <= len(_BITS):
        return Pool(_where(texts[0], _BITS), (-1,), (len(texts[0]),))
    where: dict[str, int] = {}
    parts: list[int] = []
    start = 0
    for text in texts:
        stop = start + len(text)
        bits = _BITS[start:stop] if stop <= len(_BITS) else [1 << i for i in range(start, stop)]
        own = _where(text, bits)
        parts.append(((1 << len(text)) - 1) << start)
        start = stop + 1
        where = {word: where.get(word, 0) | own.get(word, 0) for word in (*where, *own)} if where else own
    return Pool(where, tuple(parts), tuple(map(len, texts)))


def _where(text: Sequence[str], bits: Sequence[int]) -> dict[str, int]:
    where = dict(zip(text, bits))  # noqa: B905 (there may be more bits)
    if len(where) < len(text):
        for word, bit in zip(text, bits):  # noqa: B905
            if where[word] != bit:
                where[word] |= bit
    return where


@lru_cache(maxsize=4096)
def pool_of(words: Callable[[str], Sequence[str]], *texts: str) -> Pool:
    """The pool of texts cut by the tokenizer `words`; remembered, since references come again with every system."""
    return pool(*map(words, texts))


def places(tokens: Sequence[str], pool: Pool, n: int) -> Iterator[list[int]]:
    """For each order 1, …, n: where in the pool each gram of `tokens` begins, as bits; ends once none is found.

    Two grams are equal exactly when their bits are, so the bits are the gram.
    """
    get = pool.where.get
    found = [get(word, 0) for word in tokens]
    while n and any(found):
        yield found
        n -= 1
        found = [here and here & (after >> 1) for here, after in pairwise(found)]


def shared_by_order(tokens: Sequence[str], pool: Pool, n: int) -> list[int]:
    """Shared 1-grams, …, n-grams; of several texts, the one that has a gram most often counts."""
    counts = [0] * n
    found = list(map(pool.where.get, tokens, repeat(0)))
    repeats = True  # once no gram comes twice, no longer one does
    for order in range(n):
        many = len(found) - found.count(0)
        if repeats:
            hits = list(filter(None, found))
            kinds = set(hits)
            repeats = len(kinds) < many
        counts[order] = _clipped(hits, kinds, pool.parts) if repeats else many
        if many < 2:
            break
        found = list(map(and_, found, map(rshift, found[1:], repeat(1))))
    return counts


def _clipped(hits: list[int], kinds: set[int], parts: tuple[int, ...]) -> int:
    """Each kind of gram once, and more often if it comes more often on both sides."""
    several = [bits for bits in kinds if bits & (bits - 1)]
    if len(parts) == 1:
        return len(kinds) + sum([min(hits.count(bits), bits.bit_count()) - 1 for bits in several])
    return len(kinds) + sum(
        min(hits.count(bits), max((bits & part).bit_count() for part in parts)) - 1 for bits in several
    )


def shared_runs(tokens: Sequence[str], pool: Pool, n: int) -> list[str]:
    """The longest shared runs of up to n words, for a person to read; each once, in the order of `tokens`."""
    found = list(places(tokens, pool, n))
    runs: list[str] = []
    reached = 0
    for start in range(len(tokens)):
        length = max((order for order, at in enumerate(found, 1) if start < len(at) and at[start]), default=0)
        if length and start + length > reached:
            runs.append(" ".join(tokens[start : start + length]))
            reached = start + length
    return list(dict.fromkeys(runs))
