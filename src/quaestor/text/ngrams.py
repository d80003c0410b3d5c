"""Counting n-grams that two texts share, clipped: a gram counts as often as both sides have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

Gram = tuple[str, ...]


def grams(tokens: Sequence[str], n: int) -> Iterator[Gram]:
    """The n-grams of a text, in order."""
    return zip(*(tokens[i:] for i in range(n)), strict=False)


def shared(a: Sequence[str], b: Sequence[str], n: int) -> int:
    """How many n-grams two texts share: Σ min(count in a, count in b)."""
    if n == 1:
        return _shared(a, b, len(a), len(b))
    return _shared(list(grams(a, n)), list(grams(b, n)), len(a) - n + 1, len(b) - n + 1)


def _shared(a: Sequence[Hashable], b: Sequence[Hashable], len_a: int, len_b: int) -> int:
    set_a, set_b = set(a), set(b)
    common = set_a & set_b
    if not common or len(set_a) == len_a or len(set_b) == len_b:  # where one side never repeats, every min is 1
        return len(common)
    count_a, count_b = Counter(a), Counter(b)
    return sum(min(count_a[gram], count_b[gram]) for gram in common)


def shared_by_order(a: Sequence[str], b: Sequence[str], n: int) -> list[int]:
    """Shared 1-grams, …, n-grams. A longer gram is shared only where a shorter one is, so the count stops at 0."""
    counts = [0] * n
    for order in range(1, n + 1):
        counts[order - 1] = found = shared(a, b, order)
        if not found:
            break
    return counts


def shared_with_pool(a: Sequence[str], pool: Sequence[Sequence[str]], n: int) -> list[int]:
    """As `shared_by_order` against several texts: a gram may count as often as in the text that has it most."""
    if len(pool) == 1:
        return shared_by_order(a, pool[0], n)
    counts = [0] * n
    for order in range(1, n + 1):
        most: Counter[Gram] = Counter()
        for text in pool:
            most |= Counter(grams(text, order))
        own = Counter(grams(a, order))
        counts[order - 1] = found = sum(min(own[gram], most[gram]) for gram in own.keys() & most.keys())
        if not found:
            break
    return counts


def shared_grams(a: Sequence[str], pool: Sequence[Sequence[str]], n: int) -> list[str]:
    """The longest shared runs of at least one word and at most n, for a person to read; each once, in order of `a`."""
    known = [{gram for text in pool for gram in grams(text, order)} for order in range(1, n + 1)]
    found: list[str] = []
    reached = 0
    for start in range(len(a)):
        for order in range(min(n, len(a) - start), 0, -1):
            if tuple(a[start : start + order]) in known[order - 1]:
                if start + order > reached:
                    found.append(" ".join(a[start : start + order]))
                    reached = start + order
                break
    return list(dict.fromkeys(found))
