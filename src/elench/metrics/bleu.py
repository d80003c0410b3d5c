"""BLEU: how many of a text's n-grams its references have, at sentence and corpus level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from elench.errors import Unscored, UsageError
from elench.metrics import Metric, Score, param, register
from elench.metrics.evidence import Evidence
from elench.records.record import Record
from elench.text.ngrams import Pool, pool_of, shared_by_order, shared_runs
from elench.text.treebank import words_coco
from elench.text.words import Words, words_13a

TOKENIZERS = {"sacrebleu": words_13a, "coco": words_coco}
SMOOTHING_VALUE = {"floor": 0.1, "add-k": 1.0}


def bleu_counts(candidate: Words, references: Pool, n: int = 4) -> tuple[int, ...]:
    """The sufficient statistics: length, closest reference length (the shorter on a tie), n matches, n totals."""
    length, lengths = len(candidate), references.lengths
    closest = lengths[0] if len(lengths) == 1 else min(lengths, key=lambda own: (abs(own - length), own))
    totals = range(length, length - n, -1) if length >= n else [max(length - order, 0) for order in range(n)]
    return (length, closest, *shared_by_order(candidate, references, n), *totals)


def bleu_score(counts: Sequence[float], smooth: str = "exp", effective_order: bool = True) -> float:
    """BLEU of (summed) counts, in [0, 1]: brevity penalty times the geometric mean of the n-gram precisions.

    Papineni et al. 2002; smoothing by Chen and Cherry 2014 as sacrebleu names it. With `effective_order`, orders longer
    than the text are left out of the mean.
    """
    n = len(counts) // 2 - 1
    length, closest, matches, totals = counts[0], counts[1], counts[2 : 2 + n], counts[2 + n :]
    if not any(matches):
        return 0.0
    if smooth == "add-k":
        add = SMOOTHING_VALUE[smooth]
        matches = [matches[0], *(match + add for match in matches[1:])]
        totals = [totals[0], *(total + add for total in totals[1:])]
    product, orders, halved = 1.0, 0, 1.0
    for match, total in zip(matches, totals):  # noqa: B905 (both have n)
        if not total:
            break
        orders += 1
        if not match:
            if smooth == "exp":
                halved /= 2.0
                match = halved
            elif smooth == "floor":
                match = SMOOTHING_VALUE[smooth]
            else:
                return 0.0
        product *= match / total
    if orders < n and not effective_order:
        return 0.0
    mean = product ** (1.0 / orders)
    return float(mean if length >= closest else mean * math.exp(1.0 - closest / length))


def coco_score(counts: Sequence[float]) -> float:
    """BLEU as the COCO script computes it: no smoothing but tiny constants that keep the division defined."""
    n = len(counts) // 2 - 1
    length, closest, matches, totals = counts[0], counts[1], counts[2 : 2 + n], counts[2 + n :]
    product = math.prod((match + 1e-15) / (total + 1e-9) for match, total in zip(matches, totals, strict=True))
    ratio = (length + 1e-15) / (closest + 1e-9)
    return product ** (1 / n) * (math.exp(1 - 1 / ratio) if ratio < 1 else 1.0)


def sentence_bleu(candidate: str, references: Sequence[str], n: int = 4) -> float:
    """BLEU of one text as sacrebleu computes it, as a plain function."""
    words = TOKENIZERS["sacrebleu"]
    return bleu_score(bleu_counts(words(candidate), pool_of(words, *references), n), "exp")


def _explain(candidate: Words, references: Pool, counts: tuple[int, ...]) -> dict[str, object]:
    n = len(counts) // 2 - 1
    return {
        "matched": shared_runs(candidate, references, n),
        "precisions": [f"{match}/{total}" for match, total in zip(counts[2 : 2 + n], counts[2 + n :], strict=True)],
        "length": counts[0],
        "reference_length": counts[1],
    }


@register
@dataclass(frozen=True)
class Bleu(Metric):
    """Share of the text's 1- to n-grams that the references have, with a penalty for short texts."""

    name: ClassVar[str] = "bleu"
    judges: ClassVar[tuple[str, ...]] = ("question", "answer", "summary")
    reads: ClassVar[tuple[str, ...]] = ("references",)
    citation: ClassVar[str] = "Papineni et al. 2002, BLEU; smoothing: Chen and Cherry 2014; as sacrebleu (Post 2018)"
    limits: ClassVar[str] = (
        "Words must agree letter by letter: a good paraphrase scores low. Made for whole corpora; single sentences "
        "are noisy. All references are pooled, as in sacrebleu, which prints a hundred times this number."
    )
    example: ClassVar[Mapping[str, Any]] = {
        "question": "Which river flows through the old town?",
        "references": ["Which river flows past the old town?", "What is the name of the town's river?"],
        "judge": "question",
    }
    n: int = param(4, "longest n-gram that counts, 1 to 4", (1, 2, 3, 4))
    smooth: str = param(
        "exp", "what an order without a match counts (sacrebleu's names)", ("exp", "floor", "add-k", "none")
    )
    dialect: str = param("sacrebleu", "whose words and formula", ("sacrebleu", "coco"))
    judge: str = param(
        "", "which text is judged; default: the record's own field", ("", "question", "answer", "summary")
    )

    def check(self) -> None:
        if self.dialect == "coco" and self.smooth != "exp":
            raise UsageError(f"{self}: the coco dialect has no smoothing to choose")

    async def score(self, record: Record) -> Score:
        words = TOKENIZERS[self.dialect]
        judged = self.judged(record)
        candidate = words(self.text(record, judged))
        references = pool_of(words, *self.given_references(record))
        if not candidate:
            raise Unscored(f"no scorable word in the {judged}")
        if not references.where:
            raise Unscored("no scorable word in any reference")
        counts = bleu_counts(candidate, references, self.n)
        return Score(self._of(counts, True), Evidence(_explain, candidate, references, counts), counts)

    def corpus_score(self, totals: Sequence[float]) -> float | None:
        return self._of(totals, False)

    def _of(self, counts: Sequence[float], effective_order: bool) -> float:
        return coco_score(counts) if self.dialect == "coco" else bleu_score(counts, self.smooth, effective_order)
