"""Negatives: small edits that change what a text says. Each gives an Edit, or None where it finds nothing to change."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from elench.errors import UsageError
from elench.perturb.bad_reference import BadReferences
from elench.perturb.edit import Edit, Kind, Scene, pick, replaced
from elench.perturb.negation import negation
from elench.perturb.numbers import number
from elench.requests import Parsed, Span, Word
from elench.text.roots import is_stop_word
from elench.text.wordnet import antonyms


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
    """Does the article precede a name ("the Moon"), or in it?"""
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


NO_OPPOSITE = {"let", "right", "know", "different", "same"}
"""Words whose opposites in WordNet are those of another sense, or want another sentence."""


async def antonym(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A word becomes its opposite (WordNet); only words in their base form, so that the grammar holds, and no nouns,
    whose opposites are seldom what anybody says."""
    parts = {"JJ": "a", "RB": "r", "VB": "v", "VBP": "v"}
    options = []
    more = {w.span[0] for w in scene.parsed.words if w.tag in ("JJR", "RBR")}
    for word in scene.parsed.words:
        part = parts.get(word.tag)
        if word.span[1] + 1 in more:  # "how many more people"
            continue
        if word.text.lower() in NO_OPPOSITE or scene.text[word.span[1] : word.span[1] + 1] in ("'", "’"):
            continue
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


THINGS_ONLY = {"happen", "occur", "arise", "mean", "say", "do", "think"}
"""Verbs that nobody can be put before or after in place of a thing: "who happened", "who did he say"."""


async def question_word(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """The question asks for another kind of thing: who becomes when, how many becomes which."""
    words = scene.parsed.words
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
        options = _other_question_words(words, word, following)
        return replaced(scene.text, word.span, pick(options, rng), "another question word") if options else None
    return None


def _other_question_words(words: Sequence[Word], word: Word, following: Word | None) -> list[str]:
    """The question words that can replace this one; none where the sentence is built around it."""
    lower, after = word.text.lower(), following.text.lower() if following is not None else ""
    if after in ("of", "a", "an", "about", "come", "if"):  # "which of …", "what a day", "what about …", "how come …"
        return []
    argument = word.relation in ("nsubj", "nsubjpass", "dobj", "pobj")
    if lower == "what" and following is not None and following.pos in ("NOUN", "ADJ", "PROPN", "NUM"):
        return ["whose"]  # "what year …" stays grammatical as "whose year …", not as "when year …"
    if lower == "what" and argument:
        return [] if words[word.head].lemma.lower() in THINGS_ONLY else ["who"]
    if lower == "who" and argument:
        return ["what"]  # "what built …" stays grammatical, "when built …" does not
    return QUESTION_WORDS[lower]


def _another_measure(text: str, words: Sequence[Word], i: int, rng: np.random.Generator) -> Edit | None:
    """How many, how tall, how long ago … become which, or where, when or why."""
    last = i + 1
    options = ["where", "when"]  # "why is the tower?" asks nothing
    if words[last].text.lower() in ("many", "much"):
        rest = words[last + 1 : last + 3]  # "how many of them", "how many more people", "how many times bigger"
        if not rest or rest[0].pos not in ("NOUN", "ADJ", "PROPN", "NUM") or any(w.tag == "JJR" for w in rest):
            return None
        options = ["which"]
    elif last + 1 < len(words):
        if words[last + 1].text.lower() == "ago":
            last += 1
        elif words[last + 1].pos in ("NOUN", "ADJ", "ADV") or words[last + 1].text.lower() in ("a", "an", "of"):
            return None  # "how good a player", "how well known"
        if words[words[i + 1].head].lemma.lower() in ("take", "last", "weigh", "cost"):
            return None  # "when does it take him"
    return replaced(text, (words[i].span[0], words[last].span[1]), pick(options, rng), "another question word")


async def drop(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """One content word is left out, with all that is written together with it; a mark after it stays."""
    found = re.finditer(r"(?<!\S)([\w$£€#@+-]\S*?)[?.!,;:…]*(?!\S)", scene.text)
    spans = [
        m.span(1)
        for m in found
        if re.search(r"\w", m[1])
        and not is_stop_word(m[1])
        and not re.search(r"[\"“”()\[\]«»]|[^\W\d]\.", m[1])  # half of a quotation, or "a.m."
        and (m.end(1) == m.end() or not re.search(r"[?.!,;:…]\s*$", scene.text[: m.start()]))  # no mark after a mark
    ]
    if len(scene.text.split()) < 2 or not spans:
        return None
    start, end = pick(spans, rng)
    if scene.text[end : end + 1] == " ":
        end += 1
    elif start and scene.text[start - 1] == " ":
        start -= 1
    return replaced(scene.text, (start, end), "", "a word left out")


async def shuffle(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """The words in another order; a closing mark stays where it is."""
    body = scene.text.rstrip(" ?.!")
    words = body.split()
    if len(set(words)) < 2:
        return None
    mixed = words
    while mixed == words:
        mixed = [words[i] for i in rng.permutation(len(words))]
    if len(body) < len(scene.text.rstrip()):  # no second mark before the closing one
        mixed[-1] = mixed[-1].rstrip("?.!,;:") or mixed[-1]
    return replaced(scene.text, (0, len(body)), " ".join(mixed), "words in another order")


async def bad_reference(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """An inner span is replaced by as many words of another passage (QAScore §4.2); blanks stay as they are."""
    try:
        start, end, added = BadReferences(scene.passages).edit(scene.text, scene.context, rng)
    except UsageError:
        return None
    spoilt = scene.text[:start] + added + scene.text[end:]
    return Edit(spoilt, (start, end), scene.text[start:end], added, "a span of another passage")


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
