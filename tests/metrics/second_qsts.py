"""QSTS once more, for reading: straight from spaCy documents, one small step at a time, no vectorised tables.

`qsts(reference, candidate, vectors, form)` follows the paper in this order: names, edges, cube root; then what form=ours
changes; then the published code. It shares with the fast implementation only the list of stop words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from elench.metrics.qsts_edges import STOP_WORDS

Vectors = Callable[[str], Any]
NAMED = {"PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW", "LANGUAGE"}
IGNORED = {"det", "expl", "case", "preconj", "predet", "prep", "agent", "punct"}
UNIVERSAL = {
    "nsubjpass": "nsubj:pass", "csubjpass": "csubj:pass", "relcl": "acl:relcl", "dobj": "obj", "dative": "iobj",
}  # fmt: skip
NO_CONTENT = {"ADP", "AUX", "CCONJ", "DET", "PART", "PRON", "PUNCT", "SCONJ", "SPACE"}


def qsts(reference: Any, candidate: Any, vectors: Vectors, form: str = "paper") -> float:
    """Equation (1) for two spaCy documents of one class."""
    if form == "code":
        nesim, semsim = published_names(reference, candidate), published_edges(reference, candidate, vectors)
    elif form == "ours":
        nesim, semsim = names(reference, candidate), edges(reference, candidate, vectors)
    else:
        nesim, semsim = paper_names(reference, candidate), paper_edges(reference, candidate, vectors)
    return float((nesim * semsim) ** (1 / 3))


# --- the paper ---------------------------------------------------------------------------------------------------


def has_content(token: Any) -> bool:
    if token.pos_ in NO_CONTENT or not any(character.isalnum() for character in token.text):
        return False
    return token.text.lower().replace("’", "'") not in STOP_WORDS and token.lemma_.lower() not in STOP_WORDS


def in_a_name(token: Any) -> bool:
    return has_content(token) and (token.pos_ == "PROPN" or token.ent_type_ != "")


def paper_names(reference: Any, candidate: Any) -> float:
    """nesim: fraction of the reference's name tokens that are present in the candidate."""
    wanted = [t.text.lower() for t in reference if in_a_name(t)]
    present = [t.text.lower() for t in candidate]
    return sum(name in present for name in wanted) / len(wanted) if wanted else 1.0


def paper_triples(document: Any) -> list[tuple[Any, str, Any]]:
    """Edges between content words in universal dependencies: over a preposition, and to a copula's predicate."""
    found = []
    for token in document:
        if not has_content(token) or token.dep_ in IGNORED:
            continue
        head, relation = token.head, UNIVERSAL.get(token.dep_, token.dep_)
        while head.pos_ == "ADP" and not has_content(head) and head.head != head:
            head = head.head
        if not has_content(head) and head.lemma_.lower() == "be":
            predicates = [c for c in document if c.head == head and c.dep_ in ("attr", "acomp") and has_content(c)]
            if token.dep_ in ("attr", "acomp") or not predicates:
                continue
            head = predicates[0]
        if token.dep_ in ("pobj", "pcomp"):
            relation = "nmod" if head.pos_ in ("NOUN", "PROPN", "NUM", "PRON") else "obl"
        if has_content(head) and head != token:
            found.append((head, relation, token))
    return found


def paper_edges(reference: Any, candidate: Any, vectors: Vectors) -> float:
    """semsim: mean over the reference's edges of the best esim; 1 where there is none."""
    wanted, offered = paper_triples(reference), paper_triples(candidate)

    def esim(one: tuple[Any, str, Any], other: tuple[Any, str, Any]) -> float:
        if one[1] != other[1]:
            return 0.0
        sides = []
        for a, b in ((one[0], other[0]), (one[2], other[2])):
            same = float(a.text.lower() == b.text.lower())
            sides.append((in_a_name(a), same if in_a_name(a) else likeness(a, b, vectors)))
        (head_name, head), (tail_name, tail) = sides
        return head * tail if head_name or tail_name else (head + tail) / 2

    return sum(max((esim(e, o) for o in offered), default=0.0) for e in wanted) / len(wanted) if wanted else 1.0


# --- our improvements --------------------------------------------------------------------------------------------


def is_name(token: Any) -> bool:
    return has_content(token) and (token.pos_ == "PROPN" or token.ent_type_ in NAMED)


def spelling(token: Any) -> str:
    letters = [c for c in unicodedata.normalize("NFKD", token.text).casefold() if c.isalnum()]
    if len(letters) > 3 and letters[-1] == "s":
        letters.pop()
    return "".join(letters)


def names(reference: Any, candidate: Any) -> float:
    spoken = [spelling(t) for t in candidate if spelling(t)]
    spoken += [a + b for a, b in pairwise(spoken)]
    wanted = [spelling(t) for t in reference if is_name(t)]
    if not wanted:
        return 1.0
    found = 0
    for i, name in enumerate(wanted):
        with_next = i + 1 < len(wanted) and name + wanted[i + 1] in spoken
        with_last = i > 0 and wanted[i - 1] + name in spoken
        found += name in spoken or with_next or with_last
    return found / len(wanted)


def governor(token: Any, child: Any) -> Any:
    """The content word above `child`, looked for from `token` upwards."""
    if has_content(token):
        return token
    if token.lemma_.lower() == "be":
        if child.dep_ in ("attr", "acomp"):
            return None
        said = [
            c for c in token.doc if c.head == token and c != token and c.dep_ in ("attr", "acomp") and has_content(c)
        ]
        return said[0] if said else None
    if (token.pos_ == "ADP" or token.tag_.startswith("W")) and token.head != token:
        return governor(token.head, child)
    return None


def relation(token: Any) -> str:
    if token.dep_ in ("pobj", "pcomp"):
        return "prep"
    if token.dep_ in ("amod", "compound", "nmod"):
        return "mod"
    return {"nsubjpass": "nsubj", "csubjpass": "csubj", "relcl": "acl"}.get(token.dep_, token.dep_)


def triples(document: Any) -> list[tuple[Any, str, Any]]:
    found = []
    for token in document:
        skipped = token.dep_ in ("det", "expl", "case", "preconj", "predet", "prep", "agent", "punct")
        if has_content(token) and not skipped and token.head != token:
            above = governor(token.head, token)
            if above is not None:
                found.append((above, relation(token), token))
    return found


def likeness(a: Any, b: Any, vectors: Vectors) -> float:
    if a.lemma_.lower() == b.lemma_.lower() or a.text.lower() == b.text.lower():
        return 1.0
    cosine = float(vectors(a.text.lower()) @ vectors(b.text.lower()))
    return min(1.0, max(0.0, cosine))


def edges(reference: Any, candidate: Any, vectors: Vectors) -> float:
    """An edge found under another relation counts half."""
    wanted, offered = triples(reference), triples(candidate)
    if not wanted:
        return words(reference, candidate, vectors)
    total = 0.0
    for head, rel, tail in wanted:
        best = 0.0
        for head2, rel2, tail2 in offered:
            if is_name(head) and is_name(tail):
                value = float(spelling(head) == spelling(head2) and spelling(tail) == spelling(tail2))
            elif is_name(head):
                value = float(spelling(head) == spelling(head2)) * likeness(tail, tail2, vectors)
            elif is_name(tail):
                value = float(spelling(tail) == spelling(tail2)) * likeness(head, head2, vectors)
            else:
                value = (likeness(head, head2, vectors) + likeness(tail, tail2, vectors)) / 2
            best = max(best, value if rel == rel2 else value * 0.5)
        total += best
    return total / len(wanted)


def words(reference: Any, candidate: Any, vectors: Vectors) -> float:
    wanted, offered = [t for t in reference if has_content(t)], [t for t in candidate if has_content(t)]
    if not wanted:
        return 1.0
    total = 0.0
    for a in wanted:
        if is_name(a):
            total += any(spelling(a) == spelling(b) for b in offered)
        else:
            total += max((likeness(a, b, vectors) for b in offered), default=0.0)
    return total / len(wanted)


# --- the published code ------------------------------------------------------------------------------------------


def published_names(reference: Any, candidate: Any) -> float:
    wanted = [t.lemma_.lower() for t in reference if t.pos_ == "PROPN" or t.ent_type_]
    offered = [t.lemma_.lower() for t in candidate if t.pos_ == "PROPN" or t.ent_type_]
    return sum(name in offered for name in wanted) / len(wanted) if wanted else 1.0


def published_edges(reference: Any, candidate: Any, vectors: Vectors) -> float:
    labels = {"det", "expl", "goeswith", "possessive", "preconj", "predet", "prep", "punct", "ref"}
    total, valid = 0.0, 0
    for token in reference:
        head = "root" if token.head == token else token.head.lemma_.lower()
        tail = token.lemma_.lower()
        if token.dep_ in labels or head in STOP_WORDS or tail in STOP_WORDS:
            continue
        valid += 1
        best = 0.0
        for other in candidate:
            if other.dep_ != token.dep_:
                continue
            head2 = "root" if other.head == other else other.head.lemma_.lower()
            at_tail = _published_likeness(tail, other.lemma_.lower(), vectors)
            at_head = _published_likeness(head, head2, vectors)
            name_tail, name_head = token.pos_ == "PROPN", token.head != token and token.head.pos_ == "PROPN"
            if name_tail and name_head:
                value = float(tail == other.lemma_.lower() and head == head2)
            elif name_tail:
                value = at_head if tail == other.lemma_.lower() else 0.0
            elif name_head:
                value = at_tail if head == head2 else 0.0
            else:
                value = 0.5 * (at_tail + at_head)
            best = max(best, value)
        total += best
    return total / valid if valid else 1.0


def _published_likeness(a: str, b: str, vectors: Vectors) -> float:
    return 1.0 if a == b else float(vectors(a) @ vectors(b))
