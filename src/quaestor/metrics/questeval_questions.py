"""What QuestEval and its relatives share: choosing answers in a text, asking about them, checking by a round trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from quaestor.requests import Ask, Parse, Parsed, Read, Reading, Span, together
from quaestor.text.answers import exact, f1, normalise
from quaestor.text.passages import near

LONGEST = 8
"""Words of an answer, at most."""
FIRST_SENTENCES = 5
"""How far into a text the published code looks for answers."""
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
class Question:
    """A question made from a text, with the answer it was made for."""

    question: str
    answer: Candidate
    found: str
    """What the reader answers on the text the question was made from; the answer itself when nothing was checked."""


@dataclass(frozen=True)
class Asked:
    """The questions of a text: those kept, and how many there were before."""

    kept: tuple[Question, ...]
    candidates: int
    """Answers found in the text, before the cap."""
    written: int
    """Questions written, before the round trip."""


def _entity_spans(parsed: Parsed) -> list[tuple[int, int, str]]:
    return [e for e in parsed.entities if e[1] - e[0] <= LONGEST]


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
        if 0 < b - a <= LONGEST and any(w.pos in _NOUNS for w in parsed.words[a:b]):
            found.append((a, b, "noun"))
    found += [(i, i + 1, "noun") for i, w in enumerate(parsed.words) if i not in covered and w.pos in _NOUNS]
    return sorted(found)


def _texts(text: str, parsed: Parsed, spans: Sequence[tuple[int, int, str]]) -> list[Candidate]:
    places = [(parsed.words[a].span[0], parsed.words[b - 1].span[1], kind) for a, b, kind in spans]
    return [Candidate(text[a:b], a, kind) for a, b, kind in places if any(c.isalnum() for c in text[a:b])]


def candidates(text: str, parsed: Parsed) -> list[Candidate]:
    """Named entities and noun phrases of a text, each once (where it stands first), in the order of the text."""
    found: dict[str, Candidate] = {}
    spans = sorted([*_entity_spans(parsed), *_phrase_spans(parsed)], key=lambda s: (s[0], s[2] == "noun", s[1]))
    for candidate in _texts(text, parsed, spans):
        key = normalise(candidate.text)
        end = candidate.start + len(candidate.text)
        inside = "-" in (text[max(candidate.start - 1, 0) : candidate.start], text[end : end + 1])
        if key and not inside:  # the 0 of "0-0" is no answer
            found.setdefault(key, candidate)
    return list(found.values())


def code_candidates(text: str, parsed: Parsed) -> list[Candidate]:
    """Answers as QuestEval 0.2.4 takes them: first five sentences, entities, then noun chunks, duplicates kept."""
    last = parsed.sentences[:FIRST_SENTENCES][-1][1] if parsed.sentences else 0
    entities = [e for e in parsed.entities if e[1] <= last]
    phrases = [(a, b, "noun") for a, b in parsed.phrases if b <= last]
    return [*_texts(text, parsed, entities), *_texts(text, parsed, phrases)]


def spread(found: Sequence[Candidate], most: int) -> list[Candidate]:
    """At most so many candidates, evenly over the text (0: all)."""
    if not most or len(found) <= most:
        return list(found)
    return [found[(2 * i + 1) * len(found) // (2 * most)] for i in range(most)]


async def read(question: str, text: str, reads: int) -> Reading:
    """What a text says to a question; of a long text, so many passages near the question are read (0: all of it)."""
    spans = near(text, question, reads) if reads else []
    if not spans or sum(b - a for a, b in spans) >= 0.9 * len(text.strip()):
        return await Read(question, text)
    reading = await Read(question, " ".join(text[a:b] for a, b in spans))
    return replace(reading, span=_moved(reading.span, spans))


def _moved(span: Span | None, spans: Sequence[Span]) -> Span | None:
    """A place in joined passages as a place in the whole text; None if it lies across two of them."""
    at = 0
    for a, b in spans:
        if span and at <= span[0] and span[1] <= at + b - a:
            return span[0] - at + a, span[1] - at + a
        at += b - a + 1
    return None


async def ask(text: str, *, form: str, beams: int, most: int, check: str, reads: int = 0) -> Asked:
    """Questions about a text: QG(T) of the paper §3.2. `check`: exact, overlap or off (the round trip)."""
    parsed = await Parse(text)
    found = candidates(text, parsed) if form == "paper" else code_candidates(text, parsed)
    chosen = spread(found, most)
    variants = await together(*[Ask(text, c.text, c.start, beams) for c in chosen])
    pairs = [(q, c) for c, questions in zip(chosen, variants, strict=True) for q in questions]
    if form == "paper":  # the same question for two answers is asked once, for the first
        pairs = list({q: (q, c) for q, c in reversed(pairs)}.values())[::-1]
    if check == "off":
        return Asked(tuple(Question(q, c, c.text) for q, c in pairs), len(found), len(pairs))
    readings = await together(*[read(q, text, reads) for q, _ in pairs])
    kept = [
        Question(q, c, r.answer) for (q, c), r in zip(pairs, readings, strict=True) if returns(r.answer, c.text, check)
    ]
    return Asked(tuple(kept), len(found), len(pairs))


def returns(found: str, wanted: str, check: str) -> bool:
    """Did the round trip give the answer back: the same words, or at least half of them (F1)?"""
    return exact(found, wanted) if check == "exact" else f1(found, wanted) >= 0.5


def place(text: str, words: str, start: int | None = None) -> Span | None:
    """Where an answer stands in a text, for highlighting."""
    at = text.find(words) if start is None else start
    return (at, at + len(words)) if words and at >= 0 else None
