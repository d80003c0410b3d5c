"""DeBERTa and what was trained on it, in ONNX Runtime: hidden states, classifiers, spans.

Each attention also depends on the distance of two pieces. What a piece says of every distance is computed once per
model here; the graph gets, for each layer, one row for each distance that occurs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from elench.models.base import Identity
from elench.models.bert import Bert, after_attention, linear, weights_of
from elench.models.onnx_session import Array, OnnxSession, factor
from elench.models.tokens import Ints, padded, present
from elench.requests import Floats

GRAPH = "deberta"
HEADS, NEAR, FARTHEST = 6, 128, 511
"""Distances up to NEAR count each, those beyond by their logarithm, up to FARTHEST."""
SPAN = 2 * NEAR
EPSILON = 1e-7


class Deberta:
    """An encoder of DeBERTa-v3-xsmall's shape."""

    def __init__(self, weights: Mapping[str, Array], dtype: str = "float32", graph: bytes | None = None) -> None:
        self.weights, self.dtype, self.graph = weights, dtype, graph
        self.words = weights["embeddings.word_embeddings.weight"]
        self.depth = 1 + max(int(n.split(".")[2]) for n in weights if n.startswith("encoder.layer."))
        self.distances = self._distances()
        self.session: OnnxSession | None = None

    def states(self, rows: Sequence[Sequence[int]]) -> Floats:
        """Hidden states of padded rows after the last layer."""
        ids = padded(rows)
        n = ids.shape[1]
        shorter = max(2 * n - 2, 1)  # a row of products by distance, one number less (see deberta_graphs._sheared)
        numbers = {"first": [n - 1], "behind": [n - 1 + n * shorter], "square": [0, 0, n, shorter], "tokens": [n]}
        inputs = {
            "embeddings": self.words[ids].astype(np.float32),
            "mask": (present(rows).astype(np.float32) - 1)[:, None, None] * np.float32(1e9),
            "distances": self.distances[:, buckets(np.arange(n - 1, -n, -1)) + SPAN],
            **{name: np.array(values, np.int64) for name, values in numbers.items()},
        }
        if self.session is None:
            name = f"{GRAPH}-int8" if self.dtype == "int8" else GRAPH
            self.session = OnnxSession(self.graph or name, self._layers())
        found: Floats = self.session.run(inputs)[0]
        return found

    def logits(self, rows: Sequence[Sequence[int]], types: Ints | None = None) -> Floats:
        """The output of transformers' sequence classifier."""
        pooled = gelu(linear(self.states(rows)[:, 0], self.weights, "pooler.dense"))
        return linear(pooled, self.weights, "classifier")

    def spans(self, rows: Sequence[Sequence[int]], types: Ints) -> tuple[Floats, Floats]:
        """Start and end logits of a question-answering model."""
        found = linear(self.states(rows), self.weights, "qa_outputs")
        return found[..., 0], found[..., 1]

    def _distances(self) -> Floats:
        """Per layer and distance what it adds as a key and as a query, scaled: layers × distances × (2 · width)."""
        places = self.weights["encoder.rel_embeddings.weight"].astype(np.float32)
        places = places - places.mean(-1, keepdims=True)
        places /= np.sqrt((places**2).mean(-1, keepdims=True) + EPSILON)
        places = places * self.weights["encoder.LayerNorm.weight"] + self.weights["encoder.LayerNorm.bias"]
        made = np.empty((self.depth, len(places), 2 * places.shape[1]), np.float32)
        for n in range(self.depth):
            name = f"encoder.layer.{n}.attention.self"
            keys, queries = (linear(places, self.weights, f"{name}.{p}_proj") for p in ("key", "query"))
            made[n] = np.concatenate([keys, queries * self._scale()], axis=1)
        return made

    def _scale(self) -> np.float32:
        """Three products are added in each attention: of pieces, and of each with the distance."""
        return np.float32((3 * self.words.shape[1] / HEADS) ** -0.5)

    def _layers(self) -> dict[str, Array]:
        """The weights as the graph names them; queries are scaled here."""
        int8 = self.dtype == "int8"
        made = {
            f"embeddings.LayerNorm.{end}": self.weights[f"embeddings.LayerNorm.{end}"].astype(np.float32)
            for end in ("weight", "bias")
        }
        for n in range(self.depth):
            name = f"encoder.layer.{n}"
            scales = {"query": self._scale(), "key": np.float32(1), "value": np.float32(1)}
            own = {
                end: [self.weights[f"{name}.attention.self.{p}_proj.{end}"] * s for p, s in scales.items()]
                for end in ("weight", "bias")
            }
            made |= factor(f"{name}.attention.qkv", *own["weight"], int8=int8)
            made[f"{name}.attention.qkv.bias"] = np.concatenate(own["bias"]).astype(np.float32)
            made |= after_attention(self.weights, name, int8)
        return made


def buckets(back: Ints) -> Ints:
    """DeBERTa's bucket of each distance to an earlier (positive) or later piece."""
    far = np.abs(back)
    steps = np.ceil(np.log(np.maximum(far, NEAR) / NEAR) / np.log(FARTHEST / NEAR) * (NEAR - 1)) + NEAR
    found: Ints = np.clip(np.where(far <= NEAR, back, steps.astype(np.int64) * np.sign(back)), -SPAN, SPAN - 1)
    return found


def gelu(x: Floats) -> Floats:
    """x · Φ(x)."""
    from scipy.special import ndtr

    found: Floats = (x * ndtr(x)).astype(np.float32)
    return found


def network(identity: Identity) -> Bert | Deberta:
    """The network of an identity's model, by the names of its weights."""
    weights = weights_of(identity)
    kind = Deberta if "encoder.rel_embeddings.weight" in weights else Bert
    return kind(weights, identity.dtype)
