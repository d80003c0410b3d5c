"""What QuestEval and its relatives share: choosing answers in a text, generating questions, the round-trip check."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from elench.requests import Ask, Parse, Parsed, Read, Reading, Span, together
from elench.text.answers import exact, f1, normalise
from elench.text.cloze import cloze_question
from elench.text.passages import near

LONGEST = 8
"""form=ours: words of an answer, at most."""
FIRST_SENTENCES = 5
"""How far into a text the published program looks for answers."""
_NOUNS = ("NOUN", "PROPN", "NUM")
_LEADING = ("DET", "PRON", "PUNCT", "CCONJ", "SCONJ", "ADP", "SPACE", "PART")


@dataclass(frozen=True)
class Candidate:
    """A part of a text worth asking about."""

    text: str
    start: int
    kind: str
    """Entity type, or `noun`."""


@dataclass(frozen=True)
class GeneratedQuestion:
    """A question generated from a text, with the answer it was generated for."""

    question: str
    answer: Candidate
    own_answer: str
    """What the reader answers on the text the question comes from; the answer itself when nothing was checked."""


@dataclass(frozen=True)
class QuestionSet:
    """The questions of a text: those that passed the round-trip check, and how many there were before."""

    questions: tuple[GeneratedQuestion, ...]
    candidates: int
    """Answers found in the text, before the cap."""
    written: int
    """Questions written, before the round-trip check."""


@dataclass(frozen=True)
class Recipe:
    """How questions are generated from a text and checked on it."""

    form: str
    """paper, code (QuestEval 0.2.4) or ours: which answers are taken."""
    cloze: bool
    """Questions are the answer's sentence with a question word in its place, instead of the asker's."""
    beams: int
    most: int
    """Answers asked about, spread evenly over the text (0: all)."""
    check: str
    """Round-trip check: exact, overlap or off."""
    passages: int
    """Passages of a long text that are read for a question (0: all of it)."""


def _phrase_spans(parsed: Parsed) -> list[tuple[int, int, str]]:
    """Noun phrases without leading articles and the like, and nouns outside all phrases and entities."""
    found = []
    covered = {i for a, b in parsed.phrases for i in range(a, b)} | {
        i for a, b, _ in parsed.entities for i in range(a, b)
    }
    for a, b in parsed.phrases:
        while a < b and (parsed.words[a].pos in _LEADING or parsed.words[a].tag in ("POS", "PRP$")):
            a += 1
        while a < b and parsed.words[b - 1].pos in ("PUNCT", "SPACE", "PART"):
            b -= 1
        if a < b and any(w.pos in _NOUNS for w in parsed.words[a:b]):
            found.append((a, b, "noun"))
    found += [(i, i + 1, "noun") for i, w in enumerate(parsed.words) if i not in covered and w.pos in _NOUNS]
    return sorted(found)


def _located(text: str, parsed: Parsed, spans: Sequence[tuple[int, int, str]]) -> list[Candidate]:
    places = [(parsed.words[a].span[0], parsed.words[b - 1].span[1], kind) for a, b, kind in spans]
    return [Candidate(text[a:b], a, kind) for a, b, kind in places if any(c.isalnum() for c in text[a:b])]


def all_candidates(text: str, parsed: Parsed) -> list[Candidate]:
    """Named entities and noun phrases of a text (§3.2), each once (where it occurs first), in the order of the text."""
    found: dict[str, Candidate] = {}
    spans = sorted([*parsed.entities, *_phrase_spans(parsed)], key=lambda s: (s[0], s[2] == "noun", s[1]))
    for candidate in _located(text, parsed, spans):
        if key := normalise(candidate.text):
            found.setdefault(key, candidate)
    return list(found.values())


def candidates(text: str, parsed: Parsed) -> list[Candidate]:
    """form=ours: the same without long answers and without parts of hyphenated words (the 0 of "0-0")."""
    found = []
    for candidate in all_candidates(text, parsed):
        end = candidate.start + len(candidate.text)
        hyphenated = "-" in (text[max(candidate.start - 1, 0) : candidate.start], text[end : end + 1])
        if not hyphenated and len(candidate.text.split()) <= LONGEST:
            found.append(candidate)
    return found


def first_sentences(text: str, parsed: Parsed) -> str:
    """The first five sentences as QuestEval 0.2.4 splits and joins them: a sentence ends where, after a full stop,
    exclamation or question mark, the next token begins that is not punctuation."""
    starts, ended = [0], False
    for i, word in enumerate(parsed.words):
        if ended and not all(unicodedata.category(c).startswith("P") for c in word.text):
            starts.append(i)
            ended = False
        elif word.text in (".", "!", "?"):
            ended = True
    bounds = list(pairwise([*starts, len(parsed.words)]))[:FIRST_SENTENCES]
    return " ".join(text[parsed.words[a].span[0] : parsed.words[b - 1].span[1]] for a, b in bounds if a < b)


def code_candidates(text: str, parsed: Parsed) -> list[Candidate]:
    """Answers as QuestEval 0.2.4 takes them: entities, then noun chunks, duplicates kept."""
    spans = [*parsed.entities, *((a, b, "noun") for a, b in parsed.phrases)]
    places = [(parsed.words[a].span[0], parsed.words[b - 1].span[1], kind) for a, b, kind in spans]
    return [Candidate(text[a:b], a, kind) for a, b, kind in places]


def spread(found: Sequence[Candidate], most: int) -> list[Candidate]:
    """At most this many candidates, evenly over the text (0: all)."""
    if not most or len(found) <= most:
        return list(found)
    return [found[(2 * i + 1) * len(found) // (2 * most)] for i in range(most)]


async def read_near(question: str, text: str, passages: int) -> Reading:
    """What a text answers to a question; of a long text, this many passages near the question are read (0: all)."""
    spans = near(text, question, passages) if passages else []
    if not spans or sum(b - a for a, b in spans) >= 0.9 * len(text.strip()):
        return await Read(question, text)
    reading = await Read(question, " ".join(text[a:b] for a, b in spans))
    return replace(reading, span=_in_whole_text(reading.span, spans))


def _in_whole_text(span: Span | None, spans: Sequence[Span]) -> Span | None:
    """A place in joined passages as a place in the whole text; None if it lies across two of them."""
    at = 0
    for a, b in spans:
        if span and at <= span[0] and span[1] <= at + b - a:
            return span[0] - at + a, span[1] - at + a
        at += b - a + 1
    return None


async def choose_answers(text: str, form: str) -> list[Candidate]:
    """The answers that questions are generated for."""
    parsed = await Parse(text)
    if form == "code":
        beginning = first_sentences(text, parsed)
        found = code_candidates(beginning, await Parse(beginning))
        return [replace(c, start=max(text.find(c.text), 0)) for c in found]
    return candidates(text, parsed) if form == "ours" else all_candidates(text, parsed)


async def generate_questions(text: str, recipe: Recipe) -> QuestionSet:
    """QG(T) of the paper (§3.2): questions about a text that pass the round-trip check."""
    found = await choose_answers(text, recipe.form)
    chosen = spread(found, recipe.most)
    variants: Sequence[tuple[str, ...]]
    if recipe.cloze:
        variants = [(cloze_question(text, c.text, c.start),) for c in chosen]
    else:
        whole = recipe.form == "code"
        variants = await together(*[Ask(text, c.text, c.start, recipe.beams, whole) for c in chosen])
    pairs = [(q, c) for c, questions in zip(chosen, variants, strict=True) for q in questions]
    if recipe.check == "off":
        return QuestionSet(tuple(GeneratedQuestion(q, c, c.text) for q, c in pairs), len(found), len(pairs))
    readings = await together(*[read_near(q, text, recipe.passages) for q, _ in pairs])
    kept = [
        GeneratedQuestion(q, c, r.answer)
        for (q, c), r in zip(pairs, readings, strict=True)
        if passes_round_trip(r.answer, c.text, recipe.check)
    ]
    return QuestionSet(tuple(kept), len(found), len(pairs))


def passes_round_trip(found: str, wanted: str, check: str) -> bool:
    """Did the text give the answer back: the same words, or at least half of them (F1)?"""
    return exact(found, wanted) if check == "exact" else f1(found, wanted) >= 0.5


def locate(text: str, words: str, start: int | None = None) -> Span | None:
    """Where an answer occurs in a text, for highlighting."""
    at = text.find(words) if start is None else start
    return (at, at + len(words)) if words and at >= 0 else None
