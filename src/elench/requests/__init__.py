"""How a metric asks, and the few questions it may put to a model.

A request is a frozen, hashable value. A metric awaits it and goes on with the typed answer:

    reading = await Read(record.question, record.context)
"""

from __future__ import annotations

from elench.requests.asking import Failure, Request, attempt, result_of, together, whichever
from elench.requests.questions import (
    LAST,
    Ask,
    BackTranslate,
    Baseline,
    Choice,
    Choose,
    Classify,
    ClassifyQuestion,
    Continue,
    Embed,
    Floats,
    Generate,
    Importance,
    Parse,
    Parsed,
    QuestionClass,
    Rate,
    Read,
    Reading,
    Recover,
    Relate,
    Relevance,
    TokenScores,
    TokenVectors,
    Translate,
    Weigh,
    Word,
    WordVectors,
    WordWeights,
)
from elench.text.words import Span

__all__ = [
    "LAST",
    "Ask",
    "BackTranslate",
    "Baseline",
    "Choice",
    "Choose",
    "Classify",
    "ClassifyQuestion",
    "Continue",
    "Embed",
    "Failure",
    "Floats",
    "Generate",
    "Importance",
    "Parse",
    "Parsed",
    "QuestionClass",
    "Rate",
    "Read",
    "Reading",
    "Recover",
    "Relate",
    "Relevance",
    "Request",
    "Span",
    "TokenScores",
    "TokenVectors",
    "Translate",
    "Weigh",
    "Word",
    "WordVectors",
    "WordWeights",
    "attempt",
    "result_of",
    "together",
    "whichever",
]
