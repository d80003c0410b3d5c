"""Finding a model's folder on this machine: given folder, ELENCH_MODELS, elench's cache, the hub's cache."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from elench.errors import MissingExtra, MissingModel, UsageError
from elench.models.base import Identity, ModelChoice
from elench.models.catalog import Entry, cache_folder, combined, entry, family_entry

MANIFEST = "elench.json"
"""Written last into a pulled folder: its source and the hash of each file. A folder without it is not a model."""
WEIGHTS = ("*.safetensors", "*.gguf", "*.onnx")
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
DTYPES = ("float32", "bfloat16", "float16", "int8")
FAMILIES = {
    "minilm": {
        "model_type": "bert", "num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 12,
        "intermediate_size": 1536, "vocab_size": 30522, "hidden_act": "gelu",
    },
    "mpnet": {
        "model_type": "mpnet", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
        "intermediate_size": 3072, "vocab_size": 30527, "hidden_act": "gelu", "relative_attention_num_buckets": 32,
    },
    "deberta": {
        "model_type": "deberta-v2", "num_hidden_layers": 12, "hidden_size": 384, "num_attention_heads": 6,
        "intermediate_size": 1536, "vocab_size": 128100, "hidden_act": "gelu", "position_buckets": 256,
        "share_att_key": True, "pos_att_type": ["p2c", "c2p"],
    },
    "smollm": {
        "model_type": "llama", "num_hidden_layers": 30, "hidden_size": 576, "num_attention_heads": 9,
        "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152, "hidden_act": "silu",
    },
}  # fmt: skip
"""Checkpoints that the shipped graphs fit, by what their config.json says."""
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


def _memory_path() -> Path:
    return cache_folder() / "hashes.json"


@cache
def _memory() -> dict[str, list[object]]:
    try:
        found: dict[str, list[Any]] = json.loads(_memory_path().read_text(encoding="utf-8"))
        return found
    except (OSError, ValueError):
        return {}


def remember_hash(path: Path, sha256: str) -> None:
    """Keep a file's hash with its size and time stamp, so that a later run need not read the file for it."""
    stat = path.stat()
    _memory()[str(path.resolve())] = [stat.st_size, stat.st_mtime_ns, sha256]
    target = _memory_path()
    with suppress(OSError):  # a cache that cannot be written costs time, never a run
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f"{target.name}.{os.getpid()}")
        draft.write_text(json.dumps(_memory()), encoding="utf-8")
        draft.replace(target)


def remembered_hash(path: Path) -> str:
    """sha256 of a file, taken from memory while its size and time stamp are the same (`models verify` reads again)."""
    stat = path.stat()
    known = _memory().get(str(path.resolve()))
    if known and known[:2] == [stat.st_size, stat.st_mtime_ns]:
        return str(known[2])
    sha256 = file_hash(path)
    remember_hash(path, sha256)
    return sha256


def folder_hashes(folder: Path, hashed: Callable[[Path], str] = file_hash) -> dict[str, str]:
    """sha256 of each file under a folder, by relative name; hidden files and the manifest do not count."""
    found = (p for p in sorted(folder.rglob("*")) if p.is_file())
    names = {p.relative_to(folder): p for p in found}
    return {
        str(rel.as_posix()): hashed(p)
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
    if own := os.environ.get("ELENCH_MODELS"):
        for spelling in (name, name.replace("/", "--"), known.hub if known and known.hub else name):
            if (folder := Path(own) / spelling).is_dir():
                return Checkpoint(name, folder, combined(folder_hashes(folder, remembered_hash)), "ELENCH_MODELS")
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
    return Checkpoint(name, folder, combined(folder_hashes(folder, remembered_hash)), "hub cache")


def find(choice: ModelChoice) -> Checkpoint:
    """The folder of the model that plays a role; pulled first if the choice allows, else MissingModel says how."""
    name = choice.name
    if name is None:
        default = family_entry(choice.role, choice.family)
        if default is None:
            hint = "; qascore[form=causal] does without it" if choice.role == "masked" else ""
            raise MissingModel(
                f"no {choice.family} model plays the role {choice.role!r}; name one with --model {choice.role}=NAME "
                f"(hub name or folder) or use --models paper{hint}"
            )
        name = default.name
    elif (folder := Path(name).expanduser()).is_dir():
        return Checkpoint(folder.name, folder, combined(folder_hashes(folder, remembered_hash)), "folder")
    elif name.startswith((".", "/", "~")):
        raise UsageError(f"--model {choice.role}={name}: no such folder")
    known = entry(name)
    name = known.name if known else name
    here = installed(name, known)
    if here is not None:
        _unchanged(here)
    if here is None and choice.pull:
        from elench.models.pull import pull

        here = pull(name)
    if here is None:
        get = "--family large" if choice.name is None and choice.family == "large" else name
        raise MissingModel(f"{choice.role} model {name} is not on this machine; get it with: elench models pull {get}")
    return here


def _unchanged(here: Checkpoint) -> None:
    """Refuse a pulled model whose files are no longer those that were pulled."""
    files: Any = (read_manifest(here.folder) or {}).get("files", {})
    for name, wanted in files.items():
        path = here.folder / name
        if not path.is_file() or remembered_hash(path) != wanted:
            raise MissingModel(f"{here.name}: {path} changed after it was pulled; run: elench models verify")


def runs_on_onnx(choice: ModelChoice, folder: Path, families: Iterable[str] = FAMILIES) -> bool:
    """Whether a checkpoint has the shape of shipped graphs, and the choice asks for nothing that needs torch."""
    if choice.device not in (None, "cpu") or choice.dtype not in ("float32", "int8"):
        return False
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return any(FAMILIES[family].items() <= config.items() for family in families)


def checkpoint_identity(
    choice: ModelChoice, kind: str = "checkpoint", found: Checkpoint | None = None, families: Sequence[str] = ()
) -> Identity:
    """The identity of a checkpoint: run by ONNX Runtime if it has the shape of a family, else by torch.

    Pickled weights are refused. torch has no int8 here: such a model runs in float32, and says so.
    """
    found = found or find(choice)
    if choice.dtype not in DTYPES:
        raise UsageError(f"--dtype {choice.dtype}: not one of {', '.join(DTYPES)}")
    if not any(next(found.folder.glob(pattern), None) for pattern in WEIGHTS):
        pickled = next((p.name for pattern in PICKLES for p in found.folder.glob(pattern)), "")
        why = f"{pickled} is a pickle, which is never read" if pickled else "no weights there"
        wanted = "save it as safetensors: model.save_pretrained(FOLDER)" if pickled else "safetensors or GGUF needed"
        raise UsageError(f"--model {choice.role}={choice.name or found.name}: {why}; {wanted}")
    named: dict[str, Any] = {"kind": kind, "folder": found.folder, "asked": choice.name}
    if runs_on_onnx(choice, found.folder, families):
        return Identity(choice.role, found.name, found.sha256, "onnx", choice.dtype, "cpu", **named)
    dtype = "float32" if choice.dtype == "int8" else choice.dtype
    return Identity(choice.role, found.name, found.sha256, "torch", dtype, choice.device or "auto", **named)


def is_text_to_text(folder: Path) -> bool:
    """Whether a checkpoint's config tells of an encoder with a decoder."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(config.get("is_encoder_decoder")) or "ConditionalGeneration" in str(config.get("architectures"))


def need(*packages: str) -> None:
    """Check that the packages a model needs are installed; MissingExtra names the pip line."""
    from importlib.util import find_spec

    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(f"this model ({package})", "torch" if package in ("torch", "transformers") else "models")
