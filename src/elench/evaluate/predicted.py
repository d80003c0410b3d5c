"""Means of a profile's predictions, with intervals that say where the mean human rating would lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import NamedTuple


class PredictedMean(NamedTuple):
    """The mean predicted rating of some records."""

    value: float
    low: float
    high: float
    n: int


def predicted_mean(values: Sequence[float], groups: Sequence[str], noise: Mapping[str, float]) -> PredictedMean:
    """Mean of one system with a 95 % interval from what the profile missed on unseen groups (its file's `noise`).

    variance = system² + group² · Σ (share of the group)² + record² / n"""
    n = len(values)
    mean = sum(values) / n
    shares = sum((count / n) ** 2 for count in Counter(groups).values())
    variance = noise["system"] ** 2 + noise["group"] ** 2 * shares + noise["record"] ** 2 / n
    return PredictedMean(mean, mean - 1.96 * sqrt(variance), mean + 1.96 * sqrt(variance), n)
