"""Baselines for rescaling QRelScore: questions paired with contexts they have nothing to do with (appendix F)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quaestor.errors import UsageError
from quaestor.metrics.qrelscore import QRelGRG, QRelLRM, unscaled
from quaestor.models.baselines import Baselines
from quaestor.records import Record, read_records
from quaestor.scoring import score
from quaestor.text.roots import STOP_WORDS

if TYPE_CHECKING:
    from quaestor.models.base import ModelSet

OVERLAP = 0.05
"""Pairs that share more than this part of the question's content words are not unrelated."""


def overlap(question: str, context: str) -> float:
    """Share of the question's content words that the context has too."""
    asked, given = (set(re.findall(r"\w+", text.lower())) - STOP_WORDS for text in (question, context))
    return len(asked & given) / len(asked) if asked else 1.0


def unrelated_pairs(path: Path, count: int, seed: int) -> tuple[list[Record], int]:
    """Up to `count` records with question and context of different records, and how many pairs were left out."""
    texts = [(r.question, r.context) for r in read_records(path) if r.question and r.context]
    if len({context for _, context in texts}) < 2:
        raise UsageError(f"{path}: baselines need questions on at least two different contexts")
    rng = np.random.default_rng(seed)
    pairs: list[Record] = []
    left_out = tries = 0
    while len(pairs) < count and tries < 20 * count:
        tries += 1
        (question, own), (_, context) = (texts[i] for i in rng.integers(0, len(texts), 2))
        if context == own:
            continue
        if overlap(question, context) > OVERLAP:
            left_out += 1
            continue
        pairs.append(Record(id=str(len(pairs)), question=question, context=context, judge="question"))
    if not pairs:
        raise UsageError(f"{path}: every question shares words with every other context: no unrelated pair found")
    return pairs, left_out


def compute_baselines(
    pairs: list[Record], parts: list[QRelLRM | QRelGRG], models: ModelSet, data: str
) -> dict[QRelLRM | QRelGRG, float]:
    """The mean of each part over the pairs, stored under the data set's name for the models in use."""
    result = score(pairs, [unscaled(part) for part in parts], models=models)
    store = models["baselines"]
    assert isinstance(store, Baselines)
    means = {}
    for part in parts:
        values = [v for v in result.values(unscaled(part)) if v is not None]
        if not values:
            raise UsageError(f"no pair could be scored with {unscaled(part)}")
        means[part] = sum(values) / len(values)
        store.store("lrm" if isinstance(part, QRelLRM) else "grg", unscaled(part), data, means[part], len(values))
    return means
