"""Graphs of Llama-like language models (SmolLM2): states of laid-out rows, log-probabilities, writing with a cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from elench.models.llama import POSITIONS, VOCABULARY_PARTS
from elench.train.graph import FLOAT, FLOAT16, INT64, MICROSOFT, Graph

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(frozen=True)
class LlamaShape:
    """The sizes of a Llama-like language model; SmolLM2's by default."""

    layers: int = 30
    width: int = 576
    heads: int = 9
    groups: int = 3
    """Heads of keys and values."""
    inner: int = 1536
    words: int = 49152
    epsilon: float = 1e-5

    @property
    def size(self) -> int:
        return self.width // self.heads

    @property
    def share(self) -> int:
        """Query heads that share a head of keys and values."""
        return self.heads // self.groups


class Mapped(Graph):
    """A graph whose matrices are inputs, outputs × inputs as a checkpoint stores them: a file mapped into memory is
    multiplied as it is, matrix by matrix brought to float32, and never held a second time."""

    def __init__(self, half: bool) -> None:
        super().__init__()
        self.half = half

    def linear(self, x: str, name: str, rows: int, columns: int) -> str:
        matrix = self.input(name, FLOAT16 if self.half else FLOAT, [columns, rows])
        if self.half:
            matrix = self.node("Cast", [matrix], f"{name}.float32", to=FLOAT)
        return str(self.node("FusedMatMul", [x, matrix], f"{name}.out", MICROSOFT, transB=1))


def llama(shape: LlamaShape, half: bool = True) -> ModelProto:
    """Normed last states from embeddings, positions and an additive mask (rows or 1 × 1 × 1 × tokens × tokens)."""
    g = Mapped(half)
    g.input("embeddings", FLOAT, ["batch", "tokens", shape.width])
    g.input("positions", INT64, ["batch", "tokens"])
    g.input("mask", FLOAT, ["some", 1, 1, "tokens", "tokens"])
    h, x = _start(g, shape), "embeddings"
    for n in range(shape.layers):
        name = f"layers.{n}"
        q, k, v = _projected(g, h, name, shape)
        five = g.shape(0, 0, shape.groups, shape.share, shape.size)
        q = g.node("Transpose", [g.node("Reshape", [q, five], f"{name}.q5")], f"{name}.q.t", perm=[0, 2, 3, 1, 4])
        one = g.shape(0, 0, shape.groups, 1, shape.size)
        k = g.node("Transpose", [g.node("Reshape", [k, one], f"{name}.k5")], f"{name}.k.t", perm=[0, 2, 3, 4, 1])
        v = g.node("Transpose", [g.node("Reshape", [v, one], f"{name}.v5")], f"{name}.v.t", perm=[0, 2, 3, 1, 4])
        scores = g.node("Add", [g.node("MatMul", [q, k], f"{name}.dots"), "mask"], f"{name}.scores")
        weights = g.node("Softmax", [scores], f"{name}.weights", axis=-1)
        seen = g.node("MatMul", [weights, v], f"{name}.mix")
        h, x = _after_attention(g, x, seen, n, shape)
    g.node("Identity", [h], "states")
    g.output("states", FLOAT, ["batch", "tokens", shape.width])
    return g.model()


def _start(g: Graph, shape: LlamaShape) -> str:
    """The weights that all layers share, and the embeddings as the first layer reads them."""
    for side in ("cosines", "sines"):
        g.weight(side, POSITIONS, shape.size // 2)
    g.constant("scale", np.array(shape.size**-0.5, np.float32))
    gain = g.weight("layers.0.input_layernorm.weight", shape.width)
    h = g.node("SimplifiedLayerNormalization", ["embeddings", gain], "in", axis=-1, epsilon=shape.epsilon)
    kept = shape.groups * shape.size
    g.constant("sizes", np.array([shape.width, kept, kept], np.int64))
    return str(h)


def _projected(g: Graph, h: str, name: str, shape: LlamaShape) -> tuple[str, str, str]:
    """Queries (turned by their position and scaled), keys (turned) and values: batch × tokens × width."""
    kept = shape.groups * shape.size
    if isinstance(g, Mapped):
        sizes = {"q": shape.width, "k": kept, "v": kept}
        q, k, v = (g.linear(h, f"{name}.{part}_proj", shape.width, size) for part, size in sizes.items())
    else:
        mixed = g.linear(h, f"{name}.qkv", shape.width, shape.width + 2 * kept)
        q, k, v = g.node("Split", [mixed, "sizes"], [f"{name}.{part}" for part in "qkv"], axis=-1)
    turn = ["positions", "cosines", "sines"]
    q = g.node("RotaryEmbedding", [q, *turn], f"{name}.q.turned", MICROSOFT, num_heads=shape.heads)
    k = g.node("RotaryEmbedding", [k, *turn], f"{name}.k.turned", MICROSOFT, num_heads=shape.groups)
    return str(g.node("Mul", [q, "scale"], f"{name}.q.scaled")), str(k), str(v)


def _after_attention(g: Graph, x: str, seen: str, n: int, shape: LlamaShape) -> tuple[str, str]:
    """The rest of a layer, from what its heads saw (batch × groups × share × tokens × size): (normed, plain)."""
    name = f"layers.{n}"
    seen = g.node("Transpose", [seen], f"{name}.mix.t", perm=[0, 3, 1, 2, 4])
    seen = g.node("Reshape", [seen, g.shape(0, 0, shape.width)], f"{name}.seen")
    out = g.linear(seen, f"{name}.o_proj", shape.width, shape.width)
    h, x = _residual(g, x, out, f"{name}.post_attention_layernorm.weight", shape)
    if isinstance(g, Mapped):
        gate, up = (g.linear(h, f"{name}.{part}_proj", shape.width, shape.inner) for part in ("gate", "up"))
    else:
        wide = g.linear(h, f"{name}.gate_up", shape.width, 2 * shape.inner)
        gate, up = g.node("Split", [wide], [f"{name}.gate", f"{name}.up"], axis=-1, num_outputs=2)
    gate = g.node("QuickGelu", [gate], f"{name}.silu", MICROSOFT, alpha=1.0)
    out = g.linear(g.node("Mul", [gate, up], f"{name}.wide"), f"{name}.down_proj", shape.inner, shape.width)
    last = n == shape.layers - 1
    return _residual(g, x, out, "norm.weight" if last else f"layers.{n + 1}.input_layernorm.weight", shape)


def _residual(g: Graph, x: str, out: str, norm: str, shape: LlamaShape) -> tuple[str, str]:
    """RMSNorm of x + out, and the sum itself."""
    names = [f"{norm}.out", "", "", f"{norm}.sum"]
    inputs = [out, x, g.weight(norm, shape.width)]
    g.node("SkipSimplifiedLayerNormalization", inputs, names, MICROSOFT, epsilon=shape.epsilon)
    return names[0], names[3]


def llama_head(shape: LlamaShape, half: bool = True) -> ModelProto:
    """Log-probabilities of tokens, given by their rows of the output matrix, from normed states.

    log p = state · row − log Σ exp(state · every row); the sum is made of those of the parts of the vocabulary, each
    the difference of a logit and its log-softmax.
    """
    g = Mapped(half)
    for name in ("states", "targets"):
        g.input(name, FLOAT, ["places", shape.width])
    last, first = g.constant("last", np.array([-1], np.int64)), g.constant("first", np.array([0], np.int64))
    sums = []
    for n in range(VOCABULARY_PARTS):
        logits = g.linear("states", f"words.{n}", shape.width, shape.words // VOCABULARY_PARTS)
        logs = g.node("LogSoftmax", [logits], f"logs.{n}", axis=-1)
        one, log = (g.node("Gather", [x, first], f"{x}.first", axis=1) for x in (logits, logs))
        sums.append(g.node("Sub", [one, log], f"sum.{n}"))
    total = g.node("ReduceLogSumExp", [g.node("Concat", sums, "sums", axis=1), last], "total", keepdims=1)
    dots = g.node("ReduceSum", [g.node("Mul", ["states", "targets"], "products"), last], "dots", keepdims=1)
    g.node("Sub", [dots, total], "logprobs")
    g.output("logprobs", FLOAT, ["places", 1])
    return g.model()


def llama_writer(shape: LlamaShape, int8: bool = False) -> ModelProto:
    """The likeliest next tokens of rows that continue texts, and the rows' keys and values.

    Each row belongs to a text whose keys and values are kept once, whatever the number of its rows. In the attention,
    rows are laid out text by text: `slots` (texts × most rows of a text) names the row in each place, `places` the
    place of each row. Rows go on from the rows `parents` of the step before.
    """
    g = Graph(int8)
    g.input("embeddings", FLOAT, ["rows", "tokens", shape.width])
    g.input("positions", INT64, ["rows", "tokens"])
    g.input("mask", FLOAT, ["rows", 1, "queries", "own"])  # queries: shape.share x tokens
    g.input("text.mask", FLOAT, ["texts", 1, 1, "text"])
    lengths: dict[str, int | str] = {"parents": "rows", "slots": "all", "places": "rows"}
    lengths |= {"spread": 5, "joined": 4, "folded": 5, "flat": 4, "cut": 2, "best": 1}
    for name, length in lengths.items():
        g.input(name, INT64, [length])
    h, x = _start(g, shape), "embeddings"
    for n in range(shape.layers):
        name = f"layers.{n}"
        q, k, v = _projected(g, h, name, shape)
        k, v = (_remembered(g, part, f"{name}.{kind}", shape) for part, kind in ((k, "key"), (v, "value")))
        kept: list[int | str] = ["texts", shape.groups, "text", shape.size]
        text = [g.input(f"{name}.text.{kind}", FLOAT, kept) for kind in ("key", "value")]
        five = g.shape(0, 0, shape.groups, shape.share, shape.size)
        q = g.node("Transpose", [g.node("Reshape", [q, five], f"{name}.q5")], f"{name}.q.t", perm=[0, 2, 3, 1, 4])
        q = g.node("Reshape", [q, g.shape(0, 0, -1, shape.size)], f"{name}.q4")
        own = g.node("FusedMatMul", [q, k], f"{name}.dots", MICROSOFT, transB=1)
        own = g.node("Add", [own, "mask"], f"{name}.scores")
        q = _by_text(g, q, f"{name}.q.by")
        far = g.node("FusedMatMul", [q, text[0]], f"{name}.text.dots", MICROSOFT, transB=1)
        far = g.node("Add", [far, "text.mask"], f"{name}.text.scores")
        far = _by_row(g, far, f"{name}.text.row")
        weights = g.node("Softmax", [g.node("Concat", [far, own], f"{name}.all", axis=-1)], f"{name}.weights", axis=-1)
        far, own = g.node("Split", [weights, "cut"], [f"{name}.w.text", f"{name}.w.own"], axis=-1)
        far = g.node("MatMul", [_by_text(g, far, f"{name}.w.by"), text[1]], f"{name}.text.mix")
        far = _by_row(g, far, f"{name}.mix.row")
        seen = g.node("Add", [g.node("MatMul", [own, v], f"{name}.own.mix"), far], f"{name}.mix4")
        seen = g.node("Reshape", [seen, g.shape(0, 0, shape.share, -1, shape.size)], f"{name}.mix")
        h, x = _after_attention(g, x, seen, n, shape)
    ending = g.node("Gather", [h, g.constant("end", np.array(-1, np.int64))], "last.state", axis=1)
    logs = g.node("LogSoftmax", [g.linear(ending, "words", shape.width, shape.words)], "logs", axis=-1)
    g.node("TopK", [logs, "best"], ["logprobs", "tokens"], axis=-1)
    g.output("logprobs", FLOAT, ["rows", "candidates"])
    g.output("tokens", INT64, ["rows", "candidates"])
    return g.model()


def _remembered(g: Graph, new: str, name: str, shape: LlamaShape) -> str:
    """Keys or values of the rows so far, those of the new tokens behind: rows × groups × own × size."""
    before = g.input(f"{name}.before", FLOAT, ["parents", shape.groups, "before", shape.size])
    new = g.node("Reshape", [new, g.shape(0, 0, shape.groups, shape.size)], f"{name}.new4")
    new = g.node("Transpose", [new], f"{name}.new", perm=[0, 2, 1, 3])
    old = g.node("Gather", [before, "parents"], f"{name}.old", axis=0)
    g.node("Concat", [old, new], name, axis=2)
    g.output(name, FLOAT, ["rows", shape.groups, "own", shape.size])
    return name


def _by_text(g: Graph, x: str, name: str) -> str:
    """Rows × groups × queries × any, as texts × groups × (rows of a text · queries) × any."""
    x = g.node("Reshape", [g.node("Gather", [x, "slots"], f"{name}.slots", axis=0), "spread"], f"{name}.spread")
    return str(g.node("Reshape", [g.node("Transpose", [x], f"{name}.t", perm=[0, 2, 1, 3, 4]), "joined"], name))


def _by_row(g: Graph, x: str, name: str) -> str:
    """The way back: rows × groups × queries × any."""
    x = g.node("Transpose", [g.node("Reshape", [x, "folded"], f"{name}.folded")], f"{name}.t", perm=[0, 2, 1, 3, 4])
    return str(g.node("Gather", [g.node("Reshape", [x, "flat"], f"{name}.flat"), "places"], name, axis=0))
