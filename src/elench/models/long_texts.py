"""Long texts in overlapping windows, and which few of them are worth reading for a question."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from elench.requests import Span

WORD = re.compile(r"\w+")
COMMON = frozenset(
    WORD.findall(
        "a an the of in on at to for from by with and or but not no is are was were be been being am do does did has "
        "have had having it its he she his her him they them their this that these those there here as than then so "
        "such if what which who whom whose when where why how many much can could will would shall should may might "
        "must i we you my our your me us about into over after before between during out up down off"
    )
)


@dataclass(frozen=True)
class Windows:
    """A text as token ids with places, and the token ranges of its windows."""

    ids: tuple[int, ...]
    spans: tuple[Span, ...]
    ranges: tuple[Span, ...]
    words: tuple[frozenset[str], ...]
    """Content words of each window; empty for a text of one window."""


def content_words(text: str) -> frozenset[str]:
    """Lower-cased words that carry meaning, cut to six letters so that inflections meet."""
    return frozenset(w[:6] for w in WORD.findall(text.lower()) if w not in COMMON)


def split(text: str, ids: Sequence[int], spans: Sequence[Span], size: int, overlap: int) -> Windows:
    """Windows of `size` tokens that share `overlap` tokens with the next; the last one reaches the end."""
    starts = [0] if len(ids) <= size else [*range(0, len(ids) - size, size - overlap), len(ids) - size]
    ranges = tuple((start, min(start + size, len(ids))) for start in starts)
    words: tuple[frozenset[str], ...] = ()
    if len(ranges) > 1:
        words = tuple(content_words(text[spans[a][0] : spans[b - 1][1]]) for a, b in ranges)
    return Windows(tuple(ids), tuple(spans), ranges, words)


def worth_reading(windows: Windows, question: str, most: int) -> list[int]:
    """The windows that share most with the question, rare words counting more; in the order of the text."""
    count = len(windows.ranges)
    if count <= most:
        return list(range(count))
    holding = Counter(word for words in windows.words for word in words)
    wanted = content_words(question)
    overlap = [sum(math.log(1 + count / holding[w]) for w in sorted(wanted & words)) for words in windows.words]
    return sorted(sorted(range(count), key=lambda i: (-overlap[i], i))[:most])
