"""What QSTS sees of a parsed text: its names and its dependency edges between content words; and how they are matched.

The paper's parser writes universal dependencies, the embedded one older labels in which a preposition comes between
two nouns and a copula heads its sentence. Edges are therefore read *through* prepositions and copulas, as universal
dependencies have them: "the brother of Vincent" gives (brother, nmod, Vincent).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from elench.requests import Floats, Parsed, Word
from elench.text.wordlists import QSTS_STOP_WORDS as STOP_WORDS

IGNORED: Mapping[str, tuple[str, ...]] = {
    "det": ("det",),
    "expl": ("expl",),
    "goeswith": (),
    "possessive": ("case",),
    "preconj": ("preconj",),
    "predet": ("predet",),
    "prep": ("prep", "agent"),
    "punct": ("punct",),
    "ref": (),
}
"""The nine labels the authors ignore (old Stanford scheme) and what the embedded parser emits for each.

It never joins broken words (goeswith) nor links a relative pronoun to its noun (ref). `possessive` is the 's itself.
"""
SKIPPED = frozenset(label for labels in IGNORED.values() for label in labels)
UNIVERSAL = {
    "nsubjpass": "nsubj:pass", "csubjpass": "csubj:pass", "relcl": "acl:relcl", "dobj": "obj", "dative": "iobj",
}  # fmt: skip
"""The embedded parser's labels that universal dependencies spell otherwise; prepositional phrases: see `_relation`."""
KINDRED = {
    "nsubjpass": "nsubj", "csubjpass": "csubj", "relcl": "acl", "pobj": "prep", "pcomp": "prep",
    "amod": "mod", "compound": "mod", "nmod": "mod",
}  # fmt: skip
"""form=ours, relations that count as one: active and passive subjects, clauses and plain words that modify a noun, and
whatever follows a preposition. Parsers differ on these finer labels, and so do paraphrases."""
PREDICATES = ("attr", "acomp")
"""What a copula says of its subject."""
NAMES = frozenset("PERSON NORP FAC ORG GPE LOC PRODUCT EVENT WORK_OF_ART LAW LANGUAGE".split())  # noqa: SIM905
"""form=ours, entity types that are names; dates and quantities are words like any other."""
FUNCTION = frozenset("ADP AUX CCONJ DET PART PRON PUNCT SCONJ SPACE".split())  # noqa: SIM905


@dataclass(frozen=True)
class Term:
    """One end of an edge."""

    text: str
    """Lower-cased; what the word vectors are asked for."""
    lemma: str
    key: str
    """What names are compared by."""
    name: bool

    def __str__(self) -> str:
        return self.text


ROOT = Term("root", "root", "root", False)
"""What the published code puts above a root."""


@dataclass(frozen=True)
class Edge:
    """A dependent word, its relation, and the word it depends on."""

    tail: Term
    relation: str
    head: Term

    def __str__(self) -> str:
        return f"{self.head.text} –{self.relation}→ {self.tail.text}"


@dataclass(frozen=True)
class Outline:
    """A text as QSTS compares it."""

    names: tuple[Term, ...]
    known: frozenset[str]
    """Keys of the words among which a name is looked for."""
    joined: frozenset[str]
    """form=ours, the same words and each with its neighbour: Spider-Man, Spider Man and Spiderman are one name."""
    edges: tuple[Edge, ...]
    """All edges that may be matched."""
    wanted: tuple[Edge, ...]
    """Those that count when this text is the reference."""
    content: tuple[Term, ...]

    def words(self) -> set[str]:
        """Everything the word vectors are needed for."""
        return {t.text for e in self.edges for t in (e.head, e.tail)} | {t.text for t in self.content}


@dataclass(frozen=True)
class Match:
    """An edge of the reference (or a word of it, where it has no edges) and its best counterpart."""

    wanted: Edge | Term
    found: Edge | Term | None
    similarity: float

    def shown(self) -> dict[str, str | float | None]:
        """As evidence."""
        found = None if self.found is None else str(self.found)
        return {"wanted": str(self.wanted), "found": found, "similarity": round(self.similarity, 4)}


def name_key(text: str) -> str:
    """form=ours, what a name is compared by: no case, accents, dots, hyphens or possessive ending."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(c for c in plain if c.isalnum())
    return plain[:-1] if len(plain) > 3 and plain.endswith("s") else plain


def _stop(word: Word) -> bool:
    return word.text.lower().replace("’", "'") in STOP_WORDS or word.lemma.lower() in STOP_WORDS


def is_content(word: Word) -> bool:
    """Does this word carry meaning of its own?"""
    return word.pos not in FUNCTION and any(c.isalnum() for c in word.text) and not _stop(word)


def is_name(word: Word) -> bool:
    """Is this word (part of) a name: a proper noun, or a content word with any named-entity tag (footnote 5)?"""
    return is_content(word) and (word.pos == "PROPN" or bool(word.entity))


def is_named_thing(word: Word) -> bool:
    """form=ours: a proper noun or a content word of a named thing, not of a date or quantity."""
    return is_content(word) and (word.pos == "PROPN" or word.entity in NAMES)


def outline(parsed: Parsed, form: str) -> Outline:
    """The names, edges and content words of a parsed text."""
    if form == "code":
        return _as_published(parsed.words)
    words, ours = parsed.words, form == "ours"
    named, key = (is_named_thing, name_key) if ours else (is_name, str.lower)
    terms = [Term(w.text.lower(), w.lemma.lower(), key(w.text), named(w)) for w in words]
    content = [is_content(word) for word in words]
    keys = [t.key for t in terms if t.key]
    joined = frozenset([*keys, *(a + b for a, b in pairwise(keys))]) if ours else frozenset()
    edges = []
    for i, word in enumerate(words):
        if content[i] and word.relation not in SKIPPED:
            head = _anchor(i, words, content, through_question_words=ours)
            if head is not None:
                relation = KINDRED.get(word.relation, word.relation) if ours else _relation(word, words[head])
                edges.append(Edge(terms[i], relation, terms[head]))
    names = tuple(t for t in terms if t.name)
    content_terms = tuple(t for t, c in zip(terms, content, strict=True) if c)
    return Outline(names, frozenset(keys), joined, tuple(edges), tuple(edges), content_terms)


def _relation(word: Word, head: Word) -> str:
    """The relation as universal dependencies name it: a prepositional phrase modifies a noun (nmod) or not (obl)."""
    if word.relation in ("pobj", "pcomp"):
        return "nmod" if head.pos in ("NOUN", "PROPN", "NUM", "PRON") else "obl"
    return UNIVERSAL.get(word.relation, word.relation)


def _anchor(i: int, words: Sequence[Word], content: Sequence[bool], through_question_words: bool) -> int | None:
    """The content word that word i depends on, read through prepositions and copulas."""
    at, below = words[i].head, i
    while at != below:
        if content[at]:
            return at
        if words[at].lemma.lower() == "be":
            if words[i].relation in PREDICATES:
                return None
            predicates = (k for k, w in enumerate(words) if w.head == at and w.relation in PREDICATES)
            return next((k for k in predicates if content[k]), None)
        if words[at].pos != "ADP" and not (through_question_words and words[at].tag.startswith("W")):
            return None
        at, below = words[at].head, at
    return None


def _as_published(words: Sequence[Word]) -> Outline:
    """The published code's reading: lemmas, any entity a name, every edge as parsed, roots included."""
    terms = [Term(w.lemma.lower(), w.lemma.lower(), w.lemma.lower(), w.pos == "PROPN") for w in words]
    names = tuple(t for t, w in zip(terms, words, strict=True) if w.pos == "PROPN" or w.entity)
    edges = tuple(
        Edge(terms[i], word.relation, ROOT if word.head == i else terms[word.head]) for i, word in enumerate(words)
    )
    wanted = tuple(
        e
        for e in edges
        if e.relation not in IGNORED and e.tail.lemma not in STOP_WORDS and e.head.lemma not in STOP_WORDS
    )
    return Outline(names, frozenset(t.lemma for t in names), frozenset(), edges, wanted, ())


def missing_names(reference: Outline, candidate: Outline) -> list[Term]:
    """Name tokens of the reference that the candidate does not have; where `joined` is filled, neither alone nor
    written together with their neighbour."""
    names = reference.names
    together = [k for k, (a, b) in enumerate(pairwise(names)) if a.key + b.key in candidate.joined]
    found = {i for k in together for i in (k, k + 1)}
    return [t for k, t in enumerate(names) if t.key not in candidate.known | candidate.joined and k not in found]


class Similarity:
    """Similarity of two words: 1 for equal lemmas, else the cosine of their vectors, 0 for unknown words."""

    def __init__(self, words: Sequence[str], vectors: Floats, form: str) -> None:
        self.place = {word: i for i, word in enumerate(words)}
        self.table = vectors @ vectors.T
        if form != "code":
            self.table = np.clip(self.table, 0.0, 1.0)

    def __call__(self, a: Term, b: Term) -> float:
        if a.lemma == b.lemma or a.text == b.text:
            return 1.0
        return float(self.table[self.place[a.text], self.place[b.text]])

    def edges(self, wanted: Edge, found: Edge) -> float:
        """Mean of both ends; a name must be the same and then leaves the other end's similarity (paper §2)."""
        (h, h2), (t, t2) = (wanted.head, found.head), (wanted.tail, found.tail)
        if (h.name and h.key != h2.key) or (t.name and t.key != t2.key):
            return 0.0
        if h.name or t.name:
            return 1.0 if h.name and t.name else self(t, t2) if h.name else self(h, h2)
        return (self(h, h2) + self(t, t2)) / 2


def match_edges(reference: Outline, candidate: Outline, similar: Similarity, other: float) -> list[Match]:
    """Each edge of the reference with the candidate's best edge; one of another relation counts `other` times as much.

    The paper's δ is other = 0.
    """
    matches = []
    for wanted in reference.wanted:
        best, found = 0.0, None
        for edge in candidate.edges:
            weight = 1.0 if edge.relation == wanted.relation else other
            if weight > best and (value := weight * similar.edges(wanted, edge)) > best:
                best, found = value, edge
        matches.append(Match(wanted, found, best))
    return matches


def match_words(reference: Outline, candidate: Outline, similar: Similarity) -> list[Match]:
    """Each content word of the reference with the candidate's most similar one; a name must be the same."""
    matches = []
    for wanted in reference.content:
        best, found = 0.0, None
        for term in candidate.content:
            value = float(wanted.key == term.key) if wanted.name else similar(wanted, term)
            if value > best:
                best, found = value, term
        matches.append(Match(wanted, found, best))
    return matches
