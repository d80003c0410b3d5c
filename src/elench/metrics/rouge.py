"""ROUGE: n-grams or word order that a text shares with its reference, as precision, recall and their F-measure."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.errors import Unscored, UsageError
from elench.metrics import Score, param, register
from elench.metrics.formulas import f_measure
from elench.metrics.lexical import LexicalMetric
from elench.records.record import Record
from elench.text.lcs import lcs_length, lcs_places
from elench.text.ngrams import pool, shared_by_order, shared_runs
from elench.text.treebank import words_coco
from elench.text.words import Words, words_rouge

COCO_BETA = 1.2
EXAMPLE: Mapping[str, Any] = {
    "context": "The ferry to the island was cancelled on Monday because of strong wind. About forty passengers spent "
    "the night in the village hall, where neighbours brought blankets and soup.",
    "summary": "The island ferry was cancelled because of wind, and passengers slept in the village hall.",
    "references": ["Strong wind cancelled the ferry on Monday; forty passengers spent the night in the village hall."],
}


def rouge_l(candidate: str, reference: str) -> float:
    """ROUGE-L F-measure of one text against one reference."""
    own, other = words_rouge(candidate), words_rouge(reference)
    # 2 P R / (P + R) with P = lcs / |own| and R = lcs / |other|
    return 2 * lcs_length(own, other) / (len(own) + len(other)) if own and other else 0.0


def _rouge_n(own: Words, other: Words, n: int) -> float:
    grams = max(len(own) - n + 1, 0) + max(len(other) - n + 1, 0)
    return 2 * shared_by_order(own, pool(other), n)[n - 1] / grams if grams else 0.0


@dataclass(frozen=True)
class Rouge(LexicalMetric):
    """What the members of the family share: rouge-score's words and F-measure."""

    citation: ClassVar[str] = "Lin 2004, ROUGE: A Package for Automatic Evaluation of Summaries; as rouge-score 0.1.2"
    limits: ClassVar[str] = (
        "Rewards the reference's words, not its meaning; blind to facts turned around. Only a–z and 0–9 are letters, "
        "as in rouge-score, so ü splits a word; other alphabets are cut by word, or by character where none is marked."
    )
    example: ClassVar[Mapping[str, Any]] = EXAMPLE
    stem: bool = param(False, "compare Porter stems instead of words")

    def words(self, text: str) -> Words:
        return words_rouge(text, self.stem)

    @abstractmethod
    def shares(self, candidate: Words, reference: Words) -> tuple[float, float, float]:
        """Matches, and what the candidate and the reference have to match."""

    def match(self, candidate: Words, reference: Words) -> float:
        matches, own, other = self.shares(candidate, reference)
        return 2 * matches / (own + other) if own + other else 0.0

    def evidence(self, candidate: Words, reference: Words) -> dict[str, Any]:
        matches, own, other = self.shares(candidate, reference)
        return {
            "matched": self.matched(candidate, reference),
            "precision": f"{matches:g}/{own:g}",
            "recall": f"{matches:g}/{other:g}",
        }

    def matched(self, candidate: Words, reference: Words) -> list[str]:
        return [reference[i] for i in lcs_places(reference, candidate)]


@dataclass(frozen=True)
class RougeN(Rouge):
    """ROUGE by n-grams."""

    order: ClassVar[int]

    def shares(self, candidate: Words, reference: Words) -> tuple[float, float, float]:
        n = self.order
        found = shared_by_order(candidate, pool(reference), n)[n - 1]
        return found, max(len(candidate) - n + 1, 0), max(len(reference) - n + 1, 0)

    def match(self, candidate: Words, reference: Words) -> float:
        if len(candidate) < self.order and len(reference) < self.order:
            raise Unscored(f"both texts are shorter than {self.order} words")
        return _rouge_n(candidate, reference, self.order)

    def matched(self, candidate: Words, reference: Words) -> list[str]:
        runs = shared_runs(candidate, pool(reference), len(candidate))
        return [run for run in runs if run.count(" ") >= self.order - 1]


@register
@dataclass(frozen=True)
class Rouge1(RougeN):
    """F-measure of the words that text and reference share."""

    name: ClassVar[str] = "rouge-1"
    order: ClassVar[int] = 1


@register
@dataclass(frozen=True)
class Rouge2(RougeN):
    """F-measure of the pairs of neighbouring words that text and reference share."""

    name: ClassVar[str] = "rouge-2"
    order: ClassVar[int] = 2


@register
@dataclass(frozen=True)
class RougeL(Rouge):
    """F-measure of the longest row of words that text and reference have in the same order."""

    name: ClassVar[str] = "rouge-l"
    dialect: str = param("rouge-score", "whose words and formula; coco: recall weighs 1.2", ("rouge-score", "coco"))

    def check(self) -> None:
        if self.dialect == "coco" and (self.stem or self.references != "max"):
            raise UsageError(f"{self}: the coco dialect has neither stem nor references")

    def words(self, text: str) -> Words:
        return words_coco(text) if self.dialect == "coco" else words_rouge(text, self.stem)

    def shares(self, candidate: Words, reference: Words) -> tuple[float, float, float]:
        return lcs_length(candidate, reference), len(candidate), len(reference)

    def match(self, candidate: Words, reference: Words) -> float:
        length = lcs_length(candidate, reference)
        if self.dialect == "coco":
            return f_measure(length / len(candidate), length / len(reference), COCO_BETA)
        return 2 * length / (len(candidate) + len(reference))

    async def score(self, record: Record) -> Score:
        """The COCO script takes the best precision and the best recall, even of two different references."""
        best = await super().score(record)
        texts = [words for words in map(self.words, self.given_references(record)) if words]
        if self.dialect != "coco" or len(texts) == 1:
            return best
        candidate = self.words(self.candidate(record))
        lengths = [lcs_length(candidate, text) for text in texts]
        recall = max(length / len(text) for length, text in zip(lengths, texts, strict=True))
        return Score(f_measure(max(lengths) / len(candidate), recall, COCO_BETA), best.evidence)


@register
@dataclass(frozen=True)
class RougeLsum(Rouge):
    """ROUGE-L per line, joined: for summaries with one sentence on each line."""

    name: ClassVar[str] = "rouge-lsum"

    def words(self, text: str) -> Words:
        """Words with a line break between the sentences."""
        lines = [words_rouge(line, self.stem) for line in text.split("\n") if line]
        words = [word for line in lines for word in (*line, "\n")][:-1]
        return tuple(words) if any(lines) else ()

    def match(self, candidate: Words, reference: Words) -> float:
        matches, own, other = self.shares(candidate, reference)
        return 2 * matches / (own + other)

    def shares(self, candidate: Words, reference: Words) -> tuple[float, float, float]:
        own, other = _lines(candidate), _lines(reference)
        return len(self.union(own, other)), sum(map(len, own)), sum(map(len, other))

    def matched(self, candidate: Words, reference: Words) -> list[str]:
        return self.union(_lines(candidate), _lines(reference))

    @staticmethod
    def union(own: list[Words], other: list[Words]) -> list[str]:
        """Union LCS (section 3.2): words of each reference line that any line matches, none more often than it is."""
        left_own = Counter(word for line in own for word in line)
        left_other = Counter(word for line in other for word in line)
        found: list[str] = []
        for line in other:
            for i in sorted({place for own_line in own for place in lcs_places(line, own_line)}):
                word = line[i]
                if left_own[word] > 0 and left_other[word] > 0:
                    left_own[word] -= 1
                    left_other[word] -= 1
                    found.append(word)
        return found


def _lines(words: Words) -> list[Words]:
    lines: list[list[str]] = [[]]
    for word in words:
        if word == "\n":
            lines.append([])
        else:
            lines[-1].append(word)
    return [tuple(line) for line in lines]
