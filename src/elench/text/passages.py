"""Cutting a text into passages of whole sentences, and finding those that a question is about."""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import lru_cache

from elench.text.words import Span

BREAK = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_])|\n+")
"""After a full stop, or at a line's end."""
WORDS = 120
"""Words of a passage, at most (a longer sentence is cut)."""


def sentences(text: str, words: int = WORDS) -> list[Span]:
    """Offsets of the sentences of a text, blanks left out; one longer than `words` is cut into parts."""
    spans: list[Span] = []
    edges = [0, *(e for m in BREAK.finditer(text) for e in (m.start(), m.end())), len(text)]
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        found = [m.span() for m in re.finditer(r"\S+", text[begin:end])]
        for at in range(0, len(found), words):
            part = found[at : at + words]
            spans.append((begin + part[0][0], begin + part[-1][1]))
    return spans


def passages(text: str, words: int = WORDS) -> list[Span]:
    """Offsets of the passages of a text: whole sentences, about equally long, none longer than `words`."""
    spans = sentences(text, words)
    sizes = [len(text[a:b].split()) for a, b in spans]
    parts = -(-sum(sizes) // words)
    if not parts:
        return []
    aim, passage, size, found = sum(sizes) / parts, 0, 0, list[Span]()
    for i, (span, length) in enumerate(zip(spans, sizes, strict=True)):
        if size and (size + length > words or size + length / 2 > aim):
            found.append((spans[passage][0], spans[i - 1][1]))
            passage, size = i, 0
        size += length
        if i == len(spans) - 1:
            found.append((spans[passage][0], span[1]))
    return found


def passage_of(text: str, start: int, spans: list[Span]) -> str:
    """The passage in which position `start` falls (the last one that begins before it)."""
    begin, end = next(((a, b) for a, b in reversed(spans) if a <= start), spans[0] if spans else (0, len(text)))
    return text[begin:end]


@lru_cache(maxsize=512)
def _indexed(text: str, words: int) -> tuple[list[Span], list[frozenset[str]], Counter[str]]:
    spans = passages(text, words)
    stems = [_stems(text[a:b]) for a, b in spans]
    return spans, stems, Counter(stem for each in stems for stem in each)


def _stems(text: str) -> frozenset[str]:
    """Words in lower case, cut to six letters so that inflections meet."""
    return frozenset(w[:6] for w in re.findall(r"\w+", text.lower()))


def near(text: str, question: str, most: int, words: int = 80) -> list[Span]:
    """The `most` passages of a text that share most with a question, rare words counting more, in text order."""
    spans, stems, holding = _indexed(text, words)
    if len(spans) <= most:
        return spans
    asked = sorted(_stems(question))
    shared = [sum(math.log(len(spans) / holding[w]) for w in asked if w in each) for each in stems]
    return [spans[i] for i in sorted(sorted(range(len(spans)), key=lambda i: (-shared[i], i))[:most])]
