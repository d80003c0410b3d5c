"""Longest common subsequences of two rows of words: their length, and which words they are."""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import LCSseq


def lcs_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    length: int = LCSseq.similarity(a, b)
    return length


def lcs_places(a: Sequence[str], b: Sequence[str]) -> list[int]:
    """Places in `a` of one longest common subsequence: of several, the one that rouge-score reads back.

    The table of lengths is kept as one integer per row of `a`, a bit per column of `b` that is 0 where the length grows
    (Hyyrö 2004), so a cell is the number of 0 bits below it.
    """
    where: dict[str, int] = {}
    for j, word in enumerate(b):
        where[word] = where.get(word, 0) | 1 << j
    full = (1 << len(b)) - 1
    row, rows = full, [full]
    for word in a:
        common = row & where.get(word, 0)
        row = ((row + common) | (row - common)) & full
        rows.append(row)
    places: list[int] = []
    i, j = len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            places.append(i)
        elif (~rows[i] & ((1 << j - 1) - 1)).bit_count() > (~rows[i - 1] & ((1 << j) - 1)).bit_count():
            j -= 1
        else:
            i -= 1
    return places[::-1]
