"""A statement or question said the other way round: negated, or without its negation."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from elench.perturb.edit import Edit, Scene, replaced
from elench.requests import Parsed, Span, Word

CONTRACTED = {
    "is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "do": "don't", "does": "doesn't",
    "did": "didn't",
    "has": "hasn't", "have": "haven't", "had": "hadn't", "can": "can't", "could": "couldn't", "will": "won't",
    "would": "wouldn't", "should": "shouldn't", "must": "mustn't",
}  # fmt: skip
HELPERS = {"VBZ": "doesn't", "VBD": "didn't", "VBP": "don't"}
WHOLE = {"ca": "can", "wo": "will", "sha": "shall"}
"""What is left of an auxiliary before n't, and its full form."""
NOT = ("not", "n't", "n’t", "never")
SOME = {"nobody": "somebody", "nothing": "something", "nowhere": "somewhere"}
NEGATIVE = {*NOT, *SOME, "no", "none", "neither", "nor", "cannot", "hardly", "scarcely", "barely"}
WITHOUT = {
    "any": "some", "anything": "something", "anybody": "somebody", "anyone": "someone", "anywhere": "somewhere",
}  # fmt: skip
"""What words that live on a negation become without it."""
BOUND = {"nor", "neither", "either", "yet", "ever", "anymore", "until", "till"}
"""Words that keep a negation from being taken away: "not … yet", "neither … nor"."""


async def negation(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A statement or question is negated, or its negation is taken away; not so a yes/no question, whose negation asks
    the same."""
    words = scene.parsed.words
    if words and words[0].pos == "AUX" and scene.text.rstrip().endswith("?"):
        return None
    for i in range(len(words)):
        if edit := _affirmed(scene.text, scene.parsed, i):
            return edit
    free = [i for i in range(len(words)) if not _lower(words, *_sentence(scene.parsed, i)) & NEGATIVE]
    for i in free:
        if edit := _auxiliary_negated(scene.text, words, i):
            return edit
    for i in free:
        if edit := _verb_negated(scene.text, words, i):
            return edit
    return None


def _sentence(parsed: Parsed, i: int) -> Span:
    """First word of the sentence of word i, and the one after its last."""
    return next(((a, b) for a, b in parsed.sentences if a <= i < b), (0, len(parsed.words)))


def _lower(words: Sequence[Word], first: int, last: int) -> set[str]:
    return {word.text.lower() for word in words[first:last]}


def _auxiliary_negated(text: str, words: Sequence[Word], i: int) -> Edit | None:
    word, following = words[i], words[i + 1].text.lower() if i + 1 < len(words) else ""
    if word.pos != "AUX" or word.relation not in ("aux", "auxpass", "ROOT", "cop"):
        return None
    if following[:1] in ("'", "’") or following == "better":  # "would've", "had better"
        return None
    other = CONTRACTED.get(word.text.lower())
    return replaced(text, word.span, other, "negated") if other else None


def _verb_negated(text: str, words: Sequence[Word], i: int) -> Edit | None:
    word = words[i]
    if word.pos != "VERB" or word.tag not in HELPERS or word.relation not in ("ROOT", "conj", "relcl", "ccomp"):
        return None
    if word.lemma.lower() == "be":
        other = CONTRACTED.get(word.text.lower())
        return replaced(text, word.span, other, "negated") if other else None
    if word.lemma.lower() == "do" and text.rstrip().endswith("?") and i and not words[i - 1].tag.startswith("W"):
        return None  # an auxiliary that the parser takes for a verb
    if word.text.isupper() or (word.tag == "VBZ" and not word.text.endswith("s")):
        return None  # IN CAPITALS the parser does not see the tense
    return replaced(text, word.span, f"{HELPERS[word.tag]} {word.lemma.lower()}", "negated")


def _affirmed(text: str, parsed: Parsed, i: int) -> Edit | None:
    """The text without the negation at word i; None where that is not a negation, or is needed for the grammar."""
    words, (first, last) = parsed.words, _sentence(parsed, i)
    word, lower = words[i], words[i].text.lower()
    following = words[i + 1] if i + 1 < last else None
    at: Span | None = None
    after = following.text.lower() if following is not None else ""
    if lower in SOME and after != "but":
        at, other = word.span, SOME[lower]
    elif lower == "no" and word.relation == "det" and after == "one" and following is not None:
        at, other = (word.span[0], following.span[1]), "someone"
    elif lower == "no" and word.relation == "det" and after not in ("matter", "more", "less", "fewer", "longer"):
        at, other = word.span, "some"
    elif lower in NOT and word.relation == "neg" and i > first:
        # "Never has he seen it": without its first word the order of the others is wrong
        at, other = _without_not(text, words, first, i)
    if (
        at is None
        or _lower(words, first, last) & BOUND
        or re.search(r"\bat all\b", text[at[1] : words[last - 1].span[1]])
    ):
        return None
    return _with_some(text, at, other, words[i + 1 : last])


def _without_not(text: str, words: Sequence[Word], first: int, i: int) -> tuple[Span | None, str]:
    """The span of a "not" with the blank or the verb it attaches to, and what is left of them."""
    word, before = words[i], words[i - 1]
    following = words[i + 1] if i + 1 < len(words) else None
    after = following.text.lower() if following else ""
    stem, apart = before.text.lower(), word.text.lower() == "not"
    if apart and re.match(r"[^,;.]*\bbut\b", text[word.span[1] :]):  # "not him but her"
        return None, ""
    if before.pos == "CCONJ" or stem in ("ai", "need", "dare") or after in ("only", "just", "merely", "even"):
        return None, ""
    if i == first + 1 and stem == "do" and following is not None and following.tag == "VB":  # "Don't go."
        return (before.span[0], following.span[1]), following.text
    if stem in WHOLE and not apart:
        return (before.span[0], word.span[1]), WHOLE[stem]
    start = word.span[0] - (1 if text[: word.span[0]].endswith(" ") else 0)
    return (start, word.span[1]), ""


def _with_some(text: str, at: Span, other: str, rest: Sequence[Word]) -> Edit | None:
    """The negation at this place gives way to `other`, and "any" after it to "some"."""
    last = at[1]
    for k, word in enumerate(rest):
        lower = word.text.lower()
        if lower not in WITHOUT or word.span[0] < at[1]:
            continue
        after = rest[k + 1] if k + 1 < len(rest) else None
        before = rest[k - 1].text.lower() if k else ""
        if after is not None and (after.tag in ("JJR", "RBR") or (before in ("in", "by") and lower == "any")):
            return None  # "any longer", "in any case"
        some = WITHOUT[lower].capitalize() if word.text[0].isupper() else WITHOUT[lower]
        other += text[last : word.span[0]] + some
        last = word.span[1]
    return replaced(text, (at[0], last), other, "negation taken away")
