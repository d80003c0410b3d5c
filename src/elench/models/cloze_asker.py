"""An asker that needs no training (`--model asker=cloze`): see `elench.text.cloze`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import ClassVar

from elench.models.base import Model
from elench.requests import Ask
from elench.text.cloze import cloze_question

NAME = "cloze"
VERSION = 2
"""Raised when the questions change: part of every cache key."""


def sha256() -> str:
    """Names this version of the questions."""
    return hashlib.sha256(f"cloze {VERSION}".encode()).hexdigest()


class ClozeAsker(Model[Ask, tuple[str, ...]]):
    """Puts a question word in the answer's place; one variant, whatever the beams."""

    role: ClassVar[str] = "asker"

    def __init__(self) -> None:
        self.name, self.sha256 = NAME, sha256()

    def lengths(self, requests: Sequence[Ask]) -> list[int]:
        return [1] * len(requests)

    def answer(self, batch: Sequence[Ask]) -> list[tuple[str, ...]]:
        return [(cloze_question(r.text, r.answer, r.start),) if r.text.strip() else () for r in batch]
