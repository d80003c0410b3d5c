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
    """Put `added` in place of a span, in capitals where the span began the text with one; "a" and "an" follow suit."""
    article = re.search(r"\b(an?)\s+$", text[: at[0]], re.IGNORECASE)
    if article and added[:1].isalpha():
        fitting = _article(added)
        if fitting != article[1].lower():
            added = fitting + text[article.end(1) : at[0]] + added
            at = (article.start(1), at[1])
    removed = text[at[0] : at[1]]
    if removed[:1].isupper() and at[0] == 0:
        added = added[:1].upper() + added[1:]
    return Edit(text[: at[0]] + added + text[at[1] :], at, removed, added, how)


def _article(word: str) -> str:
    """Which article the word wants, by its first sound as far as spelling tells it."""
    lower = word.lower()
    if re.match(r"(?:hour|honest|hono|heir)", lower):
        return "an"
    return "an" if lower[0] in "aeiou" and not re.match(r"(?:uni(?!m|n)|us[aeiu]|eu|one|once|ufo)", lower) else "a"


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
        others = [
            o
            for place, o, k in known
            if k == kind
            and not own & set(o.lower().split())
            and o not in scene.text
            and _with_the(scene.text, at) == _with_the(scene.context, place)
        ]
        options += [(at, other, kind) for other in dict.fromkeys(others)]
    if not options:
        return None
    at, other, kind = pick(options, rng)
    return replaced(scene.text, at, other, f"another {kind} of the context")


def _with_the(text: str, at: Span) -> bool:
    """Does the article stand before a name ("the Moon"), or in it?"""
    return bool(re.search(r"\bthe\s+$", text[: at[0]], re.IGNORECASE)) or text[slice(*at)].lower().startswith("the ")


PRONOUNS = {
    "he": "she", "she": "he", "him": "her", "his": "your", "hers": "his", "they": "we", "we": "they", "them": "us",
    "us": "them", "their": "your", "your": "their", "my": "your", "our": "their", "its": "his", "i": "you", "me": "him",
    "theirs": "ours", "ours": "theirs",
}  # fmt: skip
REFLEXIVES = ("myself", "yourself", "himself", "herself", "itself", "ourselves", "yourselves", "themselves")
WITH_YOU = {"am": "are", "was": "were", "'m": "'re", "’m": "’re"}


async def pronoun_swap(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A pronoun becomes another of the same number and case."""
    options: list[tuple[Span, str]] = []
    words = scene.parsed.words
    bound = any(word.text.lower() in REFLEXIVES for word in words)  # "she hurt himself"
    for i, word in enumerate(words):
        lower = word.text.lower()
        if word.pos not in ("PRON", "DET") or (lower not in PRONOUNS and lower != "her"):
            continue
        if bound and word.relation in ("nsubj", "nsubjpass"):
            continue
        other = ("his" if word.tag == "PRP$" else "him") if lower == "her" else PRONOUNS[lower]
        following = words[i + 1] if i + 1 < len(words) else None
        if other == "your" and (following is None or following.pos in ("VERB", "AUX", "PUNCT", "ADP")):
            other = "yours"
        if lower == "i":
            before = words[i - 1] if i else None
            if following is not None and following.text.lower() in WITH_YOU:
                span = (word.span[0], following.span[1])
                gap = scene.text[word.span[1] : following.span[0]]
                options.append((span, f"you{gap}{WITH_YOU[following.text.lower()]}"))
                continue
            if before is not None and before.text.lower() in WITH_YOU:
                span = (before.span[0], word.span[1])
                gap = scene.text[before.span[1] : word.span[0]]
                options.append((span, f"{WITH_YOU[before.text.lower()]}{gap}you"))
                continue
        options.append((word.span, other))
    return replaced(scene.text, *pick(options, rng), "another pronoun") if options else None


CONTRACTED = {
    "is": "isn't", "are": "aren't", "was": "wasn't", "were": "weren't", "do": "don't", "does": "doesn't",
    "did": "didn't",
    "has": "hasn't", "have": "haven't", "had": "hadn't", "can": "can't", "could": "couldn't", "will": "won't",
    "would": "wouldn't", "should": "shouldn't", "must": "mustn't",
}  # fmt: skip


async def negation(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A statement or question is negated, or its negation is taken away; not so a yes/no question, whose negation asks
    the same."""
    words = scene.parsed.words
    if words and words[0].pos == "AUX" and scene.text.rstrip().endswith("?"):
        return None
    for i, word in enumerate(words):
        lower = word.text.lower()
        if lower == "no" and word.relation == "det":
            return replaced(scene.text, word.span, "some", "negation taken away")
        if word.relation == "neg" and lower in ("not", "n't", "n’t", "never"):
            return _affirmed(scene.text, words, i)
    for word in words:
        if word.pos == "AUX" and word.text.lower() in CONTRACTED and word.relation in ("aux", "auxpass", "ROOT", "cop"):
            return replaced(scene.text, word.span, CONTRACTED[word.text.lower()], "negated")
    helpers = {"VBZ": "doesn't", "VBD": "didn't", "VBP": "don't"}
    for word in words:
        if word.pos == "VERB" and word.tag in helpers and word.relation in ("ROOT", "conj", "relcl", "ccomp"):
            if word.lemma.lower() == "be":
                return replaced(scene.text, word.span, CONTRACTED.get(word.text.lower(), "is not"), "negated")
            return replaced(scene.text, word.span, f"{helpers[word.tag]} {word.lemma.lower()}", "negated")
    return None


WHOLE = {"ca": "can", "wo": "will", "sha": "shall"}
"""What is left of an auxiliary before n't, and what it stands for."""


def _affirmed(text: str, words: Sequence[Word], i: int) -> Edit | None:
    """The text without the negation at word i."""
    word, how = words[i], "negation taken away"
    before = words[i - 1] if i else None
    following = words[i + 1] if i + 1 < len(words) else None
    if before is None:
        return None  # "Never has he seen it": without its first word the order of the others is wrong
    if i == 1 and before.text.lower() == "do" and following is not None and following.tag == "VB":  # "Don't go."
        return replaced(text, (before.span[0], following.span[1]), following.text, how)
    if before.text.lower() in WHOLE and word.text.lower() != "not":
        return replaced(text, (before.span[0], word.span[1]), WHOLE[before.text.lower()], how)
    start = word.span[0] - (1 if text[: word.span[0]].endswith(" ") else 0)
    return replaced(text, (start, word.span[1]), "", how)


async def antonym(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A word becomes its opposite (WordNet); only words in their base form, so that the grammar holds, and no nouns,
    whose opposites are seldom what anybody says."""
    parts = {"JJ": "a", "RB": "r", "VB": "v", "VBP": "v"}
    options = []
    for word in scene.parsed.words:
        part = parts.get(word.tag)
        if not part or word.entity or is_stop_word(word.text) or word.text.lower() != word.lemma.lower():
            continue
        if word.relation == "neg":
            continue
        opposites = sorted(o for o in antonyms(word.text, part) if o.isalpha() and o.islower())
        options += [(word.span, opposite) for opposite in opposites]
    return replaced(scene.text, *pick(options, rng), "antonym") if options else None


QUESTION_WORDS = {
    "who": ["when", "where", "why"], "whom": ["what"], "what": ["who", "when", "where"], "which": ["whose"],
    "when": ["where", "why"], "where": ["when", "why"], "why": ["when", "where"], "how": ["why", "when"],
    "whose": ["which"],
}  # fmt: skip


async def question_word(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """The question asks for another kind of thing: who becomes when, how many becomes which."""
    words, how = scene.parsed.words, "another question word"
    asks = scene.text.rstrip().endswith("?") or (words and words[0].tag.startswith("W") and "." not in scene.text)
    for i, word in enumerate(words if asks else ()):
        lower = word.text.lower()
        if lower not in QUESTION_WORDS or not word.tag.startswith("W"):
            continue
        if i and words[i - 1].pos in ("NOUN", "PROPN", "PRON"):  # a relative clause: "the man who built it"
            continue
        following = words[i + 1] if i + 1 < len(words) else None
        if lower == "how" and following is not None and following.pos in ("ADJ", "ADV"):
            return _another_measure(scene.text, words, i, rng)
        options = QUESTION_WORDS[lower]
        subject = word.relation in ("nsubj", "nsubjpass")
        if lower == "who" and (subject or word.relation in ("dobj", "pobj")):
            options = ["what"]  # "what built …" stays grammatical, "when built …" does not
        elif lower == "what" and (subject or word.relation in ("dobj", "pobj")):
            options = ["who"]
        if lower == "what" and following is not None and following.pos in ("NOUN", "ADJ", "PROPN", "NUM"):
            options = ["whose"]  # "what year …" stays grammatical as "whose year …", not as "when year …"
        if lower in ("what", "which") and following is not None and following.text.lower() == "of":
            return None
        return replaced(scene.text, word.span, pick(options, rng), how)
    return None


def _another_measure(text: str, words: Sequence[Word], i: int, rng: np.random.Generator) -> Edit:
    """How many, how tall, how long ago … become which, or where, when or why."""
    last = i + 1
    if words[last].text.lower() in ("many", "much") and last + 1 < len(words):
        named = words[last + 1].pos in ("NOUN", "ADJ", "PROPN", "NUM")
        options = ["which"] if named else ["where", "when"]
    else:
        if last + 1 < len(words) and words[last + 1].text.lower() == "ago":
            last += 1
        options = ["where", "when"]  # "why is the tower?" asks nothing
    return replaced(text, (words[i].span[0], words[last].span[1]), pick(options, rng), "another question word")


NUMBER_WORDS = "two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905


async def number(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A number becomes another of the same form."""
    digits = [  # 1 wants a singular, 007 is a name
        m.span()
        for m in re.finditer(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)", scene.text)
        if not re.fullmatch(r"1,?|0\d.*", m.group())
    ]
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
    value = value if value != 1 or point else int(whole) + 1
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
