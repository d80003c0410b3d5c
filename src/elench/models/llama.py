"""SmolLM2 in ONNX Runtime: log-probabilities of tokens, rows laid out so that common beginnings are read once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elench.models.base import Identity
from elench.models.onnx_session import Array, OnnxSession, held, tensors
from elench.models.sharing import Layout, visibility
from elench.models.tokens import padded
from elench.requests import Floats

if TYPE_CHECKING:
    from onnxruntime import OrtValue

FAR = np.float32(-1e9)
"""What a token adds to the score of one it must not see."""
SLICE = 512
"""Positions whose log-probabilities over a part of the vocabulary are held at once."""
POSITIONS = 2304
"""The window of elench.models.causal, and room for what is written after it."""
VOCABULARY_PARTS = 4
"""Parts of the vocabulary that the head multiplies one after the other, so that little memory is needed."""
PARTS = (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
)  # fmt: skip
"""The matrices of a layer."""


class Llama:
    """A Llama-like language model of SmolLM2's shape."""

    def __init__(
        self,
        weights: Mapping[str, Array],
        theta: float,
        size: int = 64,
        graphs: Mapping[str, bytes] | None = None,
        dtype: str = "float32",
    ) -> None:
        """`size` is the width of a head; `graphs` takes the place of the shipped ones, for models of another shape;
        `dtype` is float32, or int8 for a writer."""
        self.weights, self.theta, self.graphs, self.dtype = weights, theta, graphs or {}, dtype
        self.words = weights["model.embed_tokens.weight"]
        self.output = weights.get("lm_head.weight", self.words)
        self.depth = 1 + max(int(n.split(".")[2]) for n in weights if n.startswith("model.layers."))
        self.size = size
        self.sessions: dict[str, OnnxSession] = {}

    def logprobs(
        self, layouts: Sequence[Layout], wanted: Sequence[tuple[int, int]], tokens: Sequence[int]
    ) -> list[float]:
        """Log-probability of each token after the (row, place) before it."""
        ids = padded([x.ids for x in layouts])
        positions, seen = visibility(layouts)
        mask = np.where(seen, np.float32(0), FAR)[:, None, None]
        inputs: dict[str, Array] = {
            "embeddings": self.words[ids].astype(np.float32),
            "positions": positions,
            "mask": mask,
        }
        states = self._run("smollm", inputs, "states", self.matrices)
        rows, places = (list(side) for side in zip(*wanted, strict=True))
        return self._head(states[rows, places], list(tokens))

    def _head(self, states: Floats, tokens: list[int]) -> list[float]:
        found: list[float] = []
        for a in range(0, len(tokens), SLICE):
            targets = self.output[tokens[a : a + SLICE]].astype(np.float32)
            inputs = {"states": states[a : a + SLICE], "targets": targets}
            found += self._run("smollm-head", inputs, "logprobs", self.vocabulary)[:, 0].tolist()
        return found

    def _run(self, name: str, inputs: Mapping[str, Array], output: str, weights: Mapping[str, OrtValue]) -> Floats:
        """One pass through a graph; weights that a file holds are read from there."""
        if name not in self.sessions:
            chosen = name if self.stored == np.float16 else f"{name}-float32"
            small = self.vectors() if name == "smollm" else {}
            self.sessions[name] = OnnxSession(self.graphs.get(chosen, chosen), small)
        given = {**{key: held(values) for key, values in inputs.items()}, **weights}
        found: Floats = self.sessions[name].run_held(given, [output])[0].numpy()
        return found

    @cached_property
    def stored(self) -> type[np.floating[Any]]:
        """What the matrices are kept as: float16 if all are stored so, else float32."""
        return np.float16 if all(w.dtype == np.float16 for w in self.weights.values()) else np.float32

    @cached_property
    def matrices(self) -> dict[str, OrtValue]:
        """The layers' matrices as the graph names them, where they are."""
        own = {
            f"layers.{n}.{part.split('.')[1]}": self.weights[f"model.layers.{n}.{part}.weight"]
            for n in range(self.depth)
            for part in PARTS
        }
        return {name: held(matrix.astype(self.stored, copy=False)) for name, matrix in own.items()}

    @cached_property
    def vocabulary(self) -> dict[str, OrtValue]:
        """The output matrix in parts (see `elench.train.llama_graphs.llama_head`)."""
        words = self.output.astype(self.stored, copy=False)
        return {f"words.{n}": held(part) for n, part in enumerate(np.split(words, VOCABULARY_PARTS))}

    def vectors(self) -> dict[str, Array]:
        """What is small: the rotary positions and the norms' gains."""
        angles = np.arange(POSITIONS)[:, None] / self.theta ** (np.arange(0, self.size, 2) / self.size)
        made = {"cosines": np.cos(angles), "sines": np.sin(angles), "norm.weight": self.weights["model.norm.weight"]}
        for n in range(self.depth):
            for norm in ("input_layernorm", "post_attention_layernorm"):
                made[f"layers.{n}.{norm}.weight"] = self.weights[f"model.layers.{n}.{norm}.weight"]
        return {name: values.astype(np.float32) for name, values in made.items()}


def llama(identity: Identity) -> Llama:
    """The language model of an identity."""
    return Llama(tensors(identity.folder / "model.safetensors"), rope_theta(identity.folder))


def rope_theta(folder: Path) -> float:
    """The base of the rotary positions, as the config spells it."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return float(config.get("rope_theta") or (config.get("rope_parameters") or {}).get("rope_theta") or 10000.0)
