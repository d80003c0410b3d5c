"""Claims that draw on two sentences of a text: what summaries do, and what a copied sentence never shows.

A pronoun becomes the name it refers to, a surname the full name, an apposition a statement or part of the next
sentence; two sentences become one. All by rule on plain text; where no rule fits, nothing is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

FULL_NAME = r"[A-Z][a-z'-]+(?: (?:[A-Z]\.|de|von|van|of|the))*(?: [A-Z][a-z'-]+)+"
SUBJECT = re.compile(rf"^({FULL_NAME}),? (?:is|was|has|had|\w+ed|who|born|an?|the)\b")
PRONOUN = re.compile(r"^(He|She|It|They) (?=[a-z])")
POSSESSIVE = re.compile(r"^(His|Her|Its|Their) (?=[a-z])")
APPOSITION = re.compile(rf"^({FULL_NAME}), ((?:an?|the) [^,;.()]{{6,60}}), ")
SURNAME = re.compile(r"(?<![A-Z]\w)(?<!\w )\b([A-Z][a-z]{3,})\b(?! [A-Z])|(?<= )([A-Z][a-z]{3,})\b(?! [A-Z])")
FIRST_NAME = r"(?!North|South|East|West|New|Great|Royal|The|[A-Z]\w+(?:an|ish|ese|ic)\b)[A-Z][a-z]{2,}"
DETAIL = re.compile(r"^(?:In|On|During|After|Before|By) [^,.]{3,40}, (?=[A-Za-z])")

Fused = tuple[str, tuple[int, ...]]
"""A claim and the sentences it needs."""


def resolved(sentences: Sequence[str], i: int) -> Fused | None:
    """Sentence i with its opening pronoun replaced by the name that opens the sentence before."""
    if i == 0:
        return None
    name = SUBJECT.match(sentences[i - 1])
    found = PRONOUN.match(sentences[i]) or POSSESSIVE.match(sentences[i])
    if name is None or found is None or (found[1] in ("They", "Their")):
        return None
    said = f"{name[1]}'s" if POSSESSIVE.match(sentences[i]) else name[1]
    return f"{said} {sentences[i][found.end() :]}", (i - 1, i)


def full_name(sentences: Sequence[str], i: int) -> Fused | None:
    """Sentence i with a surname written out as elsewhere in the text."""
    for found in SURNAME.finditer(sentences[i]):
        short = found.group()
        for k, other in enumerate(sentences):
            whole = re.search(rf"\b{FIRST_NAME} {short}\b", other)
            if (
                k != i
                and whole
                and whole.group() not in sentences[i]
                and not other.startswith(whole.group().split()[0])
            ):
                return sentences[i][: found.start()] + whole.group() + sentences[i][found.end() :], (k, i)
    return None


def stated_apposition(sentences: Sequence[str], i: int) -> Fused | None:
    """ "Anna Berg, a Swedish painter, moved …" as "Anna Berg was a Swedish painter."."""
    found = APPOSITION.match(sentences[i])
    return None if found is None else (f"{found[1]} was {found[2]}.", (i,))


def moved_apposition(sentences: Sequence[str], i: int) -> Fused | None:
    """The apposition of the sentence before, put behind the name that its pronoun refers to."""
    if i == 0:
        return None
    found, pronoun = APPOSITION.match(sentences[i - 1]), PRONOUN.match(sentences[i])
    if found is None or pronoun is None or pronoun[1] == "They":
        return None
    return f"{found[1]}, {found[2]}, {sentences[i][pronoun.end() :]}", (i - 1, i)


def both(sentences: Sequence[str], i: int) -> Fused | None:
    """Sentences i and i + 1 as one."""
    if i + 1 >= len(sentences) or len(sentences[i].split()) + len(sentences[i + 1].split()) > 45:
        return None
    first, second = sentences[i].rstrip(". "), sentences[i + 1]
    opening = second.split()[0] if second.split() else ""
    if opening in ("The", "This", "It", "He", "She", "They", "A", "In", "His", "Her", "These", "There"):
        second = second[0].lower() + second[1:]
    return f"{first}, and {second}", (i, i + 1)


WAYS: tuple[Callable[[Sequence[str], int], Fused | None], ...] = (
    resolved, full_name, stated_apposition, moved_apposition, both,
)  # fmt: skip
CHANCES = (0.4, 0.1, 0.2, 0.27, 0.03)


def fused(sentences: Sequence[str], rng: np.random.Generator) -> Fused | None:
    """A claim that follows from two sentences (or from an aside of one), with the places it needs; one way is tried."""
    way = WAYS[int(rng.choice(len(WAYS), p=CHANCES))]
    found = (way(sentences, int(i)) for i in rng.permutation(len(sentences)))
    return next((claim for claim in found if claim is not None), None)


def with_detail(sentence: str, strangers: Sequence[str], rng: np.random.Generator) -> str | None:
    """The sentence with a detail that its text does not give: a time from elsewhere, or somebody's age."""
    name = re.search(rf"{FULL_NAME}(?= [a-z])", sentence)
    if name is not None and rng.random() < 0.5:
        return f"{sentence[: name.end()]}, {int(rng.integers(18, 80))},{sentence[name.end() :]}"
    if DETAIL.match(sentence) or not re.match(r"(?:The|A|An|It|He|She|They|This|His|Her) ", sentence):
        return None
    details = [found.group() for s in strangers if (found := DETAIL.match(s))]
    if not details:
        return None
    return details[int(rng.integers(len(details)))] + sentence[0].lower() + sentence[1:]
