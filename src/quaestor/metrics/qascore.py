"""QAScore (Ji et al. 2022): a question is good if its context and itself make its answer easy to say."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from quaestor.errors import Unscored
from quaestor.metrics import register
from quaestor.metrics.base import Metric, Score, param
from quaestor.metrics.roundtrip import readable
from quaestor.records import Record
from quaestor.requests import Continue, Read, Recover, TokenScores, together
from quaestor.text.answers import holds

ROLE = {
    "paper": "masked", "code": "masked", "causal": "causal", "gain": "causal", "reader": "reader", "overlap": "reader",
}  # fmt: skip
FLOOR = 1e-6
"""The least probability that a reader's form gives an answer it does not find, so that the logarithm stays finite."""


def prompt(context: str, question: str) -> str:
    """What the causal model reads before it says the answer."""
    return f"{context}\n\nQuestion: {question}\nAnswer:"


def prompt_without_question(context: str) -> str:
    """The same without the question: how easy the answer is to say from the context alone."""
    return f"{context}\n\nAnswer:"


def by_word(answer: str, scores: TokenScores) -> list[tuple[str, float]]:
    """Log-probability of each word of the answer: the sum over its pieces."""
    words = [(m.start(), m.end()) for m in re.finditer(r"\S+", answer)]
    totals = [0.0] * len(words)
    at = 0
    for (start, end), logprob in zip(scores.spans, scores.logprobs, strict=True):
        middle = max(start, end - 1)  # a piece often begins with the blank before its word
        while at + 1 < len(words) and middle >= words[at + 1][0]:
            at += 1
        totals[at] += logprob
    return [(answer[a:b], total) for (a, b), total in zip(words, totals, strict=True)]


@register
@dataclass(frozen=True)
class QAScore(Metric):
    """Does a question lead to its answer: how probable a language model finds the answer, given context and question.

    QAScore = sum over the answer's words of log p(word | context, question) (equations 6–8). form=reader is equation
    (6) with an extractive reader: the log-probability of the answer's span. form=overlap, the default, is the logarithm
    of the F1 that the reader's answer is expected to have with the intended one: a longer or shorter span counts in
    part. A question that names its answer, without "or", does not ask for it and gets the least score. Of the forms
    that run offline it follows people best (docs/results/qrelscore.md). form=paper masks one whole word of the answer
    at a time in `context <sep> question <sep> answer` and asks a masked model. form=causal is equation (6) with a
    causal language model: the answer after the prompt "CONTEXT, blank line, Question: QUESTION, new line, Answer:".
    form=gain subtracts the same without the question, log p(answer | context): what the question adds. form=code is
    the authors' program: one mask per piece, the mean log-probability over all positions, last 512 ids, mean over
    masks.
    """

    name: ClassVar[str] = "qascore"
    judges: ClassVar[tuple[str, ...]] = ("question",)
    reads: ClassVar[tuple[str, ...]] = ("context", "answer")
    roles: ClassVar[tuple[str, ...]] = ("reader", "causal", "masked")
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    citation: ClassVar[str] = "Ji, Lyu, Jones, Zhou, Graham: QAScore. Entropy 24(11), 2022."
    limits: ClassVar[str] = (
        "Sums fall with the answer's length, so reduce=sum ranks questions about one answer, not questions about "
        "different answers: use reduce=mean there. Says little about fluency or conciseness. The reader's forms know "
        "only answers that stand in the context. See docs/results/qrelscore.md."
    )
    example: ClassVar[dict[str, Any]] = {
        "judge": "question",
        "context": "Jack drove his car to the bazaar to purchase milk and honey for his large family.",
        "question": "Where did Jack buy his milk and honey?",
        "answer": "the bazaar",
    }
    form: str = param("overlap", "which form of the score", ("overlap", "reader", "paper", "causal", "gain", "code"))
    reduce: str = param("sum", "sum over the answer's words, or their mean", ("sum", "mean"))

    def roles_needed(self) -> tuple[str, ...]:
        return (ROLE[self.form],)

    async def score(self, record: Record) -> Score:
        question, context = self.candidate(record), self.text(record, "context")
        answer = self.text(record, "answer").strip()
        if ROLE[self.form] == "reader":
            return await self._by_reader(context, question, answer)
        if self.form == "code":
            masks = await Recover(context, question, answer, "code")
            _some(masks)
            pieces = [[piece, value] for piece, value in zip(masks.pieces, masks.logprobs, strict=True)]
            return Score(masks.total / len(masks.logprobs), {"pieces": pieces, "tokens cut": masks.cut})
        if self.form == "paper":
            found = await Recover(context, question, answer)
            words = list(zip(found.pieces, found.logprobs, strict=True))
        elif self.form == "causal":
            found = await Continue(prompt(context, question), f" {answer}")
            words = by_word(answer, _shifted(found))
        else:
            found, without = await together(
                Continue(prompt(context, question), f" {answer}"),
                Continue(prompt_without_question(context), f" {answer}"),
            )
            pairs = zip(by_word(answer, _shifted(found)), by_word(answer, _shifted(without)), strict=True)
            words = [(word, after - before) for (word, after), (_, before) in pairs]
        _some(found)
        total = sum(value for _, value in words)
        value = total / len(words) if self.reduce == "mean" else total
        cut = {"tokens cut": found.cut} if found.cut else {}
        return Score(value, {"words": [[word, round(value, 4)] for word, value in words], **cut})

    async def _by_reader(self, context: str, question: str, answer: str) -> Score:
        reading = await Read(readable(question), context, gold=answer)
        if reading.gold is None or reading.overlap is None:
            raise Unscored(
                f"the answer does not stand in the context (or is longer than the reader reads at once): "
                f"form={self.form} cannot weigh it"
            )
        named = self.form == "overlap" and names_its_answer(question, answer)
        found = reading.gold if self.form == "reader" else 0.0 if named else reading.overlap
        value = math.log(max(found, FLOOR))
        evidence = {
            "probability": reading.gold,
            "expected overlap": reading.overlap,
            "reader's answer": reading.answer,
            "unanswerable": reading.unanswerable,
        }
        if named:
            evidence["note"] = "the answer stands in the question"
        return Score(value / len(answer.split()) if self.reduce == "mean" else value, evidence)


def names_its_answer(question: str, answer: str) -> bool:
    """Does the answer stand in the question without being one of a choice ("A or B")?"""
    return holds(question, answer) and not holds(question, "or")


def _some(scores: TokenScores) -> None:
    if not scores.logprobs:
        raise Unscored("the answer has no scorable token")


def _shifted(scores: TokenScores) -> TokenScores:
    """Spans in the answer itself: the target began with a blank."""
    spans = tuple((max(a - 1, 0), max(b - 1, 0)) for a, b in scores.spans)
    return replace(scores, spans=spans)
