"""Negatives: small edits that change what a text says. Each gives an Edit, or None where it finds nothing to change."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from quaestor.errors import UsageError
from quaestor.requests import Parsed, Span, Word
from quaestor.study.bad_reference import BadReferences
from quaestor.text.roots import is_stop_word
from quaestor.text.wordnet import antonyms

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
    """A changed text: what stood at `at` and what stands there now."""

    text: str
    at: Span
    removed: str
    added: str
    how: str


Kind = Callable[[Scene, np.random.Generator], Awaitable["Edit | None"]]


def replaced(text: str, at: Span, added: str, how: str) -> Edit:
    """Put `added` in place of a span, in capitals where the span began the text with one."""
    removed = text[at[0] : at[1]]
    if removed[:1].isupper() and at[0] == 0:
        added = added[:1].upper() + added[1:]
    return Edit(text[: at[0]] + added + text[at[1] :], at, removed, added, how)


def pick(options: Sequence[T], rng: np.random.Generator) -> T:
    return options[int(rng.integers(len(options)))]


def _surface(text: str, words: Sequence[Word], first: int, last: int) -> tuple[Span, str]:
    span = (words[first].span[0], words[last - 1].span[1])
    return span, text[span[0] : span[1]]


def _names(text: str, parsed: Parsed) -> list[tuple[Span, str, str]]:
    """(place, name, type) of the entities, and of runs of proper nouns that are in none (type NAME)."""
    found = [
        (*_surface(text, parsed.words, a, b), kind)
        for a, b, kind in parsed.entities
        if kind not in ("CARDINAL", "ORDINAL", "PERCENT", "QUANTITY", "MONEY", "TIME", "DATE")
    ]
    i = 0
    while i < len(parsed.words):
        j = i
        while j < len(parsed.words) and parsed.words[j].pos == "PROPN" and not parsed.words[j].entity:
            j += 1
        if j > i:
            found.append((*_surface(text, parsed.words, i, j), "NAME"))
        i = max(j, i + 1)
    return [(at, name, kind) for at, name, kind in found if re.search(r"\w", name)]


async def entity_swap(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A name becomes another name of the same type from the context."""
    options = []
    known = _names(scene.context, scene.context_parsed)
    for at, name, kind in _names(scene.text, scene.parsed):
        own = set(name.lower().split())
        others = [o for _, o, k in known if k == kind and not own & set(o.lower().split()) and o not in scene.text]
        options += [(at, other, kind) for other in dict.fromkeys(others)]
    if not options:
        return None
    at, other, kind = pick(options, rng)
    return replaced(scene.text, at, other, f"another {kind} of the context")


PRONOUNS = {
    "he": "she", "she": "he", "him": "her", "his": "your", "himself": "herself", "herself": "himself", "hers": "his",
    "they": "we", "we": "they", "them": "us", "us": "them", "their": "your", "your": "their", "my": "your",
    "our": "their", "its": "his", "i": "you", "me": "them", "theirs": "ours", "ours": "theirs",
    "themselves": "ourselves",
}  # fmt: skip


async def pronoun_swap(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A pronoun becomes another of the same number and case."""
    options = []
    for word in scene.parsed.words:
        lower = word.text.lower()
        if word.pos in ("PRON", "DET") and (lower in PRONOUNS or lower == "her"):
            other = ("his" if word.tag == "PRP$" else "him") if lower == "her" else PRONOUNS[lower]
            options.append((word.span, other))
    return replaced(scene.text, *pick(options, rng), "another pronoun") if options else None


CONTRACTED = {
    "is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "do": "don't", "does": "doesn't",
    "did": "didn't",
    "has": "hasn't", "have": "haven't", "had": "hadn't", "can": "can't", "could": "couldn't", "will": "won't",
    "would": "wouldn't", "should": "shouldn't", "must": "mustn't",
}  # fmt: skip


async def negation(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A statement or question is negated, or its negation is taken away."""
    words = scene.parsed.words
    for word in words:
        if word.relation == "neg" and word.text.lower() in ("not", "n't", "n’t", "never"):
            start = word.span[0] - (1 if scene.text[: word.span[0]].endswith(" ") else 0)
            return replaced(scene.text, (start, word.span[1]), "", "negation taken away")
    for word in words:
        if word.pos == "AUX" and word.text.lower() in CONTRACTED and word.relation in ("aux", "auxpass", "ROOT", "cop"):
            return replaced(scene.text, word.span, CONTRACTED[word.text.lower()], "negated")
    helpers = {"VBZ": "doesn't", "VBD": "didn't", "VBP": "don't"}
    for word in words:
        if word.pos == "VERB" and word.tag in helpers and word.relation in ("ROOT", "conj", "relcl", "ccomp"):
            return replaced(scene.text, word.span, f"{helpers[word.tag]} {word.lemma.lower()}", "negated")
    return None


async def antonym(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A word becomes its opposite (WordNet); only words in their base form, so that the grammar holds."""
    parts = {"JJ": "a", "RB": "r", "VB": "v", "NN": "n", "VBP": "v"}
    options = []
    for word in scene.parsed.words:
        part = parts.get(word.tag)
        if not part or word.entity or is_stop_word(word.text) or word.text.lower() != word.lemma.lower():
            continue
        opposites = sorted(o for o in antonyms(word.text, part) if o.isalpha() and o.islower())
        options += [(word.span, opposite) for opposite in opposites]
    return replaced(scene.text, *pick(options, rng), "antonym") if options else None


QUESTION_WORDS = {
    "who": ["when", "where", "why"], "whom": ["what"], "what": ["who", "when", "where"], "which": ["whose"],
    "when": ["where", "why", "who"], "where": ["when", "why", "who"], "why": ["when", "where"], "how": ["why", "when"],
    "whose": ["which"],
}  # fmt: skip
MEASURES = {"how many": "which", "how much": "which", "how long": "where", "how old": "where", "how far": "when"}


async def question_word(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """The question asks for another kind of thing: who becomes when, how many becomes which."""
    measure = re.search(r"\b(?:" + "|".join(MEASURES) + r")\b", scene.text, re.IGNORECASE)
    if measure:
        return replaced(scene.text, measure.span(), MEASURES[measure.group().lower()], "another question word")
    for i, word in enumerate(scene.parsed.words):
        lower = word.text.lower()
        if lower not in QUESTION_WORDS or not word.tag.startswith("W"):
            continue
        options = QUESTION_WORDS[lower]
        following = scene.parsed.words[i + 1] if i + 1 < len(scene.parsed.words) else None
        if lower == "who" and word.relation in ("nsubj", "nsubjpass"):
            options = ["what"]  # "what built …" stays grammatical, "when built …" does not
        if lower == "what" and following is not None and following.pos in ("NOUN", "ADJ", "PROPN"):
            options = ["whose"]  # "what year …" stays grammatical as "whose year …", not as "when year …"
        return replaced(scene.text, word.span, pick(options, rng), "another question word")
    return None


NUMBER_WORDS = "two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905


async def number(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A number becomes another of the same form."""
    digits = [m.span() for m in re.finditer(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)", scene.text)]
    words = [m.span() for m in re.finditer(r"\b(?:" + "|".join(NUMBER_WORDS) + r")\b", scene.text, re.IGNORECASE)]
    if not digits and not words:
        return None
    at = pick([*digits, *words], rng)
    old = scene.text[at[0] : at[1]].rstrip(",")
    at = (at[0], at[0] + len(old))
    if not old[0].isdigit():
        others = [w for w in NUMBER_WORDS if w != old.lower()]
        return replaced(scene.text, at, pick(others, rng), "another number")
    plain = old.replace(",", "")
    whole, point, decimals = plain.partition(".")
    year = len(plain) == 4 and plain[:2] in ("15", "16", "17", "18", "19", "20") and "," not in old
    step = int(rng.integers(2, 30)) if year else int(rng.integers(1, max(int(whole), 9) + 1))
    value = int(whole) + step * (-1 if int(whole) > step and rng.random() < 0.5 else 1)
    new = f"{value:,}" if "," in old else str(value)
    return replaced(scene.text, at, new + point + decimals, "another number")


async def drop(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """One content word is left out."""
    spans = [m.span() for m in re.finditer(r"\w[\w'’-]*", scene.text)]
    spans = [s for s in spans if not is_stop_word(scene.text[s[0] : s[1]])]
    if len(scene.text.split()) < 2 or not spans:
        return None
    start, end = pick(spans, rng)
    if scene.text[end : end + 1] == " ":
        end += 1
    elif start and scene.text[start - 1] == " ":
        start -= 1
    return replaced(scene.text, (start, end), "", "a word left out")


async def shuffle(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """The words stand in another order; a closing mark stays where it is."""
    body = scene.text.rstrip(" ?.!")
    words = body.split()
    if len(set(words)) < 2:
        return None
    mixed = words
    while mixed == words:
        mixed = [words[i] for i in rng.permutation(len(words))]
    return replaced(scene.text, (0, len(body)), " ".join(mixed), "words in another order")


async def bad_reference(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """An inner span is replaced by as many words of another passage (QAScore §4.2)."""
    try:
        spoilt = BadReferences(scene.passages).make(scene.text, scene.context, rng)
    except UsageError:
        return None
    old, new = scene.text.split(), spoilt.split()
    differ = [i for i in range(len(old)) if old[i] != new[i]]
    if not differ:
        return None
    first, last = differ[0], differ[-1] + 1
    starts = [m.start() for m in re.finditer(r"\S+", scene.text)]
    at = (starts[first], starts[last - 1] + len(old[last - 1]))
    return Edit(spoilt, at, " ".join(old[first:last]), " ".join(new[first:last]), "a span of another passage")


NEGATIVES: dict[str, Kind] = {
    "entity-swap": entity_swap,
    "pronoun-swap": pronoun_swap,
    "negation": negation,
    "antonym": antonym,
    "question-word": question_word,
    "number": number,
    "drop": drop,
    "shuffle": shuffle,
    "bad-reference": bad_reference,
}
