"""SmolLM2 as a writer in ONNX Runtime: texts are read once, rows go on from them token by token.

A text's keys and values are kept once, whatever the number of rows that continue it; those of the rows stay in ONNX
Runtime's own memory from step to step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from elench.models.base import Identity
from elench.models.branches import Best
from elench.models.llama import FAR, PARTS, Llama, rope_theta
from elench.models.onnx_session import Array, OnnxSession, factor, held, tensors
from elench.models.shipped import WEIGHTS, grow, shipped_config
from elench.models.tokens import Ints
from elench.requests import Floats

if TYPE_CHECKING:
    from onnxruntime import OrtValue

PASS = 16
"""What a pass costs besides its tokens: the time of about so many tokens."""
Memory = dict[str, "OrtValue"]
"""Keys and values by the graph's names (`layers.0.key`), as ONNX Runtime holds them: rows × groups × tokens × size."""


class LlamaWriter(Llama):
    """A Llama-like model that writes; the same session reads the texts and writes their endings."""

    def read(self, texts: Sequence[Sequence[int]]) -> WriterRows:
        """The texts' keys and values; they follow nothing: one hidden token takes the place of a text before them."""
        nothing = {name: held(np.zeros((1, self.groups, 1, self.size), np.float32)) for name in self.memory_names}
        rows = WriterRows(self, nothing, np.full((1, 1), FAR, np.float32))
        rows.begin(texts, [0] * len(texts), 1)
        return WriterRows(self, rows.own, np.where(rows.seen, np.float32(0), FAR))

    @cached_property
    def groups(self) -> int:
        """Heads of keys and values."""
        return len(self.weights["model.layers.0.self_attn.k_proj.weight"]) // self.size

    @cached_property
    def share(self) -> int:
        """Query heads that share a head of keys and values."""
        return len(self.weights["model.layers.0.self_attn.q_proj.weight"]) // self.size // self.groups

    @property
    def memory_names(self) -> list[str]:
        return [f"layers.{n}.{kind}" for n in range(self.depth) for kind in ("key", "value")]

    def session(self) -> OnnxSession:
        """Made when first needed."""
        name = "smollm-write-int8" if self.dtype == "int8" else "smollm-write"
        if name not in self.sessions:
            self.sessions[name] = OnnxSession(self.graphs.get(name, name), self.vectors() | self._factors())
        return self.sessions[name]

    def _factors(self) -> dict[str, Array]:
        """The matrices as the graph names them: queries, keys and values in one, gate and up in another."""
        int8 = self.dtype == "int8"
        made = factor("words", self.output, int8=int8)
        parts = {"qkv": PARTS[:3], "o_proj": PARTS[3:4], "gate_up": PARTS[4:6], "down_proj": PARTS[6:]}
        for n in range(self.depth):
            for part, members in parts.items():
                matrices = (self.weights[f"model.layers.{n}.{m}.weight"] for m in members)
                made |= factor(f"layers.{n}.{part}", *matrices, int8=int8)
        return made


class WriterRows:
    """Rows that continue texts: see `elench.models.branches.Rows`."""

    def __init__(self, network: LlamaWriter, texts: Memory, mask: Floats) -> None:
        self.network, self.mask = network, mask
        self.texts = {name.replace("key", "text.key").replace("value", "text.value"): v for name, v in texts.items()}
        empty = held(np.zeros((1, network.groups, 0, network.size), np.float32))
        self.own: Memory = dict.fromkeys(network.memory_names, empty)
        self.owners: list[int] = []
        self.seen: npt.NDArray[np.bool_]
        self.next: Ints

    def begin(self, wishes: Sequence[Sequence[int]], owners: Sequence[int], best: int) -> Best:
        """Padded on the left, so that all rows end at the same place; the first tokens of long rows are read alone."""
        lengths = np.array([len(w) for w in wishes])
        width = int(lengths.max())
        self.seen = np.arange(width) >= width - lengths[:, None]
        self.next = (self.mask == 0).sum(1)[list(owners)] + lengths
        places = np.maximum(self.next[:, None] + np.arange(-width, 0), 0)
        ids = np.zeros((len(wishes), width), dtype=np.int64)
        ids[self.seen] = [token for wish in wishes for token in wish]
        visible = self.seen[:, None, :] & np.tri(width, dtype=bool)
        parents, cut = np.zeros(len(wishes), dtype=np.int64), _first_part(lengths)
        if cut:
            long = np.flatnonzero(lengths > width - cut)
            self.owners = [owner for owner, length in zip(owners, lengths, strict=True) if length > width - cut]
            self.forward(ids[long, :cut], places[long, :cut], visible[long, :cut, :cut], [0] * len(long), 1)
            parents[long] = np.arange(len(long))  # short rows go on from any row: they do not see this part
        self.owners = list(owners)
        return self.forward(ids[:, cut:], places[:, cut:], visible[:, cut:], parents, best)

    def step(self, parents: Sequence[int], tokens: Sequence[int], best: int) -> Best:
        rows = list(parents)
        self.owners = [self.owners[r] for r in rows]
        self.seen = np.concatenate([self.seen[rows], np.ones((len(rows), 1), bool)], axis=1)
        places = self.next[rows][:, None]
        self.next = places[:, 0] + 1
        ids = np.asarray(tokens, dtype=np.int64)[:, None]
        return self.forward(ids, places, self.seen[:, None, :], rows, best)

    def forward(self, ids: Ints, places: Ints, seen: Array, parents: Sequence[int] | Ints, best: int) -> Best:
        """One pass: the likeliest next tokens of each row; the rows' keys and values grow."""
        network = self.network
        queries = network.share * ids.shape[1]
        mask = np.tile(np.where(seen, np.float32(0), FAR)[:, None], (1, 1, network.share, 1))
        inputs: dict[str, Array] = {
            "embeddings": network.words[ids].astype(np.float32),
            "positions": np.ascontiguousarray(places, dtype=np.int64),
            "mask": np.broadcast_to(mask, (len(ids), *mask.shape[1:])),
            "text.mask": self.mask[:, None, None, :],
            "parents": np.asarray(parents, dtype=np.int64),
            "cut": np.array([self.mask.shape[1], mask.shape[-1]]),
            "best": np.array([best]),
            **_by_text(self.owners, len(self.mask), network.groups, queries),
        }
        given = {name: held(values) for name, values in inputs.items()} | self.texts
        given |= {f"{name}.before": values for name, values in self.own.items()}
        names = network.memory_names
        logs, tokens, *memory = network.session().run_held(given, ["logprobs", "tokens", *names])
        self.own = dict(zip(names, memory, strict=True))
        return logs.numpy(), tokens.numpy()


def _first_part(lengths: Ints) -> int:
    """How many first tokens of left-padded rows to read apart, by the long rows alone, so that least is read."""
    width, count = int(lengths.max()), len(lengths)
    costs = [(width - cut) * count + cut * int((lengths > width - cut).sum()) + PASS for cut in range(1, width)]
    best = int(np.argmin(costs)) if costs else 0
    return best + 1 if costs and costs[best] < width * count else 0


def _by_text(owners: Sequence[int], texts: int, groups: int, queries: int) -> dict[str, Array]:
    """How rows are laid out text by text in the attention (see `elench.train.llama_graphs.llama_writer`)."""
    members: list[list[int]] = [[] for _ in range(texts)]
    for row, text in enumerate(owners):
        members[text].append(row)
    most = max(map(len, members))
    slots = [row for own in members for row in (*own, *[0] * (most - len(own)))]
    places = np.zeros(len(owners), dtype=np.int64)
    for text, own in enumerate(members):
        places[own] = text * most + np.arange(len(own))
    sizes = {
        "spread": (texts, most, groups, queries, -1),
        "joined": (texts, groups, most * queries, -1),
        "folded": (texts, groups, most, queries, -1),
        "flat": (texts * most, groups, queries, -1),
    }
    return {"slots": np.array(slots), "places": places} | {name: np.array(size) for name, size in sizes.items()}


class Merged(Mapping[str, Array]):
    """A model's tensors with LoRA adapters added when they are read: W + scale · up · down."""

    def __init__(self, base: Mapping[str, Array], adapters: Mapping[str, Floats], scale: float) -> None:
        self.base, self.adapters, self.scale = base, adapters, np.float32(scale)

    def __getitem__(self, name: str) -> Array:
        layer = name.removesuffix(".weight")
        if f"{layer}.up" not in self.adapters:
            return self.base[name]
        found: Array = (self.scale * self.adapters[f"{layer}.up"]) @ self.adapters[f"{layer}.down"]
        found += self.base[name]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.base)

    def __len__(self) -> int:
        return len(self.base)


def writer(identity: Identity) -> LlamaWriter:
    """The trained asker of an identity."""
    assert identity.base
    settings = shipped_config(identity.role, identity.folder)["settings"]
    adapters = grow(tensors(identity.folder / WEIGHTS))
    base = tensors(identity.base / "model.safetensors")
    weights = Merged(base, adapters, float(settings["scale"]))
    return LlamaWriter(weights, rope_theta(identity.base), dtype=identity.dtype)
