"""MiniLM, MPNet and what was trained on them, in ONNX Runtime: hidden states, LRM's attentions, masked words.

Embeddings are looked up in numpy, straight from the mapped file, so that all roles share them; the layers run in a
session per depth, made when first needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from elench.models.base import Identity
from elench.models.onnx_session import Array, OnnxSession, factor, tensors
from elench.models.shipped import WEIGHTS, grow
from elench.models.tokens import Ints, padded, present
from elench.requests import Floats

PARTS = ("query", "key", "value")
WHOLE = ("attention.output.dense", "intermediate.dense", "output.dense")
NORMS = ("attention.output.LayerNorm", "output.LayerNorm")
"""Parts of a layer beside the attention itself."""
HEAD = (
    "transform.dense.weight",
    "transform.dense.bias",
    "transform.LayerNorm.weight",
    "transform.LayerNorm.bias",
    "bias",
)
RENAMED = {
    "attention.attn.q.": "attention.self.query.",
    "attention.attn.k.": "attention.self.key.",
    "attention.attn.v.": "attention.self.value.",
    "attention.attn.o.": "attention.output.dense.",
    "attention.LayerNorm.": "attention.output.LayerNorm.",
    "lm_head.dense.": "cls.predictions.transform.dense.",
    "lm_head.layer_norm.": "cls.predictions.transform.LayerNorm.",
    "lm_head.bias": "cls.predictions.bias",
}
"""MPNet's names of what BERT calls otherwise."""
RELATIVE = "encoder.relative_attention_bias.weight"
FARTHEST = 128
"""The distance from which on MPNet's pieces count as equally far."""
SLICE = 256
"""Masked places whose log-probabilities over the whole vocabulary are held at once."""


def weights_of(identity: Identity) -> dict[str, Array]:
    """All tensors of a model by plain names: those of the base, and over them those that training changed."""
    found = dict(tensors((identity.base or identity.folder) / "model.safetensors"))
    if identity.base is not None:
        found |= grow(tensors(identity.folder / WEIGHTS))
    return {_plain(name): values for name, values in found.items()}


def _plain(name: str) -> str:
    """A tensor's name without the prefix of the network it was trained in."""
    for theirs, plain in RENAMED.items():
        name = name.replace(theirs, plain)
    if name.startswith(("bert.", "mpnet.", "deberta.")):
        return name.partition(".")[2]
    inner = name.removeprefix("encoder.")
    return inner if inner != name and inner.startswith(("encoder.", "embeddings.", "pooler.")) else name


class Bert:
    """A BERT-like encoder of MiniLM's or MPNet's shape."""

    window = 512

    def __init__(self, weights: Mapping[str, Array], dtype: str = "float32", graphs: Mapping[str, bytes] | None = None):
        """`graphs` takes the place of the shipped ones, by name: for encoders of another shape."""
        self.weights, self.dtype, self.graphs = weights, dtype, graphs or {}
        self.relative = weights.get(RELATIVE)
        self.family, self.epsilon = ("minilm", 1e-12) if self.relative is None else ("mpnet", 1e-5)
        self.words = weights["embeddings.word_embeddings.weight"]
        # MPNet counts positions from behind the padding id and has no token types
        self.places = weights["embeddings.position_embeddings.weight"][0 if self.relative is None else 2 :]
        self.types = weights.get("embeddings.token_type_embeddings.weight", np.zeros((2, 1), np.float32))
        self.depth = 1 + max(int(n.split(".")[2]) for n in weights if n.startswith("encoder.layer."))
        self.sessions: dict[str, OnnxSession] = {}

    def states(
        self,
        rows: Sequence[Sequence[int]],
        types: Ints | None = None,
        *,
        layer: int | None = None,
        extra: Floats | None = None,
    ) -> Floats:
        """Hidden states of padded rows after a layer (default: the last); `extra` is added to the embeddings."""
        inputs = self._inputs(rows, types)
        if extra is not None:
            inputs["embeddings"] += extra
        depth = self.depth if layer is None else layer
        if depth == 0:
            return self._normed(inputs["embeddings"])
        found: Floats = self._session(str(depth), depth).run(inputs)[0]
        return found

    def relate(self, rows: Sequence[Sequence[int]], types: Ints, places: Ints) -> tuple[Floats, Floats]:
        """Attention (highest of all heads) and cosine from the pieces at `places` to all: layers × batch × m × n."""
        inputs = {**self._inputs(rows, types), "rows": places[:, :, None]}
        attention, cosine = self._session("relate", self.depth).run(inputs)
        return attention, cosine

    def _inputs(self, rows: Sequence[Sequence[int]], types: Ints | None) -> dict[str, Array]:
        ids = padded(rows)
        n = ids.shape[1]
        kinds = self.types[0] if types is None else self.types[types]
        made = {"embeddings": self.words[ids] + self.places[:n] + kinds, "mask": present(rows).astype(np.int32)}
        return made if self.relative is None else made | {"bias": self._bias(n)}

    def _bias(self, n: int) -> Floats:
        """What MPNet adds to the attention between n places: 1 × heads × n × n, by their distance alone."""
        assert self.relative is not None
        by_distance = self.relative[buckets(np.arange(n - 1, -n, -1), len(self.relative))].T
        found: Floats = np.lib.stride_tricks.sliding_window_view(by_distance, n, axis=1)[None, :, ::-1]
        return np.ascontiguousarray(found)

    def _normed(self, x: Floats) -> Floats:
        """LayerNorm of the embeddings, for those who ask for layer 0."""
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + self.epsilon)
        name = "embeddings.LayerNorm"
        found: Floats = (scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]).astype(np.float32)
        return found

    def _session(self, name: str, depth: int) -> OnnxSession:
        if name not in self.sessions:
            chosen = f"{self.family}-{name}-int8" if self.dtype == "int8" else f"{self.family}-{name}"
            self.sessions[name] = OnnxSession(self.graphs.get(chosen, chosen), self._layers(depth))
        return self.sessions[name]

    def _layers(self, depth: int) -> dict[str, Array]:
        """The weights of the lowest layers, as the graphs name them: queries, keys and values in one matrix."""
        int8 = self.dtype == "int8"
        made = {
            f"embeddings.LayerNorm.{end}": self.weights[f"embeddings.LayerNorm.{end}"] for end in ("weight", "bias")
        }
        for n in range(depth):
            name = f"encoder.layer.{n}"
            queries = (self.weights[f"{name}.attention.self.{k}.weight"] for k in PARTS)
            made |= factor(f"{name}.attention.qkv", *queries, int8=int8)
            biases = [self.weights[f"{name}.attention.self.{k}.bias"] for k in PARTS]
            made[f"{name}.attention.qkv.bias"] = np.concatenate(biases)
            made |= after_attention(self.weights, name, int8)
        return made

    def logits(self, rows: Sequence[Sequence[int]], types: Ints | None = None) -> Floats:
        """The output of a sequence classifier, by the names of its head's tensors (see classifier.py)."""
        states = self.states(rows, types)
        first = states[:, 0]
        if "classifier.out_proj.weight" in self.weights:
            return linear(np.tanh(linear(first, self.weights, "classifier.dense")), self.weights, "classifier.out_proj")
        if "classifier.weight" in self.weights:
            return linear(np.tanh(linear(first, self.weights, "pooler.dense")), self.weights, "classifier")
        if self.weights["head.weight"].shape[1] == 2 * first.shape[1]:
            mask = present(rows)[:, :, None].astype(np.float32)
            first = np.concatenate([(states * mask).sum(1) / mask.sum(1), first], axis=1)
        return linear(first, self.weights, "head")

    def spans(self, rows: Sequence[Sequence[int]], types: Ints) -> tuple[Floats, Floats]:
        """Start and end logits of a question-answering model."""
        found = linear(self.states(rows, types), self.weights, "qa_outputs")
        return found[..., 0], found[..., 1]

    def keyphrase_logits(self, rows: Sequence[Sequence[int]], types: Ints, facts: Ints) -> Floats:
        """Two classes per token, the facts of each added to its embedding."""
        extra: Floats = self.weights["facts.weight"][facts]
        return linear(self.states(rows, types, extra=extra), self.weights, "head")

    def masked(self, rows: Sequence[Sequence[int]], places: Sequence[tuple[int, int]], truth: Sequence[int]) -> Floats:
        """Log-probabilities of the true tokens at (row, place) pairs; only these go through the head."""
        at, where = zip(*places, strict=True)
        states = self.states(rows)[list(at), list(where)]
        if "head" not in self.sessions:
            head = {name: self.weights[f"cls.predictions.{name}"] for name in HEAD}
            head |= factor("transform.dense.weight", head["transform.dense.weight"]) | factor("words", self.words)
            name = f"{self.family}-masked"
            self.sessions["head"] = OnnxSession(self.graphs.get(name, name), head)
        tokens = np.asarray(truth, dtype=np.int64)[:, None]
        parts = [
            self.sessions["head"].run({"states": states[a : a + SLICE], "tokens": tokens[a : a + SLICE]})[0][:, 0]
            for a in range(0, len(tokens), SLICE)
        ]
        found: Floats = np.concatenate(parts)
        return found


def after_attention(weights: Mapping[str, Array], name: str, int8: bool) -> dict[str, Array]:
    """The weights of what follows on a layer's attention, as the graphs name them."""
    made: dict[str, Array] = {}
    for part in WHOLE:
        made |= factor(f"{name}.{part}.weight", weights[f"{name}.{part}.weight"], int8=int8)
        made[f"{name}.{part}.bias"] = weights[f"{name}.{part}.bias"].astype(np.float32)
    for vector in (f"{name}.{part}.{end}" for part in NORMS for end in ("weight", "bias")):
        made[vector] = weights[vector].astype(np.float32)
    return made


def buckets(back: Ints, count: int = 32) -> Ints:
    """MPNet's bucket of each distance to an earlier (positive) or later piece: far ones by their logarithm."""
    half, far = count // 2, np.abs(back)
    near = half // 2
    steps = np.log(np.maximum(far, 1) / near) / np.log(FARTHEST / near) * (half - near)
    found: Ints = np.where(far < near, far, np.minimum(near + np.floor(steps + 1e-6).astype(np.int64), half - 1))
    return found + half * (back < 0)


def linear(x: Array, weights: Mapping[str, Array], name: str) -> Floats:
    """A small output layer in numpy: x · Wᵀ + b."""
    found: Floats = (x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]).astype(np.float32)
    return found


def bert(identity: Identity) -> Bert:
    """The network of a model on MiniLM or MPNet."""
    return Bert(weights_of(identity), identity.dtype)
