"""Spoil a text on purpose: the control items that show whether a rater reads (QAScore, section 4.2)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import numpy as np

from elench.errors import UsageError

TRIES = 200
# Chinese, Japanese, Thai, Lao, Khmer and Burmese are written without blanks: there each character counts as a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")


def words_of(text: str) -> tuple[str, ...]:
    """Words as the rule counts them; characters where a language writes without blanks."""
    return tuple(_WORD.findall(text))


def span_length(words: int) -> int:
    """How many words of a text of `words` words are replaced.

    The paper's rule (its second line reads "4 <= n <= 4", which leaves out n = 5; it is read as 4 <= n <= 5).
    """
    if words < 1:
        raise ValueError("a text without words has no bad reference")
    for longest, length in ((3, 1), (5, 2), (8, 3), (15, 4), (20, 5)):
        if words <= longest:
            return length
    return words // 5


def _folded(words: Iterable[str]) -> str:
    """Words as one string that can be searched for whole-word runs, whatever their case."""
    return f" {' '.join(words).casefold()} "


class BadReferences:
    """Makes bad references: a random inner span is replaced by as many words from another passage.

    First and last word are spared in texts of more than two words. The replacement never comes from the item's own
    passage, and no run of words that also occurs there (or in the text itself) is used.
    """

    def __init__(self, passages: Iterable[str]) -> None:
        self._passages = [words_of(text) for text in dict.fromkeys(passages)]

    def make(self, text: str, passage: str, rng: np.random.Generator) -> str:
        """The bad reference of `text`, an item about `passage`."""
        start, end, added = self.edit(text, passage, rng)
        return text[:start] + added + text[end:]

    def edit(self, text: str, passage: str, rng: np.random.Generator) -> tuple[int, int, str]:
        """Which characters of `text` are replaced, and by what; blanks between words stay as they are."""
        places = list(_WORD.finditer(text))
        if not places:
            raise UsageError("a bad reference needs a text of at least one word; an item of the study is empty")
        length = span_length(len(places))
        spared = 1 if len(places) > 2 else 0
        first = int(rng.integers(spared, len(places) - spared - length + 1))
        own = words_of(passage)
        forbidden = _folded(own) + _folded(words_of(text))
        donors = [other for other in self._passages if other != own and len(other) >= length]
        if not donors:
            raise UsageError(
                f"a bad reference takes {length} words from another passage, and the file has no other passage that "
                f"long: give at least two different contexts, or set bad_references = 0 in the protocol"
            )
        removed = places[first : first + length]
        words = self._span(donors, length, forbidden, rng)
        blanks = ["", *(text[a.end() : b.start()] for a, b in itertools.pairwise(removed))]
        added = "".join(blank + word for blank, word in zip(blanks, words, strict=True))
        return removed[0].start(), removed[-1].end(), added

    @staticmethod
    def _span(donors: list[tuple[str, ...]], length: int, forbidden: str, rng: np.random.Generator) -> tuple[str, ...]:
        def spans(donor: tuple[str, ...], start: int) -> tuple[str, ...] | None:
            span = donor[start : start + length]
            return None if _folded(span) in forbidden else span

        for _ in range(TRIES):
            donor = donors[int(rng.integers(len(donors)))]
            if (span := spans(donor, int(rng.integers(len(donor) - length + 1)))) is not None:
                return span
        for donor in donors:  # few and much alike passages: look at every place before giving up
            for start in range(len(donor) - length + 1):
                if (span := spans(donor, start)) is not None:
                    return span
        raise UsageError(
            f"no run of {length} words in the other passages is absent from the item's own passage: "
            "the passages are too much alike for bad references; add others or set bad_references = 0"
        )
