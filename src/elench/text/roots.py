"""Words that count as the same word in an answer: "steps" and "step", "four" and "4", "percent" and "%"."""

from __future__ import annotations

import re
from functools import lru_cache

from elench.text.wordlists import STOP_WORDS

WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*|[%$£€°]")
"""A number, a run of letters (with inner apostrophes), or a sign that carries a unit; other signs are not words."""

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_TENS = "thirty forty fifty sixty seventy eighty ninety"
NUMBERS = {
    **{word: str(n) for n, word in enumerate(_SMALL.split())},
    **{word: str(10 * n) for n, word in enumerate(_TENS.split(), 3)},
    "once": "1", "twice": "2", "dozen": "12", "hundred": "100", "thousand": "1000",
    "first": "1st", "second": "2nd", "third": "3rd",
}  # fmt: skip
SIGNS = {
    "%": "percent", "$": "dollar", "£": "pound", "€": "euro", "°": "degree", "yeah": "yes", "yep": "yes", "nope": "no",
}  # fmt: skip
_ENDINGS = ("ies", "es", "s", "ied", "ed", "ing", "ly")


@lru_cache(maxsize=100_000)
def root(word: str) -> str:
    """What a word is compared by: lower case, numbers as digits, signs spelt out, common English endings taken off."""
    word = word.lower().replace("’", "'")
    if word.endswith("'s"):
        word = word[:-2]
    if word[:1].isdigit():
        return word.replace(",", "")
    known = NUMBERS.get(word) or SIGNS.get(word)
    if known or word in STOP_WORDS or len(word) < 4:
        return known or word
    for ending in _ENDINGS:
        stem = word[: -len(ending)]
        if word.endswith(ending) and len(stem) >= 3 and not (ending == "s" and word.endswith("ss")):
            word = stem + "y" if ending in ("ies", "ied") else stem
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]  # stopped → stopp → stop
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def is_number(word: str) -> bool:
    """Is this a number, in digits or spelt out?"""
    return word[:1].isdigit() or word.lower() in NUMBERS


def is_stop_word(word: str) -> bool:
    """Does this word say little by itself? Negations and numbers do not count as such."""
    return word.lower().replace("’", "'") in STOP_WORDS


def words_of(text: str) -> list[tuple[str, tuple[int, int]]]:
    """The words of a text, each with its place."""
    return [(found.group(), found.span()) for found in WORD.finditer(text)]
