"""WordNet 3.0 without a download: synonyms, base forms and antonyms, from a table that ships with elench."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from elench.errors import UsageError

POS = ("n", "v", "a", "r")
"""Noun, verb, adjective, adverb."""
SHA256 = "084c349946a09315afd2fa0d4e4b3441bbf88617aff90e53ac4ff0f834f72c9a"
"""Of the unpacked table; see build_wordnet.py."""
ENDINGS = {
    "n": "s: ses:s ves:f xes:x zes:z ches:ch shes:sh men:man ies:y",
    "v": "s: ies:y es:e es: ed:e ed: ing:e ing:",
    "a": "er: est: er:e est:e",
    "r": "",
}
"""Inflected ending : base ending, per part of speech (WordNet's own morphology, morphy)."""
_RULES = {pos: [tuple(rule.split(":")) for rule in rules.split()] for pos, rules in ENDINGS.items()}


@dataclass(frozen=True)
class Tables:
    """The shipped table, indexed."""

    synsets: list[tuple[str, ...]]
    """Lemmas of each synset, spelt as WordNet spells them, words joined by _."""
    index: dict[str, dict[str, list[int]]]
    """Part of speech → lowercase lemma → numbers of its synsets, most frequent sense first."""
    irregular: dict[str, dict[str, list[str]]]
    opposites: dict[str, dict[str, set[str]]]


@cache
def tables() -> Tables:
    """The table, read once and checked by its hash."""
    path = Path(__file__).with_name("wordnet.txt.gz")
    text = gzip.decompress(path.read_bytes())
    if hashlib.sha256(text).hexdigest() != SHA256:
        raise UsageError(f"{path.name} is damaged (its sha256 differs): install elench again")
    synsets: list[tuple[str, ...]] = []
    index: dict[str, dict[str, list[int]]] = {pos: {} for pos in POS}
    irregular: dict[str, dict[str, list[str]]] = {pos: {} for pos in POS}
    opposites: dict[str, dict[str, set[str]]] = {pos: {} for pos in POS}
    for line in text.decode().splitlines()[1:]:
        kind, pos, *words = line.split(" ")
        if kind == "s":
            for lemma in {word.lower() for word in words}:
                index[pos].setdefault(lemma, []).append(len(synsets))
            synsets.append(tuple(words))
        elif kind == "o":
            senses = index[pos][words[0]]
            index[pos][words[0]] = [senses[int(place)] for place in words[1:]]
        elif kind == "x":
            irregular[pos][words[0]] = words[1:]
        else:
            opposites[pos].setdefault(words[0].lower(), set()).add(words[1])
            opposites[pos].setdefault(words[1].lower(), set()).add(words[0])
    return Tables(synsets, index, irregular, opposites)


def base_forms(word: str, pos: str) -> list[str]:
    """Lemmas that `word` may be a form of: itself, then irregular or regular base forms, if WordNet knows them."""
    known = tables()
    word = word.lower()
    forms = known.irregular[pos].get(word)
    if forms is None:
        forms = [word[: -len(old)] + new for old, new in _RULES[pos] if word.endswith(old)]
    return list(dict.fromkeys(form for form in (word, *forms) if form in known.index[pos]))


@lru_cache(maxsize=1 << 17)
def synonyms(word: str, pos: str = "") -> frozenset[str]:
    """Single words that share a synset with `word` (in part of speech `pos`, '' for any), itself included if known."""
    known = tables()
    return frozenset(
        lemma
        for p in (pos or POS)
        for form in base_forms(word, p)
        for synset in known.index[p][form]
        for lemma in known.synsets[synset]
        if "_" not in lemma
    )


def antonyms(word: str, pos: str = "") -> frozenset[str]:
    """Words of opposite meaning to `word` or its base form (in part of speech `pos`, '' for any)."""
    known = tables()
    return frozenset(
        opposite for p in (pos or POS) for form in base_forms(word, p) for opposite in known.opposites[p].get(form, ())
    )
