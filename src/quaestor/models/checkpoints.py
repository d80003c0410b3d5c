"""Finding a model's folder on this machine: given folder, QUAESTOR_MODELS, quaestor's cache, the hub's cache."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from quaestor.errors import MissingExtra, MissingModel, UsageError
from quaestor.models.base import ModelChoice
from quaestor.models.catalog import Entry, cache_folder, combined, entry, family_entry

MANIFEST = "quaestor.json"
"""Written last into a pulled folder: its source and the hash of each file. A folder without it is not a model."""
READABLE = ("*.safetensors", "*.json", "*.txt", "*.model", "*.gguf")
"""What is fetched from the hub and read: never a pickle."""


@dataclass(frozen=True)
class Checkpoint:
    """A model that is on this machine."""

    name: str
    folder: Path
    sha256: str
    source: str


def file_hash(path: Path) -> str:
    """sha256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def folder_hashes(folder: Path) -> dict[str, str]:
    """sha256 of each file under a folder, by relative name; hidden files and the manifest do not count."""
    found = (p for p in sorted(folder.rglob("*")) if p.is_file())
    names = {p.relative_to(folder): p for p in found}
    return {
        str(rel.as_posix()): file_hash(p)
        for rel, p in names.items()
        if rel.name != MANIFEST and not any(part.startswith(".") for part in rel.parts)
    }


def model_folder(name: str) -> Path:
    """Where a pulled model is kept."""
    return cache_folder() / "models" / name.replace("/", "--")


def read_manifest(folder: Path) -> dict[str, object] | None:
    """What was written down when the folder was pulled; None if it is not complete."""
    try:
        found: dict[str, object] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return found
    except (OSError, ValueError):
        return None


def installed(name: str, known: Entry | None = None) -> Checkpoint | None:
    """The model called `name`, if it is on this machine."""
    if own := os.environ.get("QUAESTOR_MODELS"):
        for spelling in (name, name.replace("/", "--"), known.hub if known and known.hub else name):
            if (folder := Path(own) / spelling).is_dir():
                return Checkpoint(name, folder, combined(folder_hashes(folder)), "QUAESTOR_MODELS")
    folder = model_folder(name)
    if manifest := read_manifest(folder):
        return Checkpoint(name, folder, str(manifest["sha256"]), str(manifest["source"]))
    return _in_hub_cache(name, known)


def _in_hub_cache(name: str, known: Entry | None) -> Checkpoint | None:
    repository = known.hub if known else name
    if not repository or repository.count("/") > 1 or (known and known.files):
        return None
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        return None
    try:
        found = snapshot_download(repository, local_files_only=True, allow_patterns=list(READABLE))
    except Exception:  # not there, or not a valid repository name: both mean "not on this machine"
        return None
    folder = Path(found)
    return Checkpoint(name, folder, combined(folder_hashes(folder)), "hub cache")


def find(choice: ModelChoice) -> Checkpoint:
    """The folder of the model that plays a role; pulled first if the choice allows, else MissingModel says how."""
    name = choice.name
    if name is None:
        default = family_entry(choice.role, choice.family)
        if default is None:
            raise MissingModel(
                f"no {choice.family} model plays the role {choice.role!r}; name one with --model {choice.role}=NAME "
                "(hub name or folder) or use --models paper"
            )
        name = default.name
    elif (folder := Path(name).expanduser()).is_dir():
        return Checkpoint(folder.name, folder, combined(folder_hashes(folder)), "folder")
    elif name.startswith((".", "/", "~")):
        raise UsageError(f"--model {choice.role}={name}: no such folder")
    known = entry(name)
    name = known.name if known else name
    here = installed(name, known)
    if here is None and choice.pull:
        from quaestor.models.pull import pull

        here = pull(name)
    if here is None:
        raise MissingModel(
            f"{choice.role} model {name} is not on this machine; get it with: quaestor models pull {name}"
        )
    return here


def need(*packages: str) -> None:
    """Check that the packages of the `models` extra are there; MissingExtra names the pip line."""
    from importlib.util import find_spec

    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(f"this model ({package})", "models")
