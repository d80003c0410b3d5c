"""Questions without a model: the answer's own sentence with a question word in its place.

After the cloze questions of Lewis et al. 2019 (Unsupervised Question Answering by Cloze Translation), without the
translation: what a trained asker has to beat.
"""

from __future__ import annotations

import re
from functools import lru_cache

from elench.text.passages import sentences

AROUND = 20
"""Words of the sentence kept on each side of the answer."""
TIME = re.compile(
    r"((mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|november|"
    r"december|yesterday|today|tomorrow|tonight|(week|month|year|night|morning|season|summer|winter)s?|\d\d\d0s)"
    r"( \d\d?(st|nd|rd|th)?)?( ?,? \d{4})?",
    re.IGNORECASE,
)
"""A time word, perhaps with day and year after it."""
NUMBER = re.compile(
    r"[$£€] ?\d|\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|hundreds?|thousand|million|billion|dozen)\b",
    re.IGNORECASE,
)


def question_word(answer: str, before: str) -> str:
    """What to ask with, as far as the words of the answer and the word before it tell."""
    first, last = (answer.split() or [""])[0], (answer.split() or [""])[-1]
    name = first[:1].isupper() and not NUMBER.match(first)
    if re.fullmatch(r"(1[0-9]|20)\d\d", answer.strip()):
        return "what year"
    if TIME.fullmatch(last) or TIME.fullmatch(answer.strip()):
        return "when"
    if re.search(r"\d ?[-–] ?\d|\w ?- ?[a-z]", answer) and not name:  # a result, an age, a two-year deal
        return "what"
    if NUMBER.search(answer) and not name:
        return "how much" if re.search(r"[$£€%]|\bper cent\b", answer) else "how many"
    if name:
        return "what place" if re.search(r"\b(in|at|near|from)( the)?\s*$", before, re.IGNORECASE) else "who"
    return "what"


@lru_cache(maxsize=4096)
def _sentences(text: str) -> list[tuple[int, int]]:
    return sentences(text)


def cloze_question(text: str, answer: str, start: int) -> str:
    """The sentence around the answer, cut to some words, as a question."""
    end = start + len(answer)
    begin, stop = next(((a, b) for a, b in reversed(_sentences(text)) if a <= start), (0, len(text)))
    before, after = text[begin:start], text[end : max(stop, end)]
    left, right = before.split()[-AROUND:], after.split()[:AROUND]
    words = " ".join([*left, question_word(answer, before), *right]).rstrip(" .!?,;:\"'")
    return words[:1].upper() + words[1:] + "?"
