"""Letters beside a ranking: two rows share no letter if and only if their pair differs significantly.

Insert and absorb (Piepho 2004): start with one letter for all rows; a significant pair splits every letter that holds
both rows into one without the first and one without the second; a letter contained in another is dropped.
"""

from __future__ import annotations

import string

import numpy as np
from numpy.typing import NDArray


def letters(differs: NDArray[np.bool_]) -> list[str]:
    """The letters of each row, in order of rank; `differs[i, j]` or `differs[j, i]` marks a significant pair."""
    n = len(differs)
    significant = (differs | differs.T) & ~np.eye(n, dtype=bool)
    columns = [frozenset(range(n))] if n else []
    for i, j in np.argwhere(np.triu(significant)).tolist():
        if any(i in column and j in column for column in columns):
            columns = _absorb([part for column in columns for part in _split(column, i, j)])
    ordered = sorted(_without_redundant(columns), key=sorted)
    return ["".join(_letter(k) for k, column in enumerate(ordered) if row in column) for row in range(n)]


def _split(column: frozenset[int], i: int, j: int) -> tuple[frozenset[int], ...]:
    return (column - {i}, column - {j}) if i in column and j in column else (column,)


def _absorb(columns: list[frozenset[int]]) -> list[frozenset[int]]:
    kept: list[frozenset[int]] = []
    for column in sorted(set(columns), key=lambda c: (-len(c), sorted(c))):
        if not any(column <= other for other in kept):
            kept.append(column)
    return kept


def _without_redundant(columns: list[frozenset[int]]) -> list[frozenset[int]]:
    """Drop letters whose every pair of rows also shares another letter: the display says the same with fewer."""
    kept = list(columns)
    for column in sorted(columns, key=lambda c: (len(c), sorted(c))):
        others = [other for other in kept if other != column]
        if all(any(i in other and j in other for other in others) for i in column for j in column):
            kept = others
    return kept


def _letter(k: int) -> str:
    """One character each, so that a row's letters can be read apart: a–z, A–Z, α–ω, then Cyrillic."""
    alphabet = string.ascii_letters + "αβγδεζηθικλμνξοπρστυφχψω"
    return alphabet[k] if k < len(alphabet) else chr(0x410 + k - len(alphabet))
