"""Attention × cosine between a question's and a context's pieces, layer by layer (QRelScore's LRM, METRICS.md §1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quaestor.errors import Unscored
from quaestor.requests import Relate, Relevance

if TYPE_CHECKING:
    import torch


def relate(model: Any, tokenizer: Any, pairs: Sequence[tuple[Relate, str]]) -> list[Relevance]:
    """One pass over (request, part of its context) pairs; what comes back is small, the attentions stay here."""
    import torch

    coded = tokenizer(
        [r.question for r, _ in pairs],
        [part for _, part in pairs],
        padding=True,
        return_tensors="pt",
        truncation=False,
        verbose=False,
    )
    inputs = {name: value.to(model.device) for name, value in coded.items()}
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")  # only eager attention hands its weights out
    try:
        with torch.inference_mode():
            out = model(**inputs, output_hidden_states=True, output_attentions=True)
            return [_reduce(tokenizer, coded, i, request, out) for i, (request, _) in enumerate(pairs)]
    finally:
        model.set_attn_implementation(before)


def _reduce(tokenizer: Any, coded: Any, i: int, request: Relate, out: Any) -> Relevance:
    import torch

    sides = coded.sequence_ids(i)
    rows = [k for k, side in enumerate(sides) if side == 0]
    columns = [k for k, side in enumerate(sides) if side == 1]
    code = request.form == "code"
    if code:  # the published program loses the last piece on both sides
        rows, columns = rows[:-1], columns[:-1]
    if not rows or not columns:
        raise Unscored("too few tokens in the question or the context")
    names = tokenizer.convert_ids_to_tokens(coded["input_ids"][i].tolist())
    layers, matches, strengths = [], [], []
    for attention, states in zip(out.attentions, out.hidden_states[1:], strict=True):
        weights = attention[i].float()[:, rows][:, :, columns].amax(0)
        vectors = torch.nn.functional.normalize(states[i].float(), dim=-1)
        related = _weighted(weights, "hard" if code else request.attention) * (vectors[rows] @ vectors[columns].T)
        if code:
            best = weights.argmax(1)
            layers.append(float(related.sum(1).mean()))
        else:
            best = related.argmax(1)
            layers.append(_aggregate(related, request.aggregate))
        matches.append(tuple(names[columns[k]] for k in best.tolist()))
        strengths.append(tuple(related.gather(1, best[:, None])[:, 0].tolist()))
    return Relevance(tuple(layers), tuple(names[k] for k in rows), tuple(matches), tuple(strengths))


def _weighted(weights: torch.Tensor, attention: str) -> torch.Tensor:
    """What "normalised" attention means: peak (row over its maximum), raw, or hard (1 at the maximum, else 0)."""
    import torch

    if attention == "raw":
        return weights
    if attention == "peak":
        return weights / weights.amax(1, keepdim=True).clamp_min(1e-12)
    return torch.zeros_like(weights).scatter_(1, weights.argmax(1, keepdim=True), 1.0)


def _aggregate(related: torch.Tensor, aggregate: str) -> float:
    """Mean over question pieces of the maximum or mean over context pieces, or the similarity that transport moves."""
    if aggregate == "max":
        return float(related.amax(1).mean())
    if aggregate == "mean":
        return float(related.mean())
    import numpy as np
    import ot

    gain = related.double().cpu().numpy()
    plan = ot.emd(np.full(gain.shape[0], 1 / gain.shape[0]), np.full(gain.shape[1], 1 / gain.shape[1]), 1.0 - gain)
    return float((plan * gain).sum())
