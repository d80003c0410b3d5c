"""SmolLM2 in ONNX Runtime: log-probabilities of tokens, rows laid out so that common beginnings are read once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from elench.models.base import Identity
from elench.models.onnx_session import Array, OnnxSession, quantised, tensors, turned
from elench.models.sharing import Layout, visibility
from elench.models.tokens import padded
from elench.requests import Floats

FAR = np.float32(-1e9)
"""What a token adds to the score of one it must not see."""
SLICE = 256
"""Positions whose log-probabilities over the whole vocabulary are held at once."""
POSITIONS = 2304


class Llama:
    """A Llama-like language model of SmolLM2's shape."""

    def __init__(
        self,
        weights: Mapping[str, Array],
        theta: float,
        dtype: str = "float32",
        size: int = 64,
        graphs: Mapping[str, bytes] | None = None,
    ) -> None:
        """`size` is the width of a head; `graphs` takes the place of the shipped ones, for models of another shape."""
        self.weights, self.theta, self.dtype, self.graphs = weights, theta, dtype, graphs or {}
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
        states = self._session("smollm").run(inputs)[0]
        rows, places = (list(side) for side in zip(*wanted, strict=True))
        return self._head(states[rows, places], np.asarray(tokens, dtype=np.int64)[:, None])

    def _head(self, states: Floats, tokens: Array) -> list[float]:
        found: list[float] = []
        for a in range(0, len(tokens), SLICE):
            part = {"states": states[a : a + SLICE], "tokens": tokens[a : a + SLICE]}
            found += self._session("smollm-head").run(part)[0][:, 0].tolist()
        return found

    def _session(self, name: str) -> OnnxSession:
        if name not in self.sessions:
            head = name == "smollm-head"
            weights = {"words": turned(self.output)} if head else self._layers()
            chosen = f"{name}-int8" if self.dtype == "int8" and not head else name
            self.sessions[name] = OnnxSession(self.graphs.get(chosen, chosen), weights)
        return self.sessions[name]

    def _layers(self) -> dict[str, Array]:
        """The weights as the graph names them: queries, keys and values in one matrix, gate and up in another."""
        angles = np.arange(POSITIONS)[:, None] / self.theta ** (np.arange(0, self.size, 2) / self.size)
        made: dict[str, Array] = {
            "cosines": np.cos(angles).astype(np.float32),
            "sines": np.sin(angles).astype(np.float32),
            "norm.weight": self.weights["model.norm.weight"].astype(np.float32),
        }
        matrices: set[str] = set()
        for n in range(self.depth):
            name, own = f"layers.{n}", f"model.layers.{n}"
            parts = {
                "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), "o_proj": ("self_attn.o_proj",),
                "gate_up": ("mlp.gate_proj", "mlp.up_proj"), "down_proj": ("mlp.down_proj",),
            }  # fmt: skip
            for part, members in parts.items():
                made[f"{name}.{part}"] = turned(*(self.weights[f"{own}.{m}.weight"] for m in members))
                matrices.add(f"{name}.{part}")
            for norm in ("input_layernorm", "post_attention_layernorm"):
                made[f"{name}.{norm}.weight"] = self.weights[f"{own}.{norm}.weight"].astype(np.float32)
        return quantised(made, matrices) if self.dtype == "int8" else made


def llama(identity: Identity) -> Llama:
    """The language model of an identity."""
    return Llama(tensors(identity.folder / "model.safetensors"), rope_theta(identity.folder), identity.dtype)


def rope_theta(folder: Path) -> float:
    """The base of the rotary positions, as the config spells it."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return float(config.get("rope_theta") or (config.get("rope_parameters") or {}).get("rope_theta") or 10000.0)
