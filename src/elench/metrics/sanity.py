"""Sanity baselines: the cheapest ideas, which a clever metric must beat."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.errors import Unscored
from elench.metrics import Metric, ReferenceMetric, Score, param, register
from elench.records.record import Record
from elench.text.ngrams import grams
from elench.text.unspaced import is_unspaced
from elench.text.wordlists import FUNCTION_WORDS
from elench.text.words import Words, words_plain

SOURCE = "a sanity baseline of elench"
QUESTION: Mapping[str, object] = {
    "context": "The lighthouse on Gull Rock was built in 1874 by the engineer Ada Marsh, who lived there.",
    "question": "Which engineer built the lighthouse on Gull Rock?",
    "answer": "Ada Marsh",
    "judge": "question",
}
SUMMARY: Mapping[str, object] = {
    "context": "The council voted on Tuesday to plant four hundred trees along the canal. Work begins in March, and "
    "the trees were chosen because their roots keep the banks firm.",
    "summary": "The council will plant four hundred trees along the canal to keep the banks firm.",
}


def scorable(text: str, what: str) -> Words:
    """The words of a text; Unscored when it has none."""
    words = words_plain(text)
    if not words:
        raise Unscored(f"no scorable word in the {what}")
    return words


def content(words: Words) -> list[str]:
    """The words that are not function words."""
    return [word for word in words if word not in FUNCTION_WORDS]


@register
@dataclass(frozen=True)
class NovelF1(ReferenceMetric):
    """Token F1 of an answer in which words of the question and function words hardly count."""

    name: ClassVar[str] = "novel-f1"
    languages = ("en",)
    judges: ClassVar[tuple[str, ...]] = ("answer",)
    reads: ClassVar[tuple[str, ...]] = ("question", "references")
    citation: ClassVar[str] = f"{SOURCE}: what KPQA's learned keyphrase weights must beat"
    limits: ClassVar[str] = (
        "Knows no synonyms; an answer that must repeat the question's words (a choice of two) gets little for it."
    )
    example: ClassVar[Mapping[str, Any]] = {
        "question": "Why did the ferry not sail on Monday?",
        "answer": "The ferry did not sail because of strong wind.",
        "references": ["Strong wind kept the ferry in the harbour.", "Because the wind was too strong."],
        "judge": "answer",
    }
    weight: float = param(0.05, "weight of a function word or a word of the question; other words weigh 1")

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        own, other = Counter(scorable(candidate, "answer")), Counter(scorable(reference, "reference"))
        light = FUNCTION_WORDS | set(words_plain(self.text(record, "question")))

        def mass(counts: Counter[str]) -> float:
            return sum(times * (self.weight if word in light else 1.0) for word, times in counts.items())

        shared, total = own & other, mass(own) + mass(other)
        if not total:
            raise Unscored("no word has any weight")
        evidence = {"matched": sorted(word for word in shared if word not in light),
                    "matched_light": sorted(word for word in shared if word in light)}  # fmt: skip
        return Score(2 * mass(shared) / total, evidence)


@register
@dataclass(frozen=True)
class SourceOverlap(Metric):
    """Share of the summary's n-grams that occur in the source."""

    name: ClassVar[str] = "source-overlap"
    judges: ClassVar[tuple[str, ...]] = ("summary",)
    reads: ClassVar[tuple[str, ...]] = ("context",)
    citation: ClassVar[str] = f"{SOURCE}: what QuestEval must beat on consistency"
    limits: ClassVar[str] = (
        "Copying scores 1: it says nothing about summaries in their own words, and nothing about what is left out."
    )
    example: ClassVar[Mapping[str, Any]] = SUMMARY
    n: int = param(2, "length of the n-grams", (1, 2, 3, 4, 5))

    async def score(self, record: Record) -> Score:
        summary = scorable(self.candidate(record), "summary")
        known = set(grams(scorable(self.text(record, "context"), "context"), self.n))
        own = list(grams(summary, self.n))
        if not own:
            raise Unscored(f"the summary is shorter than {self.n} words")
        new = [" ".join(gram) for gram in own if gram not in known]
        return Score(1 - len(new) / len(own), {"not_in_source": new, "share": f"{len(own) - len(new)}/{len(own)}"})


@register
@dataclass(frozen=True)
class LeadOverlap(Metric):
    """Share of the content words at the beginning of the source that occur in the summary."""

    name: ClassVar[str] = "lead-overlap"
    languages = ("en",)
    judges: ClassVar[tuple[str, ...]] = ("summary",)
    reads: ClassVar[tuple[str, ...]] = ("context",)
    citation: ClassVar[str] = f"{SOURCE}: what QuestEval must beat on relevance and coherence"
    limits: ClassVar[str] = (
        "Trusts that the source says the main things first, as news does; longer summaries score higher."
    )
    example: ClassVar[Mapping[str, Any]] = SUMMARY
    words: int = param(120, "how many words of the source count as its beginning")

    async def score(self, record: Record) -> Score:
        summary = set(scorable(self.candidate(record), "summary"))
        lead = set(content(words_plain(" ".join(self.text(record, "context").split()[: self.words]))))
        if not lead:
            raise Unscored("no content word at the beginning of the context")
        found = lead & summary
        return Score(len(found) / len(lead), {"found": sorted(found), "missing": sorted(lead - summary)})


@register
@dataclass(frozen=True)
class Length(Metric):
    """How many words the text has."""

    name: ClassVar[str] = "length"
    judges: ClassVar[tuple[str, ...]] = ("question", "answer", "summary")
    reads: ClassVar[tuple[str, ...]] = ()
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    citation: ClassVar[str] = f"{SOURCE}: raters and metrics alike follow length more than they should"
    limits: ClassVar[str] = (
        "Says nothing about quality; shows how much of another metric's agreement with people is length."
    )
    example: ClassVar[Mapping[str, Any]] = QUESTION
    judge: str = param("", "which text is judged; default: the record's own", ("", "question", "answer", "summary"))

    async def score(self, record: Record) -> Score:
        return Score(float(len(scorable(self.candidate(record), self.judged(record)))))


@register
@dataclass(frozen=True)
class AnswerLeak(Metric):
    """0 if the answer occurs in the question, else 1."""

    name: ClassVar[str] = "answer-leak"
    judges: ClassVar[tuple[str, ...]] = ("question",)
    reads: ClassVar[tuple[str, ...]] = ("answer",)
    citation: ClassVar[str] = f"{SOURCE}: a question that gives its answer away asks nothing"
    limits: ClassVar[str] = "Only the answer's own words, in order, are found; nearly every question scores 1."
    example: ClassVar[Mapping[str, Any]] = QUESTION

    async def score(self, record: Record) -> Score:
        question = scorable(self.candidate(record), "question")
        answer = scorable(self.text(record, "answer"), "answer")
        leaks = bool(found(as_in(question, answer), question))
        return Score(0.0 if leaks else 1.0, {"leaked": " ".join(answer) if leaks else ""})


@register
@dataclass(frozen=True)
class NearAnswer(Metric):
    """Share of the question's content words that occur close to the answer in the context."""

    name: ClassVar[str] = "near-answer"
    languages = ("en",)
    judges: ClassVar[tuple[str, ...]] = ("question",)
    reads: ClassVar[tuple[str, ...]] = ("context", "answer")
    citation: ClassVar[str] = f"{SOURCE}: does the question ask about the place where its answer occurs?"
    limits: ClassVar[str] = (
        "The answer must occur in the context word for word; paraphrases and far-away clues count as misses."
    )
    example: ClassVar[Mapping[str, Any]] = QUESTION
    window: int = param(12, "how many words before and after the answer count as close")

    async def score(self, record: Record) -> Score:
        question = content(scorable(self.candidate(record), "question"))
        answer = scorable(self.text(record, "answer"), "answer")
        context = scorable(self.text(record, "context"), "context")
        if not question:
            raise Unscored("no content word in the question")
        answer = as_in(context, answer)
        places = found(answer, context)
        if not places:
            raise Unscored("the answer does not occur in the context")
        best: list[str] = []
        for place in places:
            close = set(context[max(place - self.window, 0) : place + len(answer) + self.window])
            near = [word for word in question if word in close]
            best = max(best, near, key=len)
        return Score(len(best) / len(question), {"near": best, "not_near": [w for w in question if w not in best]})


def as_in(whole: Words, part: Words) -> Words:
    """The words to look for: a name in Chinese script, cut by character alone, is one word of an English text."""
    name = "".join(part)
    characters = len(name) == len(part) > 1 and all(map(is_unspaced, part))
    return (name,) if characters and name in whole else part


def found(part: Words, whole: Words) -> list[int]:
    """Where `part` occurs in `whole`, word for word."""
    size = len(part)
    return [i for i in range(len(whole) - size + 1) if whole[i] == part[0] and whole[i : i + size] == part]
