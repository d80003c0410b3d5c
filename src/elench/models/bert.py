"""MiniLM and what was trained on it, in ONNX Runtime: hidden states, LRM's attentions, masked words.

Embeddings are looked up in numpy, straight from the mapped file, so that all roles share them; the layers run in a
session per depth, made when first needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from elench.models.base import Identity
from elench.models.onnx_session import Array, Session, quantised, tensors, turned
from elench.models.shipped import WEIGHTS, grow
from elench.models.tokens import Ints, padded, present
from elench.requests import Floats

PARTS = ("query", "key", "value")
HEAD = (
    "transform.dense.weight",
    "transform.dense.bias",
    "transform.LayerNorm.weight",
    "transform.LayerNorm.bias",
    "bias",
)
SLICE = 256
"""Masked places whose log-probabilities over the whole vocabulary are held at once."""


def weights_of(identity: Identity) -> dict[str, Array]:
    """All tensors of a model by plain names: those of the base, and over them those that training changed."""
    found = dict(tensors((identity.base or identity.folder) / "model.safetensors"))
    if identity.base is not None:
        found |= {_plain(name): values for name, values in grow(tensors(identity.folder / WEIGHTS)).items()}
    return found


def _plain(name: str) -> str:
    """A tensor's name without the prefix of the network it was trained in."""
    if name.startswith("bert."):
        return name[5:]
    inner = name.removeprefix("encoder.")
    return inner if inner != name and inner.startswith(("encoder.", "embeddings.", "pooler.")) else name


class Bert:
    """A BERT-like encoder of MiniLM's shape."""

    window = 512

    def __init__(self, weights: Mapping[str, Array], dtype: str = "float32", graphs: Mapping[str, bytes] | None = None):
        """`graphs` takes the place of the shipped ones, by name: for encoders of another shape."""
        self.weights, self.dtype, self.graphs = weights, dtype, graphs or {}
        self.words = weights["embeddings.word_embeddings.weight"]
        self.places = weights["embeddings.position_embeddings.weight"]
        self.types = weights["embeddings.token_type_embeddings.weight"]
        self.depth = 1 + max(int(n.split(".")[2]) for n in weights if n.startswith("encoder.layer."))
        self.sessions: dict[str, Session] = {}

    def states(
        self,
        rows: Sequence[Sequence[int]],
        types: Ints | None = None,
        *,
        layer: int | None = None,
        extra: Floats | None = None,
    ) -> Floats:
        """Hidden states of padded rows after a layer (default: the last); `extra` is added to the embeddings."""
        ids = padded(rows)
        summed = self._embeddings(ids, types)
        if extra is not None:
            summed += extra
        depth = self.depth if layer is None else layer
        if depth == 0:
            return self._normed(summed)
        inputs = {"embeddings": summed, "mask": present(rows).astype(np.int32)}
        found: Floats = self._session(f"minilm-{depth}", depth).run(inputs)[0]
        return found

    def relate(self, rows: Sequence[Sequence[int]], types: Ints, places: Ints) -> tuple[Floats, Floats]:
        """Attention (highest of all heads) and cosine from the pieces at `places` to all: layers × batch × m × n."""
        inputs = {"embeddings": self._embeddings(padded(rows), types), "mask": present(rows).astype(np.int32)}
        attention, cosine = self._session("minilm-relate", self.depth).run({**inputs, "rows": places[:, :, None]})
        return attention, cosine

    def _embeddings(self, ids: Ints, types: Ints | None) -> Floats:
        kinds = self.types[0] if types is None else self.types[types]
        found: Floats = self.words[ids] + self.places[: ids.shape[1]] + kinds
        return found

    def _normed(self, x: Floats) -> Floats:
        """LayerNorm of the embeddings, for those who ask for layer 0."""
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        name = "embeddings.LayerNorm"
        found: Floats = (scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]).astype(np.float32)
        return found

    def _session(self, name: str, depth: int) -> Session:
        if name not in self.sessions:
            chosen = f"{name}-int8" if self.dtype == "int8" else name
            self.sessions[name] = Session(self.graphs.get(chosen, chosen), self._layers(depth))
        return self.sessions[name]

    def _layers(self, depth: int) -> dict[str, Array]:
        """The weights of the lowest layers, as the graphs name them: queries, keys and values in one matrix."""
        made = {
            f"embeddings.LayerNorm.{end}": self.weights[f"embeddings.LayerNorm.{end}"] for end in ("weight", "bias")
        }
        matrices: set[str] = set()
        for n in range(depth):
            name = f"encoder.layer.{n}"
            made[f"{name}.attention.qkv"] = turned(*(self.weights[f"{name}.attention.self.{k}.weight"] for k in PARTS))
            biases = [self.weights[f"{name}.attention.self.{k}.bias"] for k in PARTS]
            made[f"{name}.attention.qkv.bias"] = np.concatenate(biases)
            for part in ("attention.output.dense", "intermediate.dense", "output.dense"):
                made[f"{name}.{part}.weight"] = turned(self.weights[f"{name}.{part}.weight"])
                made[f"{name}.{part}.bias"] = self.weights[f"{name}.{part}.bias"]
                matrices |= {f"{name}.{part}.weight"}
            for part in ("attention.output.LayerNorm", "output.LayerNorm"):
                made |= {f"{name}.{part}.{end}": self.weights[f"{name}.{part}.{end}"] for end in ("weight", "bias")}
            matrices |= {f"{name}.attention.qkv"}
        return quantised(made, matrices) if self.dtype == "int8" else made

    def logits(self, rows: Sequence[Sequence[int]], types: Ints | None = None) -> Floats:
        """The output of a sequence classifier: pooler and `classifier.*`, or one layer `head.*` (see classifier.py)."""
        states = self.states(rows, types)
        first = states[:, 0]
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
            head["transform.dense.weight"] = turned(head["transform.dense.weight"])
            self.sessions["head"] = Session(
                self.graphs.get("minilm-masked", "minilm-masked"), {**head, "words": turned(self.words)}
            )
        tokens = np.asarray(truth, dtype=np.int64)[:, None]
        parts = [
            self.sessions["head"].run({"states": states[a : a + SLICE], "tokens": tokens[a : a + SLICE]})[0][:, 0]
            for a in range(0, len(tokens), SLICE)
        ]
        found: Floats = np.concatenate(parts)
        return found


def linear(x: Array, weights: Mapping[str, Array], name: str) -> Floats:
    """A small output layer in numpy: x · Wᵀ + b."""
    found: Floats = (x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]).astype(np.float32)
    return found


def bert(identity: Identity) -> Bert:
    """The network of an identity's model."""
    return Bert(weights_of(identity), identity.dtype)
