"""How quaestor's own small models are stored: only what training changed, beside the name of the base they stand on.

`shipped/ROLE/` holds `weights.safetensors` (fp16, or int8 with one scale per row), `config.json` and the model's card.
Tensors equal to the base's (the frozen word embeddings, half of MiniLM) are taken from the base, which is checked by
hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from quaestor.errors import MissingModel
from quaestor.models.base import ModelChoice
from quaestor.models.checkpoints import file_hash, find

if TYPE_CHECKING:
    import torch

M = TypeVar("M")
SHIPPED = Path(__file__).parents[1] / "shipped"
WEIGHTS = "weights.safetensors"


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


def grow(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The float32 tensors that `shrink` stored."""
    full: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        if not name.endswith(":scale"):
            scale = tensors.get(f"{name}:scale")
            full[name] = tensor.float() if scale is None else tensor.float() * scale.unsqueeze(1)
    return full


def save_shipped(
    model: torch.nn.Module,
    folder: Path,
    *,
    base_name: str,
    base: Path,
    settings: Mapping[str, Any] | None = None,
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
    fresh.replace(folder / WEIGHTS)  # whoever has the old weights mapped keeps them whole
    config = {
        "base": base_name,
        "base_sha256": file_hash(base / "model.safetensors"),
        "stored": kind,
        "settings": dict(settings or {}),
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    return (folder / WEIGHTS).stat().st_size


def shipped_config(role: str, folder: Path | None = None) -> dict[str, Any]:
    """The config of a shipped model; MissingModel when this installation has none."""
    path = (folder or SHIPPED / role) / "config.json"
    try:
        config: dict[str, Any] = json.loads(path.read_text())
    except OSError:
        raise MissingModel(f"no shipped {role} in {path.parent}; make one: quaestor train {role}") from None
    return config


def load_shipped(
    role: str,
    build: Callable[[Path, Mapping[str, Any]], M],
    *,
    base: Path | None = None,
    folder: Path | None = None,
    pull: bool = False,
) -> tuple[M, Path, str]:
    """A shipped model on its base: (the model in eval mode, the base's folder with the tokenizer, sha256 of both).

    `build(base_folder, settings)` makes the untrained model with the base's weights; the stored tensors are then put
    in. `base` is the base's folder when the catalog shall not look it up; `pull` lets it be fetched.
    """
    import torch
    from safetensors.torch import load_file

    home = folder or SHIPPED / role
    config = shipped_config(role, home)
    if base is None:
        base = find(ModelChoice(role="encoder", name=config["base"], pull=pull)).folder
    if file_hash(base / "model.safetensors") != config["base_sha256"]:
        raise MissingModel(f"{base}: not the base the shipped {role} was trained on; run: quaestor models verify")
    model: Any = build(base, config["settings"])
    own = dict(model.named_parameters())
    with torch.no_grad():
        for name, tensor in grow(load_file(home / WEIGHTS)).items():
            own[name].copy_(tensor)
    model.eval()
    digest = hashlib.sha256(f"{config['base_sha256']} {file_hash(home / WEIGHTS)}".encode()).hexdigest()
    return model, base, digest
