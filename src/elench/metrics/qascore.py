"""QAScore (Ji et al. 2022): a question is good if its context and itself make its answer easy to say."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from elench.errors import Unscored, UsageError
from elench.metrics import register
from elench.metrics.base import Metric, Score, param
from elench.metrics.evidence import with_kinds
from elench.records.record import Record
from elench.requests import Continue, Recover, TokenScores

ROLE = {"paper": "masked", "code": "masked", "causal": "causal"}


def prompt(context: str, question: str) -> str:
    """What the causal model reads before it says the answer."""
    return f"{context}\n\nQuestion: {question}\nAnswer:"


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
    """Does a question lead to its answer: how well a language model recovers the answer from context and question.

    QAScore(Q) = Σ_{w ∈ A} l_w (12): l_w is the log-probability (9–11) that a masked language model, reading
    `context <sep> question <sep> answer` with the word w masked, gives to w. A word of several pieces is masked whole
    and counts the sum of its pieces. Choices the paper leaves open: words are what blanks separate, the input has the
    model's own first and last token around it (the program has none), and of a context longer than the model's window
    the part that supports the answer best counts. form=code is the authors' program: one mask per piece, the mean
    log-probability over *all* positions, the last 512 ids, the mean over masks. form=causal is P(a | p, q) of equation
    (6) with a causal language model: the answer after the prompt "CONTEXT, blank line, Question: QUESTION, new line,
    Answer:". Yes and no are answers like any other. The reader-based relative of this metric is `qa-overlap`.
    """

    name: ClassVar[str] = "qascore"
    judges: ClassVar[tuple[str, ...]] = ("question",)
    reads: ClassVar[tuple[str, ...]] = ("context", "answer")
    range: ClassVar[tuple[float, float]] = (-math.inf, 0.0)
    citation: ClassVar[str] = "Ji, Lyu, Jones, Zhou, Graham: QAScore. Entropy 24(11), 2022."
    limits: ClassVar[str] = (
        "Sums fall with the answer's length, so reduce=sum ranks questions about one answer, not questions about "
        "different answers: use reduce=mean there. The other words of the answer are visible while one is masked, so a "
        "long answer is half given away. Says little about fluency or conciseness. See docs/results/qrelscore.md."
    )
    example: ClassVar[dict[str, Any]] = {
        "judge": "question",
        "context": "Jack drove his car to the bazaar to purchase milk and honey for his large family.",
        "question": "Where did Jack buy his milk and honey?",
        "answer": "the bazaar",
    }
    form: str = param(
        "paper",
        "the paper's equations, what the authors' program computes, or a causal language model",
        ("paper", "code", "causal"),
    )
    reduce: str = param("sum", "sum over the answer's words (12), or their mean; not in form=code", ("sum", "mean"))

    def check(self) -> None:
        if self.form == "code" and self.reduce == "mean":
            raise UsageError("qascore[form=code]: the program takes the mean over masks; reduce does not apply")

    @property
    def roles(self) -> tuple[str, ...]:
        return (ROLE[self.form],)

    async def score(self, record: Record) -> Score:
        question, context = self.candidate(record), self.text(record, "context")
        answer = self.text(record, "answer")
        answer = answer if self.form == "code" else answer.strip()  # the program reads what it is given
        if self.form == "causal":
            found = await Continue(prompt(context, question), f" {answer}")
            words = by_word(answer, _without_blank(found))
        else:
            found = await Recover(context, question, answer, self.form)
            words = list(zip(found.pieces, found.logprobs, strict=True))
        if not found.logprobs:
            raise Unscored("the answer has no scorable token")
        total = sum(value for _, value in words)
        value = total if self.form != "code" and self.reduce == "sum" else total / len(words)
        unit = "pieces" if self.form == "code" else "words"
        evidence: dict[str, Any] = {unit: [[word, round(value, 4)] for word, value in words]}
        if found.cut:
            evidence["tokens cut"] = found.cut
        return Score(value, with_kinds(evidence, **{unit: "logprobs"}))


def _without_blank(scores: TokenScores) -> TokenScores:
    """Spans in the answer itself: the target began with a blank."""
    spans = tuple((max(a - 1, 0), max(b - 1, 0)) for a, b in scores.spans)
    return replace(scores, spans=spans)
