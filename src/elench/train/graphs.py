"""Write the ONNX graphs of the embedded models: structure only, weights are put in when a session is made.

    elench train graphs            # into packages/elench-models/elench_models/graphs

A graph is a few dozen kB; its initialisers are declared with shape and type and no data. The same command writes the
same bytes. Two families: BERT-like encoders (MiniLM) and Llama-like language models (SmolLM2). Each exists in float32
and in int8, where the matrix products multiply 8-bit integers: weights have one scale per column, inputs one per row,
so that no answer depends on what else is in its batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
from onnx import TensorProto, helper, numpy_helper

OPSET, IR, MICROSOFT = 21, 10, "com.microsoft"
POSITIONS = 2304
"""Positions of a language model: the window of elench.models.causal, and room for what is written after it."""
FLOAT, INT64, INT32, UINT8, INT8 = (
    TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8,
)  # fmt: skip


@dataclass(frozen=True)
class BertShape:
    """The sizes of a BERT-like encoder; MiniLM's by default."""

    layers: int = 6
    width: int = 384
    heads: int = 12
    inner: int = 1536
    words: int = 30522
    epsilon: float = 1e-12


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


@dataclass
class Graph:
    """A graph under construction: nodes, declared weights, inputs and outputs."""

    int8: bool = False
    nodes: list[Any] = field(default_factory=list)
    weights: dict[str, Any] = field(default_factory=dict)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    quantised: dict[str, tuple[str, str]] = field(default_factory=dict)

    def input(self, name: str, kind: int, shape: list[Any]) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, kind: int, shape: list[Any]) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def weight(self, name: str, *shape: int, kind: int = FLOAT) -> str:
        """Declare a weight; its values come when a session is made."""
        tensor = TensorProto(name=name, data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="weights")
        self.weights[name] = tensor
        return name

    def constant(self, name: str, values: Any) -> str:
        """A small constant that belongs to the structure."""
        self.weights.setdefault(name, numpy_helper.from_array(np.asarray(values), name))
        return name

    def shape(self, *sizes: int) -> str:
        return self.constant("shape" + "".join(f"_{n}" for n in sizes), np.array(sizes, np.int64))

    def node(self, op: str, inputs: list[str], name: str | list[str], domain: str = "", **attributes: Any) -> Any:
        outputs = [name] if isinstance(name, str) else name
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return name

    def linear(self, x: str, name: str, rows: int, columns: int) -> str:
        """x · W without a bias; in int8, x is rounded row by row and the result scaled back."""
        if not self.int8:
            return str(self.node("MatMul", [x, self.weight(name, rows, columns)], f"{name}.out"))
        whole, scale = self.quantised.get(x) or self.quantise(x, rows)
        weight = [self.weight(name, rows, columns, kind=INT8), self.weight(f"{name}:scale", columns)]
        one = self.constant("one", np.array(1, np.float32))
        middle = self.constant("middle", np.array(128, np.uint8))
        made = self.node("MatMulIntegerToFloat", [whole, weight[0], one, weight[1], middle], f"{name}.whole", MICROSOFT)
        return str(self.node("Mul", [made, scale], f"{name}.out"))

    def quantise(self, x: str, width: int) -> tuple[str, str]:
        """Each row of x as unsigned bytes around 128, and the scale of each row."""
        axes = self.constant("last", np.array([-1], np.int64))
        most = self.node("ReduceMax", [self.node("Abs", [x], f"{x}.abs"), axes], f"{x}.most", keepdims=1)
        least = self.constant("least", np.array(1e-12, np.float32))
        step = self.constant("step", np.array(1 / 127, np.float32))
        scale = self.node("Mul", [self.node("Max", [most, least], f"{x}.top"), step], f"{x}.scale")
        flat = self.node("Reshape", [x, self.shape(-1, width)], f"{x}.flat")
        steps = self.node("Reshape", [scale, self.shape(-1)], f"{x}.steps")
        middle = self.constant("middle", np.array(128, np.uint8))
        zeros = self.node("Expand", [middle, self.node("Shape", [steps], f"{x}.count")], f"{x}.zeros")
        coded = self.node("QuantizeLinear", [flat, steps, zeros], f"{x}.coded", axis=0)
        whole = self.node("Reshape", [coded, self.node("Shape", [x], f"{x}.size")], f"{x}.bytes")
        self.quantised[x] = whole, scale
        return whole, scale

    def normed(self, x: str, skip: str, bias: str | None, name: str, shape: BertShape) -> str:
        """BERT's LayerNorm of x + skip (+ bias)."""
        scale, shift = self.weight(f"{name}.weight", shape.width), self.weight(f"{name}.bias", shape.width)
        inputs = [x, skip, scale, shift] + ([self.weight(bias, shape.width)] if bias else [])
        return str(self.node("SkipLayerNormalization", inputs, f"{name}.out", MICROSOFT, epsilon=shape.epsilon))

    def model(self) -> Any:
        graph = helper.make_graph(self.nodes, "elench", self.inputs, self.outputs, list(self.weights.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="elench")


# --- BERT ------------------------------------------------------------------------------------------------------------


def bert(shape: BertShape, int8: bool = False, relate: bool = False) -> Any:
    """Hidden states after `shape.layers` layers from summed embeddings; with `relate`, also what LRM needs.

    Inputs: embeddings (batch × tokens × width, not normed yet), mask (batch × tokens, 1 for a real token); with
    `relate` also rows (batch × questions): the places of the question's pieces. Outputs: states; with `relate`,
    attention (the highest of all heads) and cosine, both layers × batch × questions × tokens.
    """
    g = Graph(int8)
    g.input("embeddings", FLOAT, ["batch", "tokens", shape.width])
    g.input("mask", INT32, ["batch", "tokens"])
    gains = [g.weight("embeddings.LayerNorm.weight", shape.width), g.weight("embeddings.LayerNorm.bias", shape.width)]
    x = g.node("LayerNormalization", ["embeddings", *gains], "layer.in", axis=-1, epsilon=shape.epsilon)
    if relate:
        g.input("rows", INT64, ["batch", "questions", 1])
        gap = g.node(
            "Sub", [g.node("Cast", ["mask"], "seen", to=FLOAT), g.constant("one", np.array(1, np.float32))], "gap"
        )
        wide = g.node("Unsqueeze", [gap, g.constant("axes12", np.array([1, 2], np.int64))], "gap.wide")
        g.node("Mul", [wide, g.constant("far", np.array(1e9, np.float32))], "hidden")
    attentions, cosines = [], []
    for n in range(shape.layers):
        name = f"encoder.layer.{n}"
        mixed = g.linear(x, f"{name}.attention.qkv", shape.width, 3 * shape.width)
        mixed = g.node("Add", [mixed, g.weight(f"{name}.attention.qkv.bias", 3 * shape.width)], f"{name}.qkv")
        parts = g.node("Split", [mixed], [f"{name}.q", f"{name}.k", f"{name}.v"], axis=-1, num_outputs=3)
        if relate:
            attentions.append(_row_attention(g, parts[0], parts[1], name, shape))
        seen = g.node("MultiHeadAttention", [*parts, "", "mask"], f"{name}.seen", MICROSOFT, num_heads=shape.heads)
        out = g.linear(seen, f"{name}.attention.output.dense.weight", shape.width, shape.width)
        dense, norm = f"{name}.attention.output.dense.bias", f"{name}.attention.output.LayerNorm"
        x = g.normed(out, x, dense, norm, shape)
        wide = g.linear(x, f"{name}.intermediate.dense.weight", shape.width, shape.inner)
        bias = g.weight(f"{name}.intermediate.dense.bias", shape.inner)
        wide = g.node("BiasGelu", [wide, bias], f"{name}.gelu", MICROSOFT)
        out = g.linear(wide, f"{name}.output.dense.weight", shape.inner, shape.width)
        x = g.normed(out, x, f"{name}.output.dense.bias", f"{name}.output.LayerNorm", shape)
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


def masked_head(shape: BertShape) -> Any:
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


# --- Llama -----------------------------------------------------------------------------------------------------------


def llama(shape: LlamaShape, int8: bool = False) -> Any:
    """Normed last states from embeddings, positions and an additive mask (rows or 1 × 1 × 1 × tokens × tokens)."""
    g = Graph(int8)
    g.input("embeddings", FLOAT, ["batch", "tokens", shape.width])
    g.input("positions", INT64, ["batch", "tokens"])
    g.input("mask", FLOAT, ["some", 1, 1, "tokens", "tokens"])
    turn = [g.weight(side, POSITIONS, shape.size // 2) for side in ("cosines", "sines")]
    scale = g.constant("scale", np.array(shape.size**-0.5, np.float32))
    gain = g.weight("layers.0.input_layernorm.weight", shape.width)
    x: str = "embeddings"
    h = g.node("SimplifiedLayerNormalization", [x, gain], "in", axis=-1, epsilon=shape.epsilon)
    kept, own = shape.groups * shape.size, shape.heads // shape.groups
    sizes = g.constant("sizes", np.array([shape.width, kept, kept], np.int64))
    for n in range(shape.layers):
        name = f"layers.{n}"
        mixed = g.linear(h, f"{name}.qkv", shape.width, shape.width + 2 * kept)
        q, k, v = g.node("Split", [mixed, sizes], [f"{name}.{part}" for part in "qkv"], axis=-1)
        q = g.node("RotaryEmbedding", [q, "positions", *turn], f"{name}.q.turned", MICROSOFT, num_heads=shape.heads)
        k = g.node("RotaryEmbedding", [k, "positions", *turn], f"{name}.k.turned", MICROSOFT, num_heads=shape.groups)
        q = g.node("Mul", [q, scale], f"{name}.q.scaled")
        five = g.shape(0, 0, shape.groups, own, shape.size)
        q = g.node("Transpose", [g.node("Reshape", [q, five], f"{name}.q5")], f"{name}.q.t", perm=[0, 2, 3, 1, 4])
        one = g.shape(0, 0, shape.groups, 1, shape.size)
        k = g.node("Transpose", [g.node("Reshape", [k, one], f"{name}.k5")], f"{name}.k.t", perm=[0, 2, 3, 4, 1])
        v = g.node("Transpose", [g.node("Reshape", [v, one], f"{name}.v5")], f"{name}.v.t", perm=[0, 2, 3, 1, 4])
        scores = g.node("Add", [g.node("MatMul", [q, k], f"{name}.dots"), "mask"], f"{name}.scores")
        weights = g.node("Softmax", [scores], f"{name}.weights", axis=-1)
        seen = g.node(
            "Transpose", [g.node("MatMul", [weights, v], f"{name}.mix")], f"{name}.mix.t", perm=[0, 3, 1, 2, 4]
        )
        seen = g.node("Reshape", [seen, g.shape(0, 0, shape.width)], f"{name}.seen")
        out = g.linear(seen, f"{name}.o_proj", shape.width, shape.width)
        h, x = _residual(g, x, out, f"{name}.post_attention_layernorm.weight", shape)
        wide = g.linear(h, f"{name}.gate_up", shape.width, 2 * shape.inner)
        gate, up = g.node("Split", [wide], [f"{name}.gate", f"{name}.up"], axis=-1, num_outputs=2)
        gate = g.node("QuickGelu", [gate], f"{name}.silu", MICROSOFT, alpha=1.0)
        out = g.linear(g.node("Mul", [gate, up], f"{name}.wide"), f"{name}.down_proj", shape.inner, shape.width)
        last = n == shape.layers - 1
        h, x = _residual(g, x, out, "norm.weight" if last else f"layers.{n + 1}.input_layernorm.weight", shape)
    g.node("Identity", [h], "states")
    g.output("states", FLOAT, ["batch", "tokens", shape.width])
    return g.model()


def _residual(g: Graph, x: str, out: str, norm: str, shape: LlamaShape) -> tuple[str, str]:
    """RMSNorm of x + out, and the sum itself."""
    names = [f"{norm}.out", "", "", f"{norm}.sum"]
    inputs = [out, x, g.weight(norm, shape.width)]
    g.node("SkipSimplifiedLayerNormalization", inputs, names, MICROSOFT, epsilon=shape.epsilon)
    return names[0], names[3]


def llama_head(shape: LlamaShape) -> Any:
    """Log-probabilities of given tokens from normed states (output matrix tied to the embeddings)."""
    g = Graph()
    g.input("states", FLOAT, ["places", shape.width])
    g.input("tokens", INT64, ["places", 1])
    logs = g.node("LogSoftmax", [g.linear("states", "words", shape.width, shape.words)], "logs", axis=-1)
    g.node("GatherElements", [logs, "tokens"], "logprobs", axis=1)
    g.output("logprobs", FLOAT, ["places", 1])
    return g.model()


# --- the files -------------------------------------------------------------------------------------------------------


def graphs() -> dict[str, Any]:
    """Every graph that is shipped, by file name."""
    made: dict[str, Any] = {}
    for int8 in (False, True):
        end = "-int8" if int8 else ""
        made |= {f"minilm-{n}{end}": bert(BertShape(layers=n), int8) for n in range(1, BertShape.layers + 1)}
        made[f"minilm-relate{end}"] = bert(BertShape(), int8, relate=True)
        made[f"smollm{end}"] = llama(LlamaShape(), int8)
    made["minilm-masked"] = masked_head(BertShape())
    made["smollm-head"] = llama_head(LlamaShape())
    return made


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder; default: that of elench-models.")
def command(out: Path | None) -> None:
    """Write the ONNX graphs of the embedded models (structure only, no weights)."""
    from elench.models.onnx_session import GRAPHS

    folder = out or GRAPHS
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in graphs().items():
        content = model.SerializeToString(deterministic=True)
        (folder / f"{name}.onnx").write_bytes(content)
        click.echo(f"{name}.onnx  {len(content):,} bytes")
