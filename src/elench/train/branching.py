"""Many texts after one beginning, learnt in one pass: the beginning is read once, each text is blind to the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Branched:
    """A passage and what is to be written about it, as token ids."""

    passage: tuple[int, ...]
    branches: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    """(what it begins with, what is to be learnt) of each: the wanted answer, and the human question."""

    @property
    def length(self) -> int:
        return len(self.passage) + sum(len(w) + len(q) for w, q in self.branches)


def collate(batch: list[Branched], pad: int) -> dict[str, torch.Tensor]:
    """Tensors of a batch: a branch sees the passage and itself; positions go on from the passage's end.

    `wanted` are the (row, column) pairs whose next token is to be learnt, `labels` those tokens.
    """
    import torch

    width = max(example.length for example in batch)
    ids = torch.full((len(batch), width), pad)
    positions = torch.zeros(len(batch), width, dtype=torch.long)
    seen = torch.zeros(len(batch), 1, width, width, dtype=torch.bool)
    seen[:, 0].diagonal(dim1=1, dim2=2).fill_(True)
    wanted: list[tuple[int, int]] = []
    labels: list[int] = []
    for row, example in enumerate(batch):
        n = at = len(example.passage)
        ids[row, :n] = torch.tensor(example.passage)
        positions[row, :n] = torch.arange(n)
        seen[row, 0, :n, :n] = torch.ones(n, n, dtype=torch.bool).tril()
        for wish, question in example.branches:
            size = len(wish) + len(question)
            ids[row, at : at + size] = torch.tensor(wish + question)
            positions[row, at : at + size] = torch.arange(n, n + size)
            seen[row, 0, at : at + size, :n] = True
            seen[row, 0, at : at + size, at : at + size] = torch.ones(size, size, dtype=torch.bool).tril()
            wanted += [(row, at + len(wish) - 1 + i) for i in range(len(question))]
            labels += question
            at += size
    return {
        "ids": ids,
        "positions": positions,
        "mask": torch.where(seen, 0.0, torch.finfo(torch.float32).min),
        "wanted": torch.tensor(wanted),
        "labels": torch.tensor(labels),
    }
