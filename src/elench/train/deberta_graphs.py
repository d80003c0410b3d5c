"""The graph of DeBERTa-v3-xsmall: hidden states of the last layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from elench.train.bert_graphs import BertShape, after_attention
from elench.train.graph import FLOAT, INT64, Graph

if TYPE_CHECKING:
    from onnx import ModelProto


XSMALL = BertShape(layers=12, width=384, heads=6, inner=1536, words=128100, epsilon=1e-7)


def deberta(shape: BertShape, int8: bool = False) -> ModelProto:
    """Hidden states of the last layer from looked-up embeddings (not normed yet).

    Inputs: embeddings (batch × tokens × width); mask (batch × 1 × 1 × tokens; 0, or -1e9 for what fills a row);
    distances (layers × 2 · tokens - 1 × 2 · width): keys and queries of the distances tokens - 1 … 1 - tokens; and the
    numbers with which products by distance are sheared into products by place (see `_sheared`).
    """
    g = Graph(int8)
    g.input("embeddings", FLOAT, ["batch", "tokens", shape.width])
    g.input("mask", FLOAT, ["batch", 1, 1, "tokens"])
    g.input("distances", FLOAT, [shape.layers, "distances", 2 * shape.width])
    for name, size in (("first", 1), ("behind", 1), ("square", 4), ("tokens", 1)):
        g.input(name, INT64, [size])
    gains = [g.weight(f"embeddings.LayerNorm.{end}", shape.width) for end in ("weight", "bias")]
    x = g.node("LayerNormalization", ["embeddings", *gains], "layer.in", axis=-1, epsilon=shape.epsilon)
    for n in range(shape.layers):
        x = _layer(g, x, n, shape)
    g.node("Identity", [x], "states")
    g.output("states", FLOAT, ["batch", "tokens", shape.width])
    return g.model()


def _layer(g: Graph, x: str, n: int, shape: BertShape) -> str:
    name = f"encoder.layer.{n}"
    mixed = g.linear(x, f"{name}.attention.qkv", shape.width, 3 * shape.width)
    mixed = g.node("Add", [mixed, g.weight(f"{name}.attention.qkv.bias", 3 * shape.width)], f"{name}.qkv")
    parts = g.node("Split", [mixed], [f"{name}.{p}" for p in "qkv"], axis=-1, num_outputs=3)
    split = g.shape(0, 0, shape.heads, shape.width // shape.heads)
    query, key, value = (
        g.node("Transpose", [g.node("Reshape", [p, split], f"{p}.split")], f"{p}.heads", perm=[0, 2, 1, 3])
        for p in parts
    )
    keys, queries = _by_distance(g, n, name, shape)
    turned = g.node("Transpose", [key], f"{name}.k.turned", perm=[0, 1, 3, 2])
    scores = g.node("MatMul", [query, turned], f"{name}.content")
    to_place = _sheared(g, g.node("MatMul", [query, keys], f"{name}.to"))
    from_place = _sheared(g, g.node("MatMul", [key, queries], f"{name}.from"))
    scores = g.node("Add", [scores, to_place], f"{name}.some")
    scores = g.node("Add", [scores, g.node("Transpose", [from_place], f"{name}.from.turned", perm=[0, 1, 3, 2])],
                    f"{name}.all")  # fmt: skip
    weights = g.node("Softmax", [g.node("Add", [scores, "mask"], f"{name}.masked")], f"{name}.weights", axis=-1)
    seen = g.node("Transpose", [g.node("MatMul", [weights, value], f"{name}.mixed")], f"{name}.back", perm=[0, 2, 1, 3])
    seen = g.node("Reshape", [seen, g.shape(0, 0, shape.width)], f"{name}.seen")
    return after_attention(g, seen, x, name, shape)


def _by_distance(g: Graph, n: int, name: str, shape: BertShape) -> tuple[str, str]:
    """A layer's keys of the distances, and its queries of the distances turned round: heads × size × distances."""
    own = g.node("Gather", ["distances", g.constant(f"number{n}", np.array(n, np.int64))], f"{name}.distances", axis=0)
    keys, queries = g.node("Split", [own], [f"{name}.far.k", f"{name}.far.q"], axis=-1, num_outputs=2)
    ends = [g.constant(f"slice.{k}", np.array([v], np.int64)) for k, v in
            (("from", -1), ("to", np.iinfo(np.int64).min), ("axis", 0), ("step", -1))]  # fmt: skip
    queries = g.node("Slice", [queries, *ends], f"{name}.far.q.turned")
    heads = g.shape(0, shape.heads, shape.width // shape.heads)
    made = [
        g.node("Transpose", [g.node("Reshape", [p, heads], f"{p}.split")], f"{p}.heads", perm=[1, 2, 0])
        for p in (keys, queries)
    ]
    return made[0], made[1]


def _sheared(g: Graph, x: str) -> str:
    """From (…, T, 2T - 1), whose columns are distances, to (…, T, T): row i begins T - 1 - i columns later.

    In one long row, the T - 1 numbers in front are left out and the rest is cut into rows one number shorter.
    """
    axis2, axis3 = (g.constant(f"axis{k}", np.array([k], np.int64)) for k in (2, 3))
    flat = g.node("Reshape", [x, g.shape(0, 0, -1)], f"{x}.flat")
    part = g.node("Slice", [flat, "first", "behind", axis2], f"{x}.part")
    rows = g.node("Reshape", [part, "square"], f"{x}.rows")
    zero = g.constant("zero", np.array([0], np.int64))
    return str(g.node("Slice", [rows, zero, "tokens", axis3], f"{x}.sheared"))
