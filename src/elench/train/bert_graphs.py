"""Graphs of BERT-like encoders (MiniLM, MPNet): hidden states, what LRM needs, the head of the masked model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elench.train.graph import FLOAT, INT32, INT64, MICROSOFT, Graph

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True)
class BertShape:
    """The sizes of a BERT-like encoder; MiniLM's by default."""

    layers: int = 6
    width: int = 384
    heads: int = 12
    inner: int = 1536
    words: int = 30522
    epsilon: float = 1e-12
    relative: bool = False
    """Whether a bias by distance is added to all attentions, as in MPNet."""


MPNET = BertShape(layers=12, width=768, inner=3072, words=30527, epsilon=1e-5, relative=True)


def bert(shape: BertShape, int8: bool = False, relate: bool = False) -> ModelProto:
    """Hidden states after `shape.layers` layers from summed embeddings; with `relate`, also what LRM needs.

    Inputs: embeddings (batch × tokens × width, not normed yet), mask (batch × tokens, 1 for a real token); where the
    shape is relative, bias (1 × heads × tokens × tokens); with `relate` also rows (batch × questions): the places of
    the question's pieces. Outputs: states; with `relate`, attention (the highest of all heads) and cosine, both
    layers × batch × questions × tokens.
    """
    g = Graph(int8)
    g.input("embeddings", FLOAT, ["batch", "tokens", shape.width])
    g.input("mask", INT32, ["batch", "tokens"])
    gains = [g.weight("embeddings.LayerNorm.weight", shape.width), g.weight("embeddings.LayerNorm.bias", shape.width)]
    x = g.node("LayerNormalization", ["embeddings", *gains], "layer.in", axis=-1, epsilon=shape.epsilon)
    relative = [g.input("bias", FLOAT, [1, shape.heads, "tokens", "tokens"])] if shape.relative else []
    if relate:
        g.input("rows", INT64, ["batch", "questions", 1])
        gap = g.node(
            "Sub", [g.node("Cast", ["mask"], "seen", to=FLOAT), g.constant("one", np.array(1, np.float32))], "gap"
        )
        wide = g.node("Unsqueeze", [gap, g.constant("axes12", np.array([1, 2], np.int64))], "gap.wide")
        g.node("Mul", [wide, g.constant("far", np.array(1e9, np.float32))], "unseen" if relative else "hidden")
        if relative:
            g.node("Add", ["unseen", _row_bias(g)], "hidden")
    attentions, cosines = [], []
    for n in range(shape.layers):
        name = f"encoder.layer.{n}"
        mixed = g.linear(x, f"{name}.attention.qkv", shape.width, 3 * shape.width)
        mixed = g.node("Add", [mixed, g.weight(f"{name}.attention.qkv.bias", 3 * shape.width)], f"{name}.qkv")
        parts = g.node("Split", [mixed], [f"{name}.q", f"{name}.k", f"{name}.v"], axis=-1, num_outputs=3)
        if relate:
            attentions.append(_row_attention(g, parts[0], parts[1], name, shape))
        inputs = [*parts, "", "mask", *relative]
        seen = g.node("MultiHeadAttention", inputs, f"{name}.seen", MICROSOFT, num_heads=shape.heads)
        x = after_attention(g, seen, x, name, shape)
        if relate:
            cosines.append(_row_cosine(g, x, name))
    if relate:
        g.node("Concat", attentions, "attention", axis=0)
        g.node("Concat", cosines, "cosine", axis=0)
        for output in ("attention", "cosine"):
            g.output(output, FLOAT, [shape.layers, "batch", "questions", "tokens"])
    else:
        g.node("Identity", [x], "states")
        g.output("states", FLOAT, ["batch", "tokens", shape.width])
    return g.model()


def after_attention(g: Graph, seen: str, x: str, name: str, shape: BertShape) -> str:
    """What follows on the attention in a layer: both feed-forward steps, each added to what went in and normed."""
    out = g.linear(seen, f"{name}.attention.output.dense.weight", shape.width, shape.width)
    dense, norm = f"{name}.attention.output.dense.bias", f"{name}.attention.output.LayerNorm"
    x = _normed(g, out, x, dense, norm, shape)
    wide = g.linear(x, f"{name}.intermediate.dense.weight", shape.width, shape.inner)
    bias = g.weight(f"{name}.intermediate.dense.bias", shape.inner)
    wide = g.node("BiasGelu", [wide, bias], f"{name}.gelu", MICROSOFT)
    out = g.linear(wide, f"{name}.output.dense.weight", shape.inner, shape.width)
    return _normed(g, out, x, f"{name}.output.dense.bias", f"{name}.output.LayerNorm", shape)


def _normed(g: Graph, x: str, skip: str, bias: str, name: str, shape: BertShape) -> str:
    """LayerNorm of x + skip + bias."""
    gains = [g.weight(f"{name}.weight", shape.width), g.weight(f"{name}.bias", shape.width)]
    inputs = [x, skip, *gains, g.weight(bias, shape.width)]
    return str(g.node("SkipLayerNormalization", inputs, f"{name}.out", MICROSOFT, epsilon=shape.epsilon))


def _row_bias(g: Graph) -> str:
    """The bias of the question's pieces: batch × heads × questions × tokens."""
    flat = g.node("Squeeze", ["bias", g.constant("axis0", np.array([0], np.int64))], "bias.flat")
    found = g.node("GatherND", [g.node("Transpose", [flat], "bias.t", perm=[1, 0, 2]), "rows"], "bias.rows")
    return str(g.node("Transpose", [found], "bias.heads", perm=[0, 2, 1, 3]))


def _row_attention(g: Graph, q: str, k: str, name: str, shape: BertShape) -> str:
    """The highest attention over all heads of the question's pieces to every piece: 1 × batch × questions × tokens."""
    size = shape.width // shape.heads
    split = g.shape(0, 0, shape.heads, size)
    rows = g.node("Reshape", [g.node("GatherND", [q, "rows"], f"{name}.rows", batch_dims=1), split], f"{name}.rows4")
    rows = g.node("Transpose", [rows], f"{name}.rows.t", perm=[0, 2, 1, 3])
    keys = g.node("Transpose", [g.node("Reshape", [k, split], f"{name}.k4")], f"{name}.k.t", perm=[0, 2, 3, 1])
    scale = g.constant("scale", np.array(size**-0.5, np.float32))
    scores = g.node("Mul", [g.node("MatMul", [rows, keys], f"{name}.dots"), scale], f"{name}.scores")
    scores = g.node("Add", [scores, "hidden"], f"{name}.scores.seen")
    weights = g.node("Softmax", [scores], f"{name}.weights", axis=-1)
    best = g.node("ReduceMax", [weights, g.constant("axis1", np.array([1], np.int64))], f"{name}.most", keepdims=0)
    return str(g.node("Unsqueeze", [best, g.constant("axis0", np.array([0], np.int64))], f"{name}.attention"))


def _row_cosine(g: Graph, x: str, name: str) -> str:
    """Cosines of the question's states with all states: 1 × batch × questions × tokens."""
    unit = g.node("LpNormalization", [x], f"{name}.unit", axis=-1, p=2)
    rows = g.node("GatherND", [unit, "rows"], f"{name}.unit.rows", batch_dims=1)
    turned = g.node("Transpose", [unit], f"{name}.unit.t", perm=[0, 2, 1])
    found = g.node("MatMul", [rows, turned], f"{name}.cos")
    return str(g.node("Unsqueeze", [found, g.constant("axis0", np.array([0], np.int64))], f"{name}.cosine"))


def masked_head(shape: BertShape) -> ModelProto:
    """Log-probabilities of given tokens from hidden states at masked places (decoder tied to the embeddings)."""
    g = Graph()
    g.input("states", FLOAT, ["places", shape.width])
    g.input("tokens", INT64, ["places", 1])
    x = g.linear("states", "transform.dense.weight", shape.width, shape.width)
    x = g.node("BiasGelu", [x, g.weight("transform.dense.bias", shape.width)], "gelu", MICROSOFT)
    gains = [g.weight("transform.LayerNorm.weight", shape.width), g.weight("transform.LayerNorm.bias", shape.width)]
    x = g.node("LayerNormalization", [x, *gains], "normed", axis=-1, epsilon=shape.epsilon)
    logits = g.linear(x, "words", shape.width, shape.words)
    logits = g.node("Add", [logits, g.weight("bias", shape.words)], "logits")
    logs = g.node("LogSoftmax", [logits], "logs", axis=-1)
    g.node("GatherElements", [logs, "tokens"], "logprobs", axis=1)
    g.output("logprobs", FLOAT, ["places", 1])
    return g.model()
