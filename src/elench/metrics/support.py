"""support: does what a summary or an answer says follow from the context?"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.errors import Unscored
from elench.metrics import Metric, Score, param, register
from elench.metrics.grounding import evidence, judge, read_source
from elench.records.record import Record
from elench.requests import together
from elench.text.answers import with_question
from elench.text.one_sided import new_names, new_numbers
from elench.text.passages import sentences
from elench.text.roots import is_stop_word, root, words_of
from elench.text.wordlists import FUNCTION_WORDS

LONG = 40
"""Words above which a sentence is split at its clauses."""
SHORT = 8
"""An answer's sentence below this many words is judged together with the question."""
FACT, WORDS = 1.0, 2.0
"""How much a new name or number, and a sentence of new words only, lower a sentence's log-odds."""
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

    Each sentence (long ones split at clauses) is compared with the sentence of the context nearest to it, the three and
    the eight nearest, by a model that tells supported, contradicted and not found apart; the passage that supports it
    most counts. An answer is judged together with its question: "Who built it? Gustave Eiffel". What others call
    faithfulness or groundedness.

    The small model overlooks names, numbers and words that the context does not have at all. So the odds of a sentence
    are divided by e for each name or number that neither the context nor the question has, and by e² where none of its
    content words occurs there in any form (by less where some do); the evidence names them.
    """

    name: ClassVar[str] = "support"
    judges: ClassVar[tuple[str, ...]] = ("summary", "answer")
    reads: ClassVar[tuple[str, ...]] = ("context",)
    roles: ClassVar[tuple[str, ...]] = ("encoder", "support")
    citation: ClassVar[str] = (
        "Entailment over passages after SummaC (Laban et al. 2022) and AlignScore (Zha et al. 2023), with elench's own "
        "small model, which also learned from judged summaries of SummEdits and XSum."
    )
    limits: ClassVar[str] = (
        "A small model: it misses wrong names and swapped roles, facts that need reasoning over several distant "
        "sentences, and can call a free paraphrase not found. It says nothing about what the summary leaves out."
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
            found = [
                with_question(record.question, c) if len(found) == 1 or len(c.split()) < SHORT else c for c in found
            ]
        source = await read_source(context)
        if not source.sentences:
            raise Unscored("no word in the context")
        verdicts = await together(*[judge(claim, source) for claim in found])
        shown = evidence(verdicts)
        values = [verdict.supported for verdict in verdicts]
        if self.words:
            known = f"{context} {record.question or ''}"
            stems = roots(known)
            for i, row in enumerate(shown["sentences"]):
                lowered, new = doubt(row["sentence"], known, stems)
                values[i] = doubted(values[i], lowered)
                if new:
                    row["unknown_words"] = new
        return Score(min(values) if self.reduce == "min" else sum(values) / len(values), shown)


def doubt(claim: str, known: str, stems: set[str]) -> tuple[float, list[str]]:
    """How much names, numbers and words that the known text lacks lower a claim's log-odds, and which they are."""
    content = [word for word, _ in words_of(claim) if is_content(word)]
    new = [word for word in content if root(word) not in stems]
    facts = new_names(claim, known) + new_numbers(claim, known)
    return FACT * len(facts) + WORDS * len(new) / max(1, len(content)), list(dict.fromkeys([*new, *facts]))


def doubted(probability: float, by: float) -> float:
    """A probability with its log-odds lowered."""
    return probability / (probability + (1 - probability) * math.exp(by)) if probability > 0 else 0.0


def is_content(word: str) -> bool:
    """Does a word carry content? A negation does not: whether it belongs is for the model to say."""
    return not (is_stop_word(word) or word.lower() in FUNCTION_WORDS or word.lower().endswith(("n't", "n’t")))


def roots(text: str) -> set[str]:
    """The words of a text, each by what it is compared by."""
    return {root(word) for word, _ in words_of(text)}
