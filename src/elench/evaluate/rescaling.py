"""Baselines for rescaling QRelScore: questions paired with contexts they have nothing to do with (appendix F)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from elench.engine.baselines import store_baseline
from elench.engine.scoring import score
from elench.errors import UsageError
from elench.metrics.qrelscore import QRelGRG, QRelLRM, unscaled
from elench.records.record import Record
from elench.requests import Baseline

if TYPE_CHECKING:
    from elench.models.base import ModelSet

OVERLAP = 0.05
"""Pairs with a BLEU-1 above this are not unrelated (appendix F)."""


def bleu1(question: str, context: str) -> float:
    """BLEU-1 of the question against the context: clipped share of its words, with the brevity penalty."""
    asked, given = (Counter(re.findall(r"\w+", text.lower())) for text in (question, context))
    length, reference = asked.total(), given.total()
    if not length or not reference:
        return 1.0
    return (asked & given).total() / length * math.exp(min(0.0, 1 - reference / length))


def unrelated_pairs(records: Iterable[Record], count: int, seed: int, name: str) -> tuple[list[Record], int]:
    """Up to `count` records with question and context of different records, and how many pairs were left out; `name` is
    the data set's, for messages."""
    texts = [(r.question, r.context) for r in records if r.question and r.context]
    if len({context for _, context in texts}) < 2:
        raise UsageError(f"{name}: baselines need questions on at least two different contexts")
    rng = np.random.default_rng(seed)
    pairs: list[Record] = []
    left_out = tries = 0
    while len(pairs) < count and tries < 20 * count:
        tries += 1
        (question, own), (_, context) = (texts[i] for i in rng.integers(0, len(texts), 2))
        if context == own:
            continue
        if bleu1(question, context) > OVERLAP:
            left_out += 1
            continue
        pairs.append(Record(id=str(len(pairs)), question=question, context=context, judge="question"))
    if not pairs:
        raise UsageError(f"{name}: every question shares words with every other context: no unrelated pair found")
    return pairs, left_out


def compute_baselines(
    pairs: list[Record], parts: list[QRelLRM | QRelGRG], models: ModelSet, data: str
) -> dict[QRelLRM | QRelGRG, float]:
    """The mean of each part over the pairs, stored under the data set's name for the models in use."""
    result = score(pairs, [unscaled(part) for part in parts], models=models)
    means = {}
    for part in parts:
        values = [v for v in result.values(unscaled(part)) if v is not None]
        if not values:
            raise UsageError(f"no pair could be scored with {unscaled(part)}")
        means[part] = sum(values) / len(values)
        figure = Baseline("encoder" if isinstance(part, QRelLRM) else "causal", unscaled(part), data)
        store_baseline(figure, models, means[part], len(values))
    return means
