"""METEOR: words aligned by form, stem and WordNet synonym, with a penalty for broken word order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.metrics import param, register
from elench.metrics.lexical import LexicalMetric
from elench.text.porter import stem
from elench.text.wordnet import synonyms
from elench.text.words import Words, words_nltk

Pairs = list[tuple[int, int]]
"""Place in the judged text, place in the reference."""


def align(candidate: Words, reference: Words, by_stem: bool = True) -> tuple[Pairs, Pairs, Pairs]:
    """Pairs of equal words, of equal stems among the rest, of synonyms among the rest of that, each from the end.

    With `by_stem`, synonyms are looked up for the stems that the second stage leaves, as nltk does: `larg` has none.
    """
    places: dict[str, list[int]] = {}
    for j, word in enumerate(reference):
        places.setdefault(word, []).append(j)
    exact, left = _take(list(enumerate(candidate)), places)
    if not left or len(exact) == len(reference):
        return exact, [], []
    stems: dict[str, list[int]] = {}
    for j in sorted(j for rest in places.values() for j in rest):
        stems.setdefault(stem(reference[j]), []).append(j)
    stemmed, left = _take([(i, stem(word)) for i, word in left], stems)
    if not by_stem:
        left = [(i, candidate[i]) for i, _ in left]
        free = sorted(j for rest in stems.values() for j in rest)
        stems = {reference[j]: [k for k in free if reference[k] == reference[j]] for j in free}
    return exact, stemmed, _take_synonyms(left, stems)


def _take_synonyms(words: list[tuple[int, str]], places: dict[str, list[int]]) -> Pairs:
    """Give each word, last first, the last free place with a synonym of it."""
    pairs: Pairs = []
    free = {word for word, rest in places.items() if rest}
    for i, word in reversed(words):
        found = synonyms(word) & free
        if found:
            nearest = max(found, key=lambda other: places[other][-1])
            pairs.append((i, places[nearest].pop()))
            if not places[nearest]:
                free.discard(nearest)
    return pairs


def _take(words: list[tuple[int, str]], places: dict[str, list[int]]) -> tuple[Pairs, list[tuple[int, str]]]:
    """Give each word, last first, its last free place; the pairs, and the words left without."""
    pairs: Pairs = []
    left: list[tuple[int, str]] = []
    for i, word in reversed(words):
        free = places.get(word)
        if free:
            pairs.append((i, free.pop()))
        else:
            left.append((i, word))
    left.reverse()
    return pairs, left


def chunks(pairs: Pairs) -> int:
    """Into how many runs, unbroken in both texts, the alignment falls."""
    ordered = sorted(pairs)
    return sum((i + 1, j + 1) != after for (i, j), after in zip(ordered, [*ordered[1:], None], strict=False))


def meteor_of(
    candidate: Words,
    reference: Words,
    alpha: float = 0.9,
    beta: float = 3.0,
    gamma: float = 0.5,
    by_stem: bool = True,
) -> float:
    """(1 - γ (chunks / matches)^β) · P R / (α P + (1 - α) R), Lavie and Agarwal 2007."""
    exact, stemmed, related = align(candidate, reference, by_stem)
    pairs = exact + stemmed + related
    if not pairs:
        return 0.0
    precision, recall = len(pairs) / len(candidate), len(pairs) / len(reference)
    mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
    return float((1 - gamma * (chunks(pairs) / len(pairs)) ** beta) * mean)


def words_meteor(text: str) -> Words:
    """nltk's words in lower case."""
    return words_nltk(text, True)


def meteor(candidate: str, reference: str) -> float:
    """METEOR of one text against one reference."""
    own, other = words_meteor(candidate), words_meteor(reference)
    return meteor_of(own, other) if own and other else 0.0


@register
@dataclass(frozen=True)
class Meteor(LexicalMetric):
    """Words aligned by form, stem or WordNet synonym: recall counts most, and broken word order costs."""

    name: ClassVar[str] = "meteor"
    languages = ("en",)
    citation: ClassVar[str] = "Banerjee and Lavie 2005; Lavie and Agarwal 2007; as nltk's meteor_score on WordNet 3.0"
    limits: ClassVar[str] = (
        "English only. Synonyms are WordNet's, whatever the sense meant. Not the Java METEOR 1.5, which also knows "
        "paraphrases and weighs function words less."
    )
    example: ClassVar[Mapping[str, Any]] = {
        "question": "Who purchased the old mill?",
        "references": ["Who bought the old mills?"],
        "judge": "question",
    }
    alpha: float = param(0.9, "weight of recall against precision")
    beta: float = param(3.0, "how steeply broken word order costs")
    gamma: float = param(0.5, "most that broken word order can cost")

    synonyms: str = param(
        "nltk", "look up stems, as nltk does, or the words themselves (finds more)", ("nltk", "words")
    )

    def words(self, text: str) -> Words:
        return words_meteor(text)

    def match(self, candidate: Words, reference: Words) -> float:
        return meteor_of(candidate, reference, self.alpha, self.beta, self.gamma, self.synonyms == "nltk")

    def evidence(self, candidate: Words, reference: Words) -> dict[str, Any]:
        stages = align(candidate, reference, self.synonyms == "nltk")
        named = dict(zip(("exact", "stem", "synonym"), stages, strict=True))
        return {
            **{name: [[candidate[i], reference[j]] for i, j in sorted(pairs)] for name, pairs in named.items()},
            "chunks": chunks([pair for pairs in stages for pair in pairs]),
            "precision": f"{sum(map(len, stages))}/{len(candidate)}",
            "recall": f"{sum(map(len, stages))}/{len(reference)}",
        }
