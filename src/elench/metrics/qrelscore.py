"""QRelScore (Wang et al. 2022): is a question relevant to its context, word by word and as a whole?"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

from elench.errors import Unscored, UsageError
from elench.metrics import register
from elench.metrics.base import Metric, Score, param
from elench.metrics.evidence import with_kinds
from elench.metrics.formulas import harmonic_mean
from elench.records.record import Record
from elench.requests import Baseline, Continue, Relate, Relevance, TokenScores, together, whichever

SEPARATORS = {"newline": "\n", "blank": " "}
CITATION = "Wang, Liu, Tang, Wu: QRelScore. EMNLP 2022."
FORM = param("paper", "the paper's equations, or what the authors' program computes", ("paper", "code"))
ATTENTION = param(
    "peak", "row divided by its peak, softmax values, or 1 at the peak (code form: hard)", ("peak", "raw", "hard")
)
AGGREGATE = param("max", "over the context's pieces (code form: max)", ("max", "mean", "mover"))
LAYERS = param("all", "all, first, middle, last (thirds), specific (4 evenly spaced) or numbers from 1: 1+3+6")
POWER = param(1.0, "exponent of the power mean over layers")
GAIN = param(
    "ratio", "relative gain (eq. 9), the same per word of the question, or absolute", ("ratio", "rate", "absolute")
)
SEPARATOR = param("newline", "between question and context in GRG's prompt (the paper does not say)", tuple(SEPARATORS))
RESCALE = param("off", "off, on, or the name of a data set given to `elench baselines`")
EXAMPLE = {
    "judge": "question",
    "context": "Jack drove his car to the bazaar to purchase milk and honey for his large family.",
    "question": "Where did Jack buy his milk and honey?",
    "references": ["Where did Jack get the milk and the honey?"],
}


@dataclass(frozen=True)
class _Part(Metric):
    judges: ClassVar[tuple[str, ...]] = ("question",)
    reads: ClassVar[tuple[str, ...]] = ("context",)
    citation: ClassVar[str] = CITATION
    example: ClassVar[dict[str, Any]] = EXAMPLE

    async def score(self, record: Record) -> Score:
        return await self.relate(self.candidate(record), self.text(record, "context"))

    @abstractmethod
    async def relate(self, question: str, context: str) -> Score:
        """Score a question against a text: the context, or a reference question."""


async def local_relevance(question: str, context: str, metric: QRelScore | QRelLRM) -> tuple[float, Relevance]:
    """LRM: attention × cosine of question and context pieces, layer by layer (equations 2–4)."""
    code = metric.form == "code"
    attention, aggregate = ("hard", "max") if code else (metric.attention, metric.aggregate)
    found = await Relate(question, context, attention, aggregate, metric.form)
    if not found.pieces:
        raise Unscored("the question has no piece that takes part")
    chosen = [found.layers[i] for i in pick_layers(metric.layers, len(found.layers))]
    return power_mean(chosen, metric.p), found


def pick_layers(layers: str, count: int) -> list[int]:
    """Indices of the layers that a name or a list such as 1+3+6 denotes."""
    third = max(1, count // 3)
    named = {
        "all": range(count),
        "first": range(third),
        "middle": range(third, max(count - third, third + 1)) if count > 1 else range(count),
        "last": range(count - third, count),
        "specific": sorted({math.floor(k * (count - 1) / 3) for k in range(4)}),
    }
    if layers in named:
        return list(named[layers])
    chosen = [int(n) - 1 for n in layers.split("+")]
    if any(not 0 <= i < count for i in chosen):
        raise UsageError(f"layers={layers}: the encoder has layers 1 to {count}")
    return chosen


def power_mean(values: Sequence[float], p: float) -> float:
    """Equation 3; negative layer scores count as 0 unless p is 1."""
    if p == 1:
        return sum(values) / len(values)
    largest = max(0.0, *values)
    if not largest:
        return 0.0
    return float(largest * (sum((max(v, 0.0) / largest) ** p for v in values) / len(values)) ** (1 / p))


def check_layers(layers: str, p: float) -> None:
    if layers not in ("all", "first", "middle", "last", "specific") and not all(
        n.isdecimal() and int(n) > 0 for n in layers.split("+")
    ):
        raise UsageError(f"layers={layers}: all, first, middle, last, specific, or numbers from 1 such as 1+3+6")
    if p <= 0 or not math.isfinite(p):
        raise UsageError(f"p={p:g}: the exponent of the power mean must be above 0")


def check_form(metric: QRelScore | QRelLRM | QRelGRG) -> None:
    """The authors' program has one way of doing things; a parameter that would change nothing is refused."""
    fixed = ("attention", "aggregate", "gain", "separator")
    changed = [f.name for f in metric.parameters() if f.name in fixed and getattr(metric, f.name) != f.default]
    if metric.form == "code" and changed:
        raise UsageError(f"{metric.name}[form=code]: the program has no {' or '.join(changed)}; leave it out")


async def global_relevance(question: str, context: str, metric: QRelScore | QRelGRG) -> tuple[float, list[Any]]:
    """GRG: how much easier the context is to foresee once the question is known (equations 7–9)."""
    if metric.form == "code":
        base, prompted = await together(
            Continue("", context, end=True), Continue("", f"{question} {context}", end=True)
        )
        before, after = _mean_probability(base), _mean_probability(prompted)
        return max(0.0, (after - before) / before), [["mean probability", before, after]]
    gains, pieces = [], []
    prefix = question + SEPARATORS[metric.separator]
    for chunk in await chunks(prefix, context):
        base, prompted = await together(Continue("", chunk), Continue(prefix, chunk))
        if not base.logprobs:
            continue
        difference = prompted.total - base.total
        gain = difference / abs(base.total) if metric.gain != "absolute" and base.total else difference
        gains.append(max(gain, 0.0) / (len(question.split()) if metric.gain == "rate" else 1))
        pieces += [
            [piece, round(after - before, 4)]
            for piece, before, after in zip(base.pieces, base.logprobs, prompted.logprobs, strict=True)
        ]
    if not gains:
        raise Unscored("the context has no scorable token")
    return sum(gains) / len(gains), pieces


def _mean_probability(scores: TokenScores) -> float:
    return sum(math.exp(logprob) for logprob in scores.logprobs) / len(scores.logprobs)


async def chunks(prefix: str, context: str) -> list[str]:
    """The context whole where the language model reads it at once behind the prefix, else in equal parts that fit.

    A model says in how many overlapping parts, each half a window on, it read a text; `spans` tell where tokens begin.
    """
    scores = await Continue(prefix, context)
    count = math.ceil((scores.chunks + 1) / 2)
    if count <= 1:
        return [context]
    places = [round(k * len(scores.spans) / count) for k in range(1, count)]
    bounds = [0, *(scores.spans[k][0] for k in places), len(context)]
    return [context[a:b] for a, b in pairwise(bounds)]


def rescaled(value: float, baseline: float) -> float:
    """Equation 5: a rising straight line, so that no ranking changes. It means a score of at most 1; where unrelated
    pairs already have more (gain=absolute), only the zero moves."""
    return (value - baseline) / (1 - baseline) if baseline < 1 else value - baseline


LRM_KINDS = {"matches": ("matches", "layer")}


def _lrm_evidence(found: Relevance, layers: str) -> dict[str, object]:
    """Per question piece the context piece it matched best in the layers that count, how strongly and in which layer;
    per layer that counts its score."""
    counted = pick_layers(layers, len(found.layers))
    best = []
    for m, piece in enumerate(found.pieces):
        layer = max(counted, key=lambda k: found.strengths[k][m])
        best.append([piece, found.matches[layer][m], round(found.strengths[layer][m], 4), layer + 1])
    scores = {str(k + 1): round(found.layers[k], 5) for k in counted}
    return {"matches": best, "layers": scores, "chunks": found.chunks}


@register
@dataclass(frozen=True)
class QRelLRM(_Part):
    """Word-level relevance: how well each word of a question is matched in its context, layer by layer.

    LRM = power mean over layers of mean over question pieces of max over context pieces of attention × cosine
    (equations 2–4). It rewards questions that repeat the context's words; it does not see swapped names or negation.
    The paper does not say how attention is "normalised": by default each row is divided by its maximum over the
    context, special tokens left out. A context beyond the encoder's window is read in parts, whose scores are averaged.
    form=code: the last piece of question and context dropped, 1 at the row's peak, the pair cut at 512 pieces.
    """

    name: ClassVar[str] = "qrel-lrm"
    roles: ClassVar[tuple[str, ...]] = ("encoder",)
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    limits: ClassVar[str] = "Local matching only: a question with swapped names or a negation scores nearly as high."
    form: str = FORM
    attention: str = ATTENTION
    aggregate: str = AGGREGATE
    layers: str = LAYERS
    p: float = POWER
    rescale: str = RESCALE

    def check(self) -> None:
        check_layers(self.layers, self.p)
        check_form(self)

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        return () if self.rescale == "off" else (Baseline("encoder", unscaled(self), self.rescale),)

    async def relate(self, question: str, context: str) -> Score:
        value, found = await local_relevance(question, context, self)
        for baseline in self.baselines:
            value = rescaled(value, await baseline)
        return Score(value, with_kinds(_lrm_evidence(found, self.layers), **LRM_KINDS))


@register
@dataclass(frozen=True)
class QRelGRG(_Part):
    """Sentence-level relevance: how much knowing the question helps a language model to foresee the context.

    GRG = max((Conf_prompt - Conf_base) / |Conf_base|, 0) (equation 9), with Conf the sum of log-probabilities of the
    context's tokens. A context longer than the model's window is cut into equal chunks whose gains are averaged.
    """

    name: ClassVar[str] = "qrel-grg"
    roles: ClassVar[tuple[str, ...]] = ("causal",)
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    limits: ClassVar[str] = (
        "Longer questions foretell more of a context: the gain grows with question length (gain=rate divides by it). "
        "Values are small (often below 0.1) and comparable only under one language model; gain=absolute grows with "
        "the context, too."
    )
    form: str = FORM
    gain: str = GAIN
    separator: str = SEPARATOR
    rescale: str = RESCALE

    def check(self) -> None:
        check_form(self)

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        return () if self.rescale == "off" else (Baseline("causal", unscaled(self), self.rescale),)

    async def relate(self, question: str, context: str) -> Score:
        value, pieces = await global_relevance(question, context, self)
        for baseline in self.baselines:
            value = rescaled(value, await baseline)
        return Score(value, with_kinds({"gains": pieces}, gains="gains"))


@register
@dataclass(frozen=True)
class QRelScore(_Part):
    """Is a question relevant to its context: harmonic mean of word-level matching and sentence-level gain.

    QRelScore = 2 LRM GRG / (LRM + GRG) (equation 1), 0 when either is 0. Choices the paper leaves open: what
    "normalised" attention is (attention), what stands between question and context in GRG's prompt (separator), and
    that scores are not rescaled unless asked. form=code is what the authors' program does: the last piece of question
    and context dropped, hard attention, pairs cut at 512 pieces, mean *probabilities* over question and context.
    rescale=on moves the whole score along a straight line whose zero is the harmonic mean of both baselines, so that no
    ranking changes; rescaled=parts rescales the two parts first, as the paper writes it, which can change rankings.
    """

    name: ClassVar[str] = "qrelscore"
    roles: ClassVar[tuple[str, ...]] = ("encoder", "causal")
    limits: ClassVar[str] = (
        "Dominated by GRG, which is small and grows with the question's length; weak on whether the question fits its "
        "answer, which it never sees. The code form follows question length far more than relevance. See "
        "docs/results/qrelscore.md. The range is that of the defaults: gain=absolute has no upper bound, rescale=on "
        "goes below 0."
    )
    form: str = FORM
    attention: str = ATTENTION
    aggregate: str = AGGREGATE
    layers: str = LAYERS
    p: float = POWER
    gain: str = GAIN
    separator: str = SEPARATOR
    rescale: str = RESCALE
    rescaled: str = param(
        "score",
        "what is rescaled: the whole score, which changes no ranking, or both parts before their harmonic mean, as the "
        "paper writes it (appendix F)",
        ("score", "parts"),
    )

    def check(self) -> None:
        check_layers(self.layers, self.p)
        check_form(self)

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        return (
            ()
            if self.rescale == "off"
            else (
                Baseline("encoder", str(self.lrm()), self.rescale),
                Baseline("causal", str(self.grg()), self.rescale),
            )
        )

    def lrm(self) -> QRelLRM:
        """The word-level part with these parameters, not rescaled."""
        return QRelLRM(self.form, self.attention, self.aggregate, self.layers, self.p)

    def grg(self) -> QRelGRG:
        return QRelGRG(self.form, self.gain, self.separator)

    def joined(self, local: float, gain: float) -> float:
        """Equation 1, or the published program's version of it."""
        return 2 * local * gain / (local + gain + 1e-8) if self.form == "code" else harmonic_mean(local, gain)

    async def relate(self, question: str, context: str) -> Score:
        (local, found), (gain, pieces) = await together(
            local_relevance(question, context, self), global_relevance(question, context, self)
        )
        low, high = await together(*self.baselines) if self.baselines else (0.0, 0.0)
        if self.rescaled == "parts":
            value = self.joined(rescaled(local, low), rescaled(gain, high))
        else:
            value = rescaled(self.joined(local, gain), harmonic_mean(low, high))
        evidence = {"lrm": local, "grg": gain, **_lrm_evidence(found, self.layers), "gains": pieces}
        return Score(value, with_kinds(evidence, gains="gains", **LRM_KINDS))


@register
@dataclass(frozen=True)
class RefQRelScore(QRelScore):
    """QRelScore that also looks at reference questions: mean of the scores against context and best reference."""

    name: ClassVar[str] = "ref-qrelscore"
    reads: ClassVar[tuple[str, ...]] = ("context", "references")
    limits: ClassVar[str] = "As qrelscore; against a short reference the language-model part is noisy."

    async def score(self, record: Record) -> Score:
        question, references = self.candidate(record), self.given_references(record)
        whole, (places, others) = await together(
            self.relate(question, self.text(record, "context")),
            whichever(*[self.relate(question, r) for r in references]),
        )
        best = max(range(len(others)), key=lambda i: (others[i].value, -i))
        evidence = {
            "against context": whole.value, "against reference": others[best].value,
            "reference": references[places[best]], **whole.evidence, "in the reference": others[best].evidence,
        }  # fmt: skip
        kinds = {**whole.evidence["kinds"], "in the reference": "evidence"}
        return Score((whole.value + others[best].value) / 2, with_kinds(evidence, **kinds))


def unscaled(metric: QRelLRM | QRelGRG) -> str:
    """The spec of a part without its rescaling: the name its baseline is stored under."""
    return str(replace(metric, rescale="off"))
