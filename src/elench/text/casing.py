"""Names in lower case: many systems write "japan", and a parser that goes by capitals then finds no name."""

from __future__ import annotations

import re

WORD = re.compile(r"[^\W\d_]+")
STARTS = re.compile(r"(?:^|[.!?:\n])[\s\"'“”‘’`(\[]*$")
"""What may precede the first word of a sentence."""


def cased_like(text: str, other: str) -> str:
    """The text with its lower-case words written as the other text always writes them inside its sentences.

    Only where this gives more capitals than the text has inside its own sentences: a text that uses capitals is left
    alone. No word changes its length, so places in the text stay the same.
    """
    known: dict[str, str] = {}
    for found, first in _words(other):
        if not first:
            word = found.group()
            known[word.lower()] = word if known.get(word.lower(), word) == word else word.lower()
    pieces, at, capitals, changed = [], 0, 0, 0
    for found, first in _words(text):
        word = found.group()
        form = known.get(word.lower(), word)
        capitals += not first and not word.islower()
        if form != word and not form.islower() and len(form) == len(word):
            changed += 1
            pieces += [text[at : found.start()], form]
            at = found.end()
    return "".join([*pieces, text[at:]]) if changed > capitals else text


def _words(text: str) -> list[tuple[re.Match[str], bool]]:
    """Every word, and whether a sentence begins with it."""
    return [(m, bool(STARTS.search(text[max(0, m.start() - 8) : m.start()]))) for m in WORD.finditer(text)]
