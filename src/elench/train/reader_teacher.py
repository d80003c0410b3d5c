"""A larger reader as teacher of a smaller one: its probabilities, told in the smaller one's tokens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from scipy.special import softmax

from elench.errors import UsageError
from elench.models.base import ModelChoice, load_model
from elench.models.packing import pack
from elench.models.reader import SpanReader
from elench.models.shipped import WEIGHTS
from elench.requests import Floats, Span


class Asked(Protocol):
    """A question in words, and the text it is asked of with the places of the pupil's tokens."""

    @property
    def asked(self) -> str: ...

    @property
    def window(self) -> tuple[str, list[Span]]: ...


@dataclass(frozen=True)
class SpanTeacher:
    """A stored reader whose probabilities are half of what another one learns (soft labels)."""

    reader: SpanReader

    @classmethod
    def from_folder(cls, folder: Path) -> SpanTeacher:
        if not (folder / WEIGHTS).exists():
            raise UsageError(f"--teacher {folder}: holds no stored reader")
        reader = load_model(ModelChoice("reader", str(folder)))
        assert isinstance(reader, SpanReader)
        return cls(reader)

    def probabilities(self, pieces: Sequence[Asked]) -> Floats:
        """P(first) and P(last) of "no answer" and then of each token of the text, piece after piece in one row each."""
        found: dict[int, Floats] = {}
        windows = [piece.window for piece in pieces]
        own = self.reader.tokens.pieces([text for text, _ in windows])
        questions = [ids[-self.reader.asked :] for ids in self.reader.tokens.ids([piece.asked for piece in pieces])]
        for group in pack([len(ids) for ids, _ in own], self.reader.at_once):
            logits = self.reader.logits([(questions[i], own[i][0]) for i in group])
            for i, (start, end) in zip(group, logits, strict=True):
                found[i] = retold(softmax(start), softmax(end), own[i][1], windows[i][1])
        return np.concatenate([found[i] for i in range(len(pieces))], axis=1)


def retold(start: Floats, end: Floats, own: Sequence[Span], places: Sequence[Span]) -> Floats:
    """Probabilities of the teacher's tokens as those of the pupil's: where a token begins, the pupil's token there
    begins, and likewise where it ends; "no answer" stays first."""
    made = np.zeros((2, len(places) + 1), np.float32)
    made[:, 0] = start[0], end[0]
    begins, ends = [a for a, _ in places], [b for _, b in places]
    last = len(places) - 1
    for (a, b), first_chance, last_chance in zip(own, start[1:], end[1:], strict=True):
        made[0, 1 + max(bisect_right(begins, a) - 1, 0)] += first_chance
        made[1, 1 + min(bisect_left(ends, b), last)] += last_chance
    return made
