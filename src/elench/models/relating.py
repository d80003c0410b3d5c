"""Attention × cosine between a question's and a context's pieces, layer by layer (QRelScore's LRM)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elench.errors import Unscored
from elench.requests import Floats, Relate, Relevance


def reduce(
    request: Relate, attention: Floats, cosine: Floats, names: Sequence[str], columns: Sequence[str]
) -> Relevance:
    """The layer scores of one pair from layers × question pieces × context pieces; names are the pieces."""
    code = request.form == "code"
    if code:  # the published program loses the last piece on both sides
        attention, cosine = attention[:, :-1, :-1], cosine[:, :-1, :-1]
        names, columns = names[:-1], columns[:-1]
    if not names or not columns:
        raise Unscored("too few tokens in the question or the context")
    layers, matches, strengths = [], [], []
    for weights, alike in zip(attention, cosine, strict=True):
        related = _weighted(weights, "hard" if code else request.attention) * alike
        best = weights.argmax(1) if code else related.argmax(1)
        layers.append(float(related.sum(1).mean()) if code else _aggregate(related, request.aggregate))
        matches.append(tuple(columns[k] for k in best))
        strengths.append(tuple(float(v) for v in related[np.arange(len(best)), best]))
    return Relevance(tuple(layers), tuple(names), tuple(matches), tuple(strengths))


def _weighted(weights: Floats, attention: str) -> Floats:
    """What "normalised" attention means: peak (row over its maximum), raw, or hard (1 at the maximum, else 0)."""
    if attention == "raw":
        return weights
    if attention == "peak":
        scaled: Floats = weights / np.maximum(weights.max(1, keepdims=True), 1e-12)
        return scaled
    hard = np.zeros_like(weights)
    hard[np.arange(len(weights)), weights.argmax(1)] = 1.0
    return hard


def _aggregate(related: Floats, aggregate: str) -> float:
    """Mean over question pieces of the maximum or mean over context pieces, or the similarity that transport moves."""
    if aggregate == "max":
        return float(related.max(1).mean())
    if aggregate == "mean":
        return float(related.mean())
    import ot

    gain = related.astype(np.float64)
    plan = ot.emd(np.full(gain.shape[0], 1 / gain.shape[0]), np.full(gain.shape[1], 1 / gain.shape[1]), 1.0 - gain)
    return float((plan * gain).sum())
