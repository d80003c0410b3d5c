"""The encoder's answers: the model's own numbers, whatever else is in the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from elench.errors import Unscored, UsageError
from elench.models.base import ModelSet
from elench.requests import Embed, Relate
from tests.tiny import tiny

QUESTION, CONTEXT = "Who wrote the great book?", "Jane Austen wrote the great old book in the city by the river."


@pytest.fixture(scope="module", params=["bert", "roberta"])
def encoder(request: pytest.FixtureRequest) -> Any:
    found = ModelSet({"encoder": str(tiny(request.param))})["encoder"]
    found.folder = tiny(request.param)
    return found


def states(encoder: Any, *texts: str) -> Any:
    """transformers' own hidden states and attentions of one input."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(encoder.folder, attn_implementation="eager").eval()
    coded = AutoTokenizer.from_pretrained(encoder.folder)(*texts, return_tensors="pt")
    with torch.inference_mode():
        return coded, model(**coded, output_hidden_states=True, output_attentions=True)


@pytest.mark.parametrize("layer", [0, 1, 2, 3])
def test_vectors_are_the_models_own_at_every_layer(encoder: Any, layer: int) -> None:
    coded, out = states(encoder, CONTEXT)
    (found,) = encoder.answer([Embed(CONTEXT, layer)])
    assert list(found.ids) == coded["input_ids"][0].tolist()
    assert found.special == (True, *(False,) * (len(found.ids) - 2), True)
    np.testing.assert_allclose(found.vectors, out.hidden_states[layer][0].numpy(), atol=1e-5)


def test_no_answer_depends_on_its_batch(encoder: Any) -> None:
    asked = [Embed(CONTEXT), Embed("x", 1), Embed(""), Embed(CONTEXT * 9), Embed("the king"), Relate(QUESTION, CONTEXT)]
    asked += [Relate("when?", CONTEXT * 3), Relate(QUESTION, CONTEXT, aggregate="mean")]
    together = dict(zip(asked, encoder.answer(asked), strict=True))
    assert sorted(i for group in encoder.batches(asked) for i in group) == list(range(len(asked)))
    for request in asked:
        (alone,) = encoder.answer([request])
        if isinstance(request, Embed):
            np.testing.assert_allclose(alone.vectors, together[request].vectors, atol=1e-5)
        else:
            assert alone.layers == pytest.approx(together[request].layers, abs=1e-5)


def test_a_long_text_is_read_in_parts_and_nothing_is_lost(encoder: Any) -> None:
    long = " ".join([CONTEXT] * 30)
    plain = encoder.tokens.ids([long])[0]
    (found,) = encoder.answer([Embed(long)])
    assert len(plain) > 3 * encoder.window
    assert [i for i, special in zip(found.ids, found.special, strict=True) if not special] == plain
    assert found.vectors.shape == (len(plain) + 2, 32)
    (related,) = encoder.answer([Relate(QUESTION, long)])
    assert related.chunks >= 4
    assert all(len(row) == len(related.pieces) for row in (*related.matches, *related.strengths))


def by_hand(encoder: Any, attention: str, aggregate: str, code: bool) -> list[float]:
    """METRICS.md §1 with plain loops."""
    coded, out = states(encoder, QUESTION, CONTEXT)
    sides = coded.sequence_ids(0)
    rows, columns = ([k for k, s in enumerate(sides) if s == side] for side in (0, 1))
    if code:
        rows, columns = rows[:-1], columns[:-1]
    layers = []
    for weights, states_ in zip(out.attentions, out.hidden_states[1:], strict=True):
        per_row = []
        unit = states_[0].numpy() / np.linalg.norm(states_[0].numpy(), axis=1, keepdims=True)
        for m in rows:
            a = [float(weights[0, :, m, n].max()) for n in columns]
            c = [float(unit[m] @ unit[n]) for n in columns]
            top = a.index(max(a))
            hard = [float(i == top) for i in range(len(a))]
            scaled = {"raw": a, "peak": [x / max(a) for x in a], "hard": hard}[attention]
            products = [x * y for x, y in zip(scaled, c, strict=True)]
            per_row.append(c[top] if code else max(products) if aggregate == "max" else float(np.mean(products)))
        layers.append(float(np.mean(per_row)))
    return layers


@pytest.mark.parametrize(("attention", "aggregate", "form"), [
    ("peak", "max", "paper"), ("raw", "max", "paper"), ("hard", "max", "paper"), ("peak", "mean", "paper"),
    ("peak", "max", "code"),
])  # fmt: skip
def test_relevance_is_the_formula_in_plain_loops(encoder: Any, attention: str, aggregate: str, form: str) -> None:
    (found,) = encoder.answer([Relate(QUESTION, CONTEXT, attention, aggregate, form)])
    expected = by_hand(encoder, "hard" if form == "code" else attention, aggregate, form == "code")
    assert found.layers == pytest.approx(expected, abs=1e-5)


def test_mover_lies_between_mean_and_max(encoder: Any) -> None:
    kinds = ("mean", "mover", "max")
    mean, mover, best = (encoder.answer([Relate(QUESTION, CONTEXT, "raw", kind)])[0].layers for kind in kinds)
    assert all(a - 1e-6 <= b <= c + 1e-6 for a, b, c in zip(mean, mover, best, strict=True))


def test_what_cannot_be_related_says_why(encoder: Any) -> None:
    with pytest.raises(Unscored, match="question"):
        encoder.answer([Relate("", CONTEXT)])
    with pytest.raises(Unscored, match="pieces"):
        encoder.answer([Relate(QUESTION * 30, CONTEXT * 5)])
    with pytest.raises(UsageError, match="layers 0 to 3"):
        encoder.answer([Embed(CONTEXT, 9)])


def test_half_precision_has_its_own_hash() -> None:
    plain, half = (ModelSet({"encoder": str(tiny("bert"))}, dtype=d)["encoder"] for d in ("float32", "bfloat16"))
    assert plain.identity.key != half.identity.key and plain.sha256 == half.sha256
    a, b = (m.answer([Embed(CONTEXT)])[0].vectors for m in (plain, half))
    assert a.dtype == b.dtype == np.float32
    assert 0 < np.abs(a - b).max() < 0.2
