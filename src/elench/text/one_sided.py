"""What occurs on one side only: negations, numbers and names that a text has and the text it is compared with has not.

Most metrics hardly see these. They are named as notes in the evidence of every metric that judges an answer or a
summary, and lower the score of `support`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from elench.text.passages import sentences

NEGATION = re.compile(r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
SPELT = {
    word: str(value)
    for value, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
}
NAME = re.compile(r"\b[A-Z][\w'’-]*[a-z][\w'’-]*\b|\b[A-Z]{2,}\b")
MOST = 5
"""Names or numbers listed in one note."""


def numbers(text: str) -> dict[str, str]:
    """Numbers of a text by their value, as they are written."""
    found = {m.group().replace(",", "").rstrip(".").lstrip("0") or "0": m.group() for m in NUMBER.finditer(text)}
    for word in re.findall(r"\w+", text.lower()):
        if word in SPELT and word != "one":  # "one" is seldom a count
            found.setdefault(SPELT[word], word)
    return found


def names(text: str) -> list[str]:
    """Words with a capital that do not merely begin a sentence."""
    begins = {a for a, _ in sentences(text)}
    return [m.group() for m in NAME.finditer(text) if m.start() not in begins]


def new_numbers(text: str, others: str) -> list[str]:
    """Numbers of a text, as they are written there, that the other text does not have in any spelling."""
    known = numbers(others)
    return [written for value, written in numbers(text).items() if value not in known]


def new_names(text: str, others: str) -> list[str]:
    """Names of a text of which no part occurs in the other text."""
    known = set(re.findall(r"\w+", others.lower()))
    return [name for name in dict.fromkeys(names(text)) if not set(re.findall(r"\w+", name.lower())) & known]


def notes(text: str, others: Sequence[str], judged: str, against: str) -> list[dict[str, str]]:
    """What occurs in the judged text and in none of the others: {what, text, side}, ready for evidence.

    A negation is noted where one side alone has one and the other text is not much longer (in a long context it says
    nothing).
    """
    found: list[dict[str, str]] = []
    if len(others) == 1 and len(others[0].split()) <= 3 * max(10, len(text.split())):
        mine, theirs = NEGATION.search(text), NEGATION.search(others[0])
        if mine and not theirs:
            found.append({"what": "negation", "text": mine.group(), "side": judged})
        elif theirs and not mine:
            found.append({"what": "negation", "text": theirs.group(), "side": against})
    everything = " ".join(others)
    for what, new in (("number", new_numbers(text, everything)), ("name", new_names(text, everything))):
        if new:
            found.append({"what": what, "text": ", ".join(new[:MOST]), "side": judged})
    return found
