"""Texts are tokenised once: to pack batches by exact lengths, and to answer them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from elench.engine.drive import Driver
from elench.models.base import ModelSet
from elench.models.tokens import KEPT, Tokens
from elench.requests import Continue, Embed, Recover, Relate
from tests.tiny import tiny

pytest.importorskip("transformers")
QUESTION, CONTEXT = "Who wrote the great book?", "Jane Austen wrote the great old book in the city by the river."


class Counting:
    """A tokenizer that counts how often it reads a text."""

    def __init__(self, backend: Any) -> None:
        self.backend, self.read = backend, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self.backend, name)

        def counted(texts: list[str], **settings: Any) -> Any:
            self.read.update(texts)
            return inner(texts, **settings)

        return counted if name.startswith("encode_batch") else inner


@pytest.mark.parametrize(
    "role, name, asked",
    [
        ("encoder", "bert", [Embed(CONTEXT), Embed(QUESTION), Embed(CONTEXT, 1)]),
        ("encoder", "bert", [Relate(QUESTION, CONTEXT), Relate("when?", CONTEXT)]),
        ("causal", "llama", [Continue(QUESTION, CONTEXT), Continue("", CONTEXT, True)]),
        ("masked", "bert-mlm", [Recover(CONTEXT, QUESTION, "Jane Austen")]),
    ],
)
def test_a_round_of_requests_reads_each_text_once(role: str, name: str, asked: list[Any]) -> None:
    models = ModelSet({role: str(tiny(name))})
    tokens: Tokens = models[role].tokens  # type: ignore[attr-defined]
    assert tokens.frame and (role == "causal" or tokens.pair_frame)
    tokens.backend = counting = Counting(tokens.backend)
    Driver(models).answer(asked)
    assert counting.read and set(counting.read.values()) == {1}


def test_tokens_are_kept_for_a_bounded_number_of_texts() -> None:
    tokens = Tokens.from_folder(tiny("bert"))
    for i in range(0, 3 * KEPT, 1000):
        tokens.ids([f"the king {k}" for k in range(i, i + 1000)])
    assert len(tokens.known) <= KEPT
    assert tokens.ids(["the king", "the king"]) == [tokens.ids(["the king"])[0]] * 2 and tokens.ids([]) == []
