"""Tokens of a model joined to the words a person reads: "##bee" and "Ġbee" never reach the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

STARTS = ("Ġ", "▁", " ", "Ċ")
"""How byte-level and SentencePiece tokenizers write the blank before a word."""


@cache
def _bytes() -> dict[str, int]:
    """The printable characters that byte-level tokenizers write for bytes, as published with GPT-2."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {chr(b): b for b in plain} | {chr(256 + k): b for k, b in enumerate(others)}


def _readable(text: str) -> str:
    """Byte-level characters decoded; other text as it is."""
    table = _bytes()
    if text.isascii() or not all(c in table for c in text):
        return text.strip()
    return bytes(table[c] for c in text).decode("utf-8", "replace").strip()


def _groups(pieces: Sequence[str]) -> Iterable[tuple[str, list[int]]]:
    """(word, places of its pieces), by the convention that the pieces themselves show."""
    wordpiece = any(p.startswith("##") for p in pieces)
    spaced = any(p.startswith(STARTS) for p in pieces)
    words: list[tuple[str, list[int]]] = []
    for place, piece in enumerate(pieces):
        continues = piece.startswith("##") if wordpiece else spaced and not piece.startswith(STARTS)
        text = piece.removeprefix("##").replace("▁", " ")
        if words and continues:
            words[-1] = (words[-1][0] + text, [*words[-1][1], place])
        else:
            words.append((text, [place]))
    return [(_readable(word), places) for word, places in words if _readable(word)]


def summed_words(rows: Sequence[Sequence[Any]]) -> list[tuple[str, float]]:
    """(word, sum of its pieces' values)."""
    pieces = [str(row[0]) for row in rows]
    return [(word, sum(float(rows[k][1]) for k in places)) for word, places in _groups(pieces)]


def matched_words(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """[word, its best match, similarity, …]: of a word's pieces, the one that matches best speaks for it.

    The match is a whole word where its neighbours are in the list too; a lone middle piece is written "…bee".
    """
    found = []
    for word, places in _groups([str(row[0]) for row in rows]):
        best = max(places, key=lambda k: float(rows[k][2]))
        others = [str(rows[k][1]) for k in places]
        joined = _groups(others)
        other = next((w for w, group in joined if best - places[0] in group), _readable(others[best - places[0]]))
        if others[0].startswith("##"):
            other = f"…{_readable(others[best - places[0]].removeprefix('##'))}"
        found.append([word, other, *rows[best][2:]])
    return found
