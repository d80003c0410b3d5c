"""Static word vectors: unit-length rows, so that the product of two is their cosine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from elench.errors import UsageError
from elench.models.base import Identity, Model, ModelChoice
from elench.models.checkpoints import find
from elench.models.word_index import read_words
from elench.requests import Floats, WordVectors


class Vectors(Model[WordVectors, Floats]):
    """A table of word vectors; a word is looked up as it is, then lower-cased."""

    role: ClassVar[str] = "vectors"
    budget = 100_000

    def __init__(self, rows: dict[str, int], table: Floats) -> None:
        self.rows, self.table = rows, table

    def lengths(self, requests: Sequence[WordVectors]) -> list[int]:
        return [len(r.words) + 1 for r in requests]

    def answer(self, batch: Sequence[WordVectors]) -> list[Floats]:
        return [self._unit(r.words) for r in batch]

    def _unit(self, words: tuple[str, ...]) -> Floats:
        found = np.zeros((len(words), self.table.shape[1]), dtype=np.float32)
        for i, word in enumerate(words):
            row = self.rows.get(word, self.rows.get(word.lower(), -1))
            if row >= 0:
                found[i] = self.table[row]
        norms = np.linalg.norm(found, axis=1, keepdims=True)
        found /= np.where(norms > 0, norms, 1.0)
        return found


def _read(folder: Path) -> tuple[dict[str, int], Floats]:
    """A .npy table with a .parquet index of its words, or a text file of `word number …` lines (GloVe, fastText)."""
    tables, indices, texts = (sorted(folder.glob(f"*.{e}")) for e in ("npy", "parquet", "txt"))
    texts += sorted(folder.glob("*.vec"))
    if tables and indices:
        return {w: i for i, w in enumerate(read_words(indices[0]))}, np.load(
            tables[0], mmap_mode="r", allow_pickle=False
        )
    if not texts:
        raise UsageError(f"vectors in {folder.name}: neither .npy with .parquet nor a text file of vectors")
    names: list[str] = []
    rows: list[Floats] = []
    with texts[0].open(encoding="utf-8") as lines:
        for line in lines:
            word, *numbers = line.rstrip().split(" ")
            if len(numbers) > 1:  # a first line with two counts is fastText's header
                names.append(word)
                rows.append(np.array(numbers, dtype=np.float32))
    return {w: i for i, w in enumerate(names)}, np.stack(rows)


def resolve(choice: ModelChoice) -> Identity:
    """The word vectors a run asks for."""
    found = find(choice)
    return Identity("vectors", found.name, found.sha256, folder=found.folder, asked=choice.name)


def load(identity: Identity) -> Model[WordVectors, Floats]:
    return Vectors(*_read(identity.folder))
