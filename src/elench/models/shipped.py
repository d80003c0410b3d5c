"""How elench's own small models are stored: only what training changed, beside the name of the base they are built on.

`elench_models/ROLE/` (distribution elench-models; `elench_models/large/ROLE/` for the large family) holds
`weights.safetensors` (fp16, or int8 with one scale per row), `config.json` and the model's card.
Tensors equal to the base's (the frozen word embeddings, half of MiniLM) are taken from the base, which is checked by
hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from elench.errors import MissingExtra, MissingModel, UsageError
from elench.models.base import Identity, ModelChoice
from elench.models.checkpoints import file_hash, find, remembered_hash, runs_on_onnx

if TYPE_CHECKING:
    import torch

M = TypeVar("M")
SHIPPED = Path(str(files("elench_models"))) if find_spec("elench_models") else Path("elench-models-not-installed")
WEIGHTS = "weights.safetensors"
CALIBRATED, LENGTHS = "calibrated", "lengths"
"""Settings that change a model's numbers without being a tensor; they are part of the model's hash."""


def shrink(tensors: Mapping[str, torch.Tensor], kind: str = "fp16") -> dict[str, torch.Tensor]:
    """Tensors as they are stored: all fp16, or matrices as int8 rows with a scale each (`NAME:scale`)."""
    import torch

    if kind not in ("fp16", "int8"):
        raise ValueError(f"weights are stored as fp16 or int8, not {kind}")
    small: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        tensor = tensor.detach().float()
        if kind == "int8" and tensor.ndim == 2 and tensor.numel() >= 4096:
            scale = tensor.abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / 127.0
            small[name] = (tensor / scale).round().clamp(-127, 127).to(torch.int8)
            small[f"{name}:scale"] = scale.squeeze(1)
        else:
            small[name] = tensor.to(torch.float16).contiguous()
    return small


def grow(tensors: Mapping[str, Any]) -> dict[str, npt.NDArray[np.float32]]:
    """The float32 tensors that `shrink` stored."""
    full: dict[str, npt.NDArray[np.float32]] = {}
    for name, values in tensors.items():
        if not name.endswith(":scale"):
            scale = tensors.get(f"{name}:scale")
            whole = np.asarray(values, dtype=np.float32)
            full[name] = whole if scale is None else whole * np.asarray(scale, dtype=np.float32)[:, None]
    return full


def save_shipped(
    model: torch.nn.Module,
    folder: Path,
    *,
    base_name: str,
    base: Path,
    settings: Mapping[str, object] | None = None,
    kind: str = "fp16",
) -> int:
    """Store what training changed in `folder`; gives the size of the weights in bytes.

    The trainable tensors are stored: freeze those that shall come from the base. `base` is the folder of the base
    model, `settings` whatever the model needs to be built again (number of labels, label names).
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    fresh = folder / f"{WEIGHTS}.new"
    save_file(shrink(trained, kind), fresh)
    fresh.chmod(0o644)
    fresh.replace(folder / WEIGHTS)  # processes that have the old weights mapped keep them
    config = {
        "base": base_name,
        "base_sha256": file_hash(base / "model.safetensors"),
        "stored": kind,
        "settings": dict(settings or {}),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    return (folder / WEIGHTS).stat().st_size


def shipped_folder(role: str, family: str = "embedded") -> Path:
    """Where the shipped model of a role lies: the family's own, else the embedded one."""
    own = SHIPPED / family / role
    return own if (own / "config.json").is_file() else SHIPPED / role


def shipped_config(role: str, folder: Path | None = None) -> dict[str, Any]:
    """The config of a shipped model; MissingModel when this installation has none."""
    path = (folder or shipped_folder(role)) / "config.json"
    try:
        config: dict[str, Any] = json.loads(path.read_text())
    except OSError:
        if path.is_relative_to(SHIPPED) and not SHIPPED.is_dir():
            raise MissingExtra(f"the embedded model {role!r}", "models") from None
        raise MissingModel(f"no shipped {role} in {path.parent}; make one: elench train {role}") from None
    if missing := [name for name in ("base", "base_sha256", "settings") if name not in config]:
        raise UsageError(f"{path}: no {missing[0]!r}; {WEIGHTS} needs the config that `elench train {role}` writes")
    return config


def shipped_identity(choice: ModelChoice, folder: Path | None = None, base: Path | None = None) -> Identity:
    """The identity of a stored model: the one that elench ships for the role, or that of a folder.

    It runs on the CPU in ONNX Runtime, in float32 or int8, whatever else is asked for; on a base that the shipped
    graphs do not fit in torch. `base` is the base's folder where the catalog shall not look it up.
    """
    role, home = choice.role, folder or shipped_folder(choice.role, choice.family)
    config = shipped_config(role, home)
    if base is None:
        base = find(ModelChoice(role="encoder", name=config["base"], pull=choice.pull)).folder
    if remembered_hash(base / "model.safetensors") != config["base_sha256"]:
        raise MissingModel(f"{base}: not the base the shipped {role} was trained on; run: elench models verify")
    parts = [config["base_sha256"], remembered_hash(home / WEIGHTS)]
    parts += [json.dumps(config["settings"][name]) for name in (CALIBRATED, LENGTHS) if name in config["settings"]]
    digest = hashlib.sha256(" ".join(parts).encode()).hexdigest()
    name = folder.name if folder else "-".join(["shipped", *home.relative_to(SHIPPED).parts])
    plain = ModelChoice(role, dtype="int8" if choice.dtype == "int8" else "float32")
    runtime, dtype = ("onnx", plain.dtype) if runs_on_onnx(plain, base) else ("torch", "float32")
    return Identity(role, name, digest, runtime, dtype, "cpu", "shipped", home, base, choice.name)


def load_shipped(identity: Identity, build: Callable[[Path, Mapping[str, Any]], M]) -> M:
    """A stored model on its base, in eval mode.

    `build(base_folder, settings)` makes the untrained model with the base's weights; the stored tensors are then put
    in.
    """
    import torch
    from safetensors.numpy import load_file

    assert identity.base
    home = identity.folder
    model: Any = build(identity.base, shipped_config(identity.role, home)["settings"])
    own = dict(model.named_parameters())
    with torch.no_grad():
        for name, tensor in grow(load_file(home / WEIGHTS)).items():
            own[name].copy_(torch.from_numpy(tensor))
    model.eval()
    stored: M = model
    return stored
