"""KPQA: answers judged by the words that carry them (Lee et al. 2021).

A keyphrase model gives each word of answer and reference the probability that it belongs to the keyphrase, given the
question (KPW, §3.1). BLEU-1, ROUGE-L and BERTScore are then computed with these weights (§3.2).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from elench.errors import Unscored, UsageError
from elench.metrics import register
from elench.metrics.base import ReferenceMetric, Score, param
from elench.metrics.evidence import with_kinds
from elench.metrics.formulas import f_measure, unit
from elench.records.record import Record
from elench.requests import Embed, TokenVectors, Weigh, WordWeights, together
from elench.text.roots import is_number, root, words_of

Array = npt.NDArray[np.float64]
CITATION = (
    "Lee, Yoon, Dernoncourt, Kim, Bui, Shin, Jung: KPQA: A Metric for Generative Question Answering Using Keyphrase "
    "Weights. NAACL 2021"
)
FORM = "the paper's equations, what its public program computes, or our improvements (docs/decisions/0009)"
UNLIKE = 0.25
"""form=ours: cosine of unlike words, the mean best cosine of content words between answers to different training
questions (MiniLM, layer 1); `python benchmarks/kpqa.py unlike` measures it."""
EXAMPLE = {
    "id": "figure-1",
    "judge": "answer",
    "question": "How many steps are involved in a hypothesis test?",
    "answer": "There are seven steps involved in a hypothesis test.",
    "references": ["Four steps are involved in a hypothesis test."],
}


@dataclass(frozen=True)
class Side:
    """One of the two texts: its words (pieces in the code form), what they are compared by, and their weights."""

    words: tuple[str, ...]
    keys: tuple[str, ...]
    weights: Array

    @property
    def total(self) -> float:
        return float(self.weights.sum())


def side(found: WordWeights, form: str) -> Side:
    """A weighed text as the metric sees it; without any weight at all, every word counts the same."""
    words, weights = (found.pieces, found.piece_weights) if form == "code" else (found.words, found.weights)
    keys = words if form == "code" else tuple(map(root if form == "ours" else str.lower, words))
    values = np.asarray(weights, dtype=np.float64)
    return Side(words, keys, values if values.sum() > 0 else np.ones(len(words)))


# --- the weighted kernels --------------------------------------------------------------------------------------------


def clipped(said: Side, wanted: Side) -> list[tuple[int, int]]:
    """Pairs of equal words, each used once; of a word said too often, its heaviest places count."""
    places: dict[str, list[int]] = {}
    for j, key in enumerate(wanted.keys):
        places.setdefault(key, []).append(j)
    pairs = []
    for i in sorted(range(len(said.keys)), key=lambda i: (-said.weights[i], i)):
        if left := places.get(said.keys[i]):
            pairs.append((i, left.pop(0)))
    return sorted(pairs)


def common_subsequence(said: Side, wanted: Side, longest: bool = False) -> list[tuple[int, int]]:
    """The common subsequence that weighs most on both sides together; or the heaviest of the longest ones."""
    shared = set(said.keys) & set(wanted.keys)
    rows = [i for i, key in enumerate(said.keys) if key in shared]
    columns = [j for j, key in enumerate(wanted.keys) if key in shared]
    if not rows:
        return []
    numbers = {key: n for n, key in enumerate(shared)}
    across = np.array([numbers[wanted.keys[j]] for j in columns])
    length = 2.0 * min(len(rows), len(columns)) + 1 if longest else 0.0  # one more word outweighs all weights together
    best = np.zeros((len(rows) + 1, len(columns) + 1))
    gains = []
    for r, i in enumerate(rows):
        equal = across == numbers[said.keys[i]]
        gains.append(np.where(equal, length + said.weights[i] + wanted.weights[columns], -np.inf))
        best[r + 1, 1:] = np.maximum.accumulate(np.maximum(best[r, 1:], best[r, :-1] + gains[r]))
    pairs, r, c = [], len(rows), len(columns)
    while r and c:
        if best[r, c] == best[r - 1, c - 1] + gains[r - 1][c - 1]:
            r, c = r - 1, c - 1
            pairs.append((rows[r], columns[c]))
        elif best[r, c] == best[r - 1, c]:
            r -= 1
        else:
            c -= 1
    return pairs[::-1]


def code_bleu(said: Side, wanted: Side) -> float:
    """The published program's BLEU-1: clipped, a word's weight is the mean over its places, brevity penalty."""
    mean: dict[str, float] = {}
    counts, allowed = Counter(said.keys), Counter(wanted.keys)
    for key, weight in zip(said.keys, said.weights, strict=True):
        mean[key] = mean.get(key, 0.0) + float(weight) / counts[key]
    correct = sum(min(n, allowed[key]) * mean[key] for key, n in counts.items())
    ratio = len(said.keys) / len(wanted.keys)
    return correct / said.total * (math.exp(1 - 1 / ratio) if ratio < 1 else 1.0)


def code_lcs(said: Side, wanted: Side) -> float:
    """The published program's LCS: equal pieces add the reference's weight on the diagonal, always."""
    best = [0.0] * (len(said.keys) + 1)
    for key, weight in zip(wanted.keys, wanted.weights, strict=True):
        row = [0.0]
        for j, other in enumerate(said.keys):
            row.append(best[j] + float(weight) if key == other else max(best[j + 1], row[-1]))
        best = row
    return best[-1]


# --- the metrics -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyphraseMetric(ReferenceMetric):
    """What the three metrics share: weights of both sides for one question, the best reference, the heat map."""

    judges: ClassVar[tuple[str, ...]] = ("answer",)
    roles: ClassVar[tuple[str, ...]] = ("keyphrases",)
    citation: ClassVar[str] = CITATION
    limits: ClassVar[str] = (
        "An answer right in other words is missed by the two lexical versions. The embedded keyphrase model is small "
        "and English, and made by elench's own recipe whatever the form; the paper's was trained on MS-MARCO as well. "
        "`elench train keyphrases --recipe paper` follows the paper."
    )
    example: ClassVar[Mapping[str, Any]] = EXAMPLE
    form: str = param("paper", FORM, ("paper", "code", "ours"))
    question: bool = param(True, "off: weights without the question (the paper's KP ablation)")

    @property
    def reads(self) -> tuple[str, ...]:
        return ("question", "references") if self.question else ("references",)

    def given_references(self, record: Record) -> tuple[str, ...]:
        """The references that hold a word."""
        found = tuple(r for r in super().given_references(record) if words_of(r))
        if not found:
            raise Unscored("no word in any reference")
        return found

    async def score(self, record: Record) -> Score:
        if not words_of(self.candidate(record)):
            raise Unscored("no word in the answer")
        return await super().score(record)

    async def sides(self, candidate: str, reference: str, record: Record) -> tuple[Side, Side]:
        """Both texts with the weights of their words."""
        asked = self.text(record, "question") if self.question else ""
        form = "code" if self.form == "code" else "paper"
        said, wanted = await together(Weigh(asked, candidate, form), Weigh(asked, reference, form))
        return side(said, self.form), side(wanted, self.form)


def evidence(said: Side, wanted: Side, pairs: Sequence[tuple[int, int, float]], **numbers: float) -> dict[str, Any]:
    """Words and weights of both sides, which matched (place, place, how alike), and the numbers on the way."""
    shown = {
        "answer_words": [[w, round(float(k), 4)] for w, k in zip(said.words, said.weights, strict=True)],
        "reference_words": [[w, round(float(k), 4)] for w, k in zip(wanted.words, wanted.weights, strict=True)],
        "matches": [[i, j, round(s, 4)] for i, j, s in pairs],
        "keywords": [w for w, k in zip(said.words, said.weights, strict=True) if k > 0.5],
        **{name: round(number, 6) for name, number in numbers.items()},
    }
    alignment = ("alignment", "answer_words", "reference_words")
    return with_kinds(shown, answer_words="weights", reference_words="weights", matches=alignment)


@register
@dataclass(frozen=True)
class Bleu1Kpqa(KeyphraseMetric):
    """Weighted share of the answer's words that the reference has too.

    P = Σ_i KPW_i I(i) / Σ_i KPW_i over the answer's words (eq. 1), each word of the reference used at most once.
    Words are equal as written, without case; form=ours compares them by root (steps = step, four = 4). form=code
    compares wordpieces, gives each its mean weight over the answer, and adds the brevity penalty of BLEU.
    """

    name: ClassVar[str] = "bleu1-kpqa"

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        said, wanted = await self.sides(candidate, reference, record)
        pairs = clipped(said, wanted)
        if self.form == "code":
            value = code_bleu(said, wanted)
        else:
            value = sum(float(said.weights[i]) for i, _ in pairs) / said.total
        value = min(value, 1.0)
        return Score(value, evidence(said, wanted, [(i, j, 1.0) for i, j in pairs], precision=value))


@register
@dataclass(frozen=True)
class RougeLKpqa(KeyphraseMetric):
    """Weighted ROUGE-L: how much of what counts occurs in both texts in the same order.

    P and R are the weights of the words in the longest common subsequence over all weights of that side (eq. 2, 3, 5);
    F = (1+β²)RP / (R+β²P) (eq. 4). Equation (5) weighs the subsequence by the answer's words alone, which lets R exceed
    1; here each side uses its own weights. Of several longest subsequences the heaviest counts. form=ours takes the
    heaviest of all, so that a run of stop words does not push a key word out, and compares words by root. form=code
    adds the reference's weight for every equal pair of wordpieces on the diagonal, so that it can exceed 1; β = 1.
    """

    name: ClassVar[str] = "rouge-l-kpqa"
    beta: float = param(1.0, "weight of recall against precision, as in ROUGE-L; not in form=code")

    def check(self) -> None:
        if not 0 < self.beta <= 1e6:
            raise UsageError(f"{self.name}[beta={self.beta:g}]: beta must be above 0, and at most a million")
        if self.form == "code" and self.beta != 1:
            raise UsageError(f"{self.name}[form=code]: the program has beta 1; leave it out")

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        said, wanted = await self.sides(candidate, reference, record)
        pairs = common_subsequence(said, wanted, longest=self.form != "ours")
        if self.form == "code":
            shared = code_lcs(said, wanted)
            precision, recall = shared / said.total, shared / wanted.total
            value = f_measure(precision, recall, 1.0)
        else:
            precision = min(1.0, sum(float(said.weights[i]) for i, _ in pairs) / said.total)
            recall = min(1.0, sum(float(wanted.weights[j]) for _, j in pairs) / wanted.total)
            value = f_measure(precision, recall, self.beta)
        return Score(value, evidence(said, wanted, [(i, j, 1.0) for i, j in pairs], precision=precision, recall=recall))


@register
@dataclass(frozen=True)
class BertscoreKpqa(KeyphraseMetric):
    """Weighted BERTScore: how near each word that counts is to the nearest word of the other text.

    P = Σ_i KPW_i max_j cos(x̂_i, x_j) / Σ_i KPW_i over the answer's words, R likewise over the reference's (eq. 6, 7),
    F their harmonic mean (eq. 8). A word's vector is the mean of its pieces'. form=code compares wordpieces; as in its
    program, [CLS] and [SEP] weigh nothing but can be the nearest piece. form=ours: to an encoder "four" and "seven" are
    near, to a reader they are different answers, so a number is like an equal number only; cosines are rescaled by that
    of unlike words (.25).
    """

    name: ClassVar[str] = "bertscore-kpqa"
    roles: ClassVar[tuple[str, ...]] = ("keyphrases", "encoder")
    layer: int = param(1, "encoder layer whose vectors are compared (the paper found the first best)")

    def check(self) -> None:
        if self.layer < 0:
            raise UsageError(f"{self.name}[layer={self.layer}]: layers count from 0 (the embeddings)")

    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        (said, wanted), (ours, theirs) = await together(
            self.sides(candidate, reference, record),
            both(Embed(candidate, self.layer), Embed(reference, self.layer)),
        )
        rows, columns = self.vectors(ours, candidate), self.vectors(theirs, reference)
        likeness = unit(rows) @ unit(columns).T
        inside = np.ix_(self.counted(ours, rows), self.counted(theirs, columns))
        if likeness[inside].shape != (len(said.words), len(wanted.words)):
            raise Unscored("encoder and keyphrase model cut the text differently; the code form needs one tokenizer")
        if self.form == "ours":
            likeness = np.clip((likeness - UNLIKE) / (1 - UNLIKE), 0.0, 1.0)
            likeness[different_numbers(said, wanted)] = 0.0
        nearest, back = likeness.max(1)[inside[0][:, 0]], likeness.max(0)[inside[1][0]]
        precision = float(nearest @ said.weights / said.total)
        recall = float(back @ wanted.weights / wanted.total)
        shown = likeness[inside]
        pairs = {(i, int(j), float(shown[i, j])) for i, j in enumerate(shown.argmax(1))}
        pairs |= {(int(i), j, float(shown[i, j])) for j, i in enumerate(shown.argmax(0))}
        return Score(
            min(1.0, f_measure(precision, recall, 1.0)),
            evidence(said, wanted, sorted(pairs), precision=precision, recall=recall),
        )

    def vectors(self, found: TokenVectors, text: str) -> Array:
        """One row per word, the mean of its pieces; in the code form one row per piece, [CLS] and [SEP] included."""
        pieces = found.vectors.astype(np.float64)
        if self.form == "code":
            return pieces
        own = [n for n, special in enumerate(found.special) if not special]
        rows = []
        for _, (start, end) in words_of(text):
            inside = [n for n in own if found.spans[n][0] < end and start < found.spans[n][1]]
            rows.append(pieces[inside].mean(0) if inside else np.zeros(pieces.shape[1]))
        return np.stack(rows)

    def counted(self, found: TokenVectors, rows: Array) -> list[int]:
        """The rows that have a weight of their own."""
        if self.form != "code":
            return list(range(len(rows)))
        return [n for n, special in enumerate(found.special) if not special]


def different_numbers(said: Side, wanted: Side) -> npt.NDArray[np.bool_]:
    """Where a number meets anything but an equal number."""
    ours, theirs = (np.array([is_number(w) for w in s.words]) for s in (said, wanted))
    equal = np.array(said.keys)[:, None] == np.array(wanted.keys)[None, :]
    found: npt.NDArray[np.bool_] = (ours[:, None] | theirs[None, :]) & ~equal
    return found


async def both(first: Embed, second: Embed) -> tuple[TokenVectors, TokenVectors]:
    return await together(first, second)
