"""support: does what a summary or an answer says follow from the context?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.errors import Unscored
from elench.metrics import Metric, Score, param, register
from elench.metrics.grounding import evidence, judge, read_source
from elench.records.record import Record
from elench.requests import together
from elench.text.passages import sentences
from elench.text.roots import is_stop_word, root, words_of
from elench.text.wordlists import FUNCTION_WORDS

LONG = 40
"""Words above which a sentence is split at its clauses."""
SHORT = 8
"""An answer's sentence below this many words is judged together with the question."""
CLAUSE = re.compile(r"; |, (?=(?:and|but|while|whereas|which|who|although|though|because|so)\b)")


def claims(text: str) -> list[str]:
    """The sentences of a text, long ones split at their clauses."""
    found: list[str] = []
    for a, b in sentences(text):
        sentence = text[a:b]
        parts = CLAUSE.split(sentence) if len(sentence.split()) > LONG else [sentence]
        found += [part.strip() for part in parts if re.search(r"\w", part)]
    return found


@register
@dataclass(frozen=True)
class Support(Metric):
    """Support: the mean probability that a sentence of the summary or answer follows from the context.

    Each sentence (long ones split at clauses) is compared with the passages of the context nearest to it by a model
    that tells supported, contradicted and not found apart. An answer is judged together with its question: "Who built
    it? Gustave Eiffel". What others call faithfulness or groundedness.

    The small model overlooks names, numbers and words that the context does not have at all. So the probability of a
    sentence is multiplied by the squared share of its content words that occur in the context (or the question) in
    some form; the evidence names the others.
    """

    name: ClassVar[str] = "support"
    judges: ClassVar[tuple[str, ...]] = ("summary", "answer")
    reads: ClassVar[tuple[str, ...]] = ("context",)
    roles: ClassVar[tuple[str, ...]] = ("encoder", "support")
    citation: ClassVar[str] = (
        "Entailment over passages after SummaC (Laban et al. 2022) and AlignScore (Zha et al. 2023), with elench's own "
        "small model."
    )
    limits: ClassVar[str] = (
        "A small model: it misses facts that need reasoning over several distant sentences, and can call a free "
        "paraphrase not found. It says nothing about what the summary leaves out."
    )
    example: ClassVar[dict[str, Any]] = {
        "context": "The Rhine rises in the Swiss Alps and flows into the North Sea.",
        "summary": "The Rhine flows into the North Sea.",
        "judge": "summary",
    }
    judge: str = param("", "which text is judged; default: the record's own field", ("", "summary", "answer"))
    reduce: str = param("mean", "several sentences: their mean, or the least supported one", ("mean", "min"))
    words: bool = param(True, "words that the context does not have lower the score; off: the model alone")

    async def score(self, record: Record) -> Score:
        text, context = self.candidate(record), self.text(record, "context")
        found = claims(text)
        if not found:
            raise Unscored("no word to judge")
        if self.judged(record) == "answer" and record.question:
            found = [f"{record.question} {c}" if len(found) == 1 or len(c.split()) < SHORT else c for c in found]
        source = await read_source(context)
        if not source.sentences:
            raise Unscored("no word in the context")
        verdicts = await together(*[judge(claim, source) for claim in found])
        shown = evidence(verdicts)
        known = roots(context) | roots(record.question or "")
        values = []
        for verdict, row in zip(verdicts, shown["sentences"], strict=True):
            content = [word for word, _ in words_of(verdict.claim) if is_content(word)] if self.words else []
            unknown = [word for word in content if root(word) not in known]
            if unknown:
                row["unknown_words"] = list(dict.fromkeys(unknown))
            values.append(verdict.supported * (1 - len(unknown) / max(1, len(content))) ** 2)
        return Score(min(values) if self.reduce == "min" else sum(values) / len(values), shown)


def is_content(word: str) -> bool:
    """Does a word carry content? A negation does not: whether it belongs is for the model to say."""
    return not (is_stop_word(word) or word.lower() in FUNCTION_WORDS or word.lower().endswith(("n't", "n’t")))


def roots(text: str) -> set[str]:
    """The words of a text, each by what it is compared by."""
    return {root(word) for word, _ in words_of(text)}
