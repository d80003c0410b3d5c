"""A change of a text at one place: the words around it keep their blanks, the new words get the case of the old."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from elench.requests import Parsed, Span

T = TypeVar("T")
EMPTY = Parsed((), (), (), ())


@dataclass(frozen=True)
class Scene:
    """A text to change, its context, and the texts of the other records."""

    text: str
    context: str
    paraphrase: str | None
    """A human paraphrase, where one is given."""
    passages: Sequence[str]
    parsed: Parsed = field(default=EMPTY)
    context_parsed: Parsed = field(default=EMPTY)


@dataclass(frozen=True)
class Edit:
    """A changed text: what was at `at` and what is there now."""

    text: str
    at: Span
    removed: str
    added: str
    how: str


Kind = Callable[[Scene, np.random.Generator], Awaitable["Edit | None"]]


def pick(options: Sequence[T], rng: np.random.Generator) -> T:
    return options[int(rng.integers(len(options)))]


def replaced(text: str, at: Span, added: str, how: str) -> Edit:
    """Put `added` in place of a span, in the case of what was there; "a" and "an" before it follow suit."""
    added = _cased(text, at, added)
    article = re.search(r"\b(an?)\s+[$£€]?$", text[: at[0]], re.IGNORECASE)
    if article and added[:1].isalnum():
        fitting = _article(added)
        if fitting != article[1].lower():
            added = _cased(text, article.span(1), fitting) + text[article.end(1) : at[0]] + added
            at = (article.start(1), at[1])
    return Edit(text[: at[0]] + added + text[at[1] :], at, text[at[0] : at[1]], added, how)


def _cased(text: str, at: Span, added: str) -> str:
    """The new words in the case of the old ones: Like this, or LIKE THIS among words that are."""
    removed = text[at[0] : at[1]]
    if removed.isupper() and _loud(text, at):
        return added.upper()
    if not removed[:1].isupper() or not added.split(" ")[0].islower():  # an iPhone stays one
        return added
    if re.match(r"I\b", removed) and not _opens(text, at[0]):
        return added
    return added[:1].upper() + added[1:]


def _loud(text: str, at: Span) -> bool:
    """Are the nearest words of two letters or more on both sides in capitals?"""
    letters = r"[^\W\d_]{2,}"
    near = [*re.findall(letters, text[: at[0]])[-1:], *re.findall(letters, text[at[1] :])[:1]]
    return bool(near) and all(word.isupper() for word in near)


def _opens(text: str, start: int) -> bool:
    """Does a sentence or a quotation begin here?"""
    return bool(re.search(r"(?:^\W*|[.!?…][\"'”’)\]]*\s+[\"'“‘(\[]*|[\"“‘])$", text[:start]))


def _article(word: str) -> str:
    """Which article the word or number takes, by its first sound as far as its spelling shows it."""
    lower = word.lower()
    if number := re.match(r"\d[\d,]*", lower):
        digits = number[0].replace(",", "")
        teens = digits[:2] in ("11", "18") and (len(digits) % 3 == 2 or (len(digits) == 4 and "," not in number[0]))
        return "an" if teens or digits[0] == "8" else "a"
    if re.match(r"(?:hour|honest|hono|heir)", lower):
        return "an"
    return "an" if lower[0] in "aeiou" and not re.match(r"(?:uni(?!m|n)|us[aeiu]|eu|one|once|ufo)", lower) else "a"
