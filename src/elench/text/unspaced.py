"""Scripts written without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese): cut by character."""

from __future__ import annotations

import re
import unicodedata

SHARE = 0.2
"""A text counts as such when this share of its letters is; a foreign name in an English sentence stays whole."""

_LETTER = re.compile(
    "[\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # kana and Han
    "\u0e01-\u0e4e\u0e80-\u0edf\u1000-\u109f\u1780-\u17dd]"  # Thai, Lao, Burmese, Khmer
)
_APART = re.compile(
    "([\u2001-\u2a6d\u2e80-\u33ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef"
    "\U00020000-\U0003ffff\u0e01-\u0e5b\u0e80-\u0edf\u1000-\u109f\u1780-\u17dd])"
)
"""Tokens of their own: those letters, and the punctuation and symbols that sacrebleu's zh tokenizer sets apart."""


def is_unspaced(text: str) -> bool:
    """Is a good part of the text in a script without spaces between words?"""
    if text.isascii():
        return False
    found = sum(map(len, _LETTER.findall(text)))
    return found > 0 and found >= SHARE * sum(c.isalpha() or unicodedata.category(c) == "Mn" for c in text)


def spaced(text: str) -> str:
    """The text with a space around every such character; other texts come back unchanged."""
    return _APART.sub(r" \1 ", text.strip()) if is_unspaced(text) else text


def is_other_script(text: str) -> bool:
    """Are most letters outside the Latin alphabet?"""
    if text.isascii():
        return False
    letters = [c for c in text if c.isalpha()]
    return 2 * sum(not c.isascii() and not unicodedata.name(c, "").startswith("LATIN") for c in letters) > len(letters)


def without_punctuation(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words that are more than punctuation."""
    return tuple(word for word in words if any(unicodedata.category(c)[0] != "P" for c in word))
