"""Comparing two short answers as SQuAD does: without case, punctuation and articles."""

from __future__ import annotations

import re
import unicodedata

from elench.text.ngrams import pool, shared_by_order
from elench.text.words import Words, words_squad


def normalise(answer: str) -> str:
    """Lower case, no punctuation, no a/an/the, single blanks."""
    return " ".join(words_squad(answer))


def exact(answer: str, gold: str) -> bool:
    """Are the two the same after normalising?"""
    return words_squad(answer) == words_squad(gold)


def f1(answer: str, gold: str) -> float:
    """Harmonic mean of word precision and recall; two empty answers agree, an empty one agrees with no other."""
    said, wanted = words_squad(answer), words_squad(gold)
    return token_f1(said, wanted) if said and wanted else float(said == wanted)


def token_f1(said: Words, wanted: Words) -> float:
    """2 · shared words / all words of both; 0 for two empty texts."""
    total = len(said) + len(wanted)
    return 2 * shared_by_order(said, pool(wanted), 1)[0] / total if total else 0.0


def agreement(answer: str, other: str) -> float:
    """F1 of answers from two texts, which may part words differently ("44-year-old", "44 - year - old"; "U.S.", "US"):
    marks are left out, as in SQuAD, or part words, whichever agrees better. é is é, in one character or two."""
    one, two = (unicodedata.normalize("NFKC", t) for t in (answer, other))
    return max(f1(one, two), f1(*(" ".join(re.findall(r"\w+", t)) for t in (one, two))))


ASKED = 40
"""Words of a question that stay with its answer, from the end, where people put what they ask."""


def with_question(question: str, answer: str) -> str:
    """The answer after its question; of a long question (a story, an experiment) only the end, or the answer would be
    the smaller part of what is compared."""
    return " ".join([*question.split()[-ASKED:], answer])


def holds(text: str, phrase: str) -> bool:
    """Does the phrase occur in the text, word for word, whatever its case and punctuation?"""
    inside, wanted = (" ".join(re.findall(r"\w+", t.casefold())) for t in (text, phrase))
    return bool(wanted) and f" {wanted} " in f" {inside} "
