"""BLEURT, COMET and CTC, asked through their own packages, which do not come with elench (roles of the same names).

Nothing is downloaded unless the user allows it (`--pull`): BLEURT reads a checkpoint folder, COMET a checkpoint file or
folder, CTC the language model that its package loads by name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from elench.errors import MissingModel, UsageError
from elench.models.base import Identity, Model, ModelChoice
from elench.models.catalog import combined
from elench.models.checkpoints import folder_hashes, remembered_hash
from elench.requests import Rate

COMET_DEFAULT = "Unbabel/wmt22-comet-da"
CTC_DEFAULT = "E-roberta"


@dataclass(frozen=True)
class Package:
    """A metric of another project: what to import, what it is called when installed, and how to get it."""

    module: str
    distribution: str
    install: str


PACKAGES = {
    "bleurt": Package("bleurt", "BLEURT", "pip install git+https://github.com/google-research/bleurt"),
    "comet": Package("comet", "unbabel-comet", "pip install unbabel-comet"),
    "ctc": Package("ctc_score", "ctc-score", "pip install ctc-score"),
}


class PackageModel(Model[Rate, float | None]):
    """Rates texts with another project's scorer."""

    budget = 8192

    def __init__(self, role: str, rate: Callable[[Sequence[Rate]], Sequence[float | None]]) -> None:
        self.role = role  # type: ignore[misc]  # one class serves three roles
        self.rate = rate

    def lengths(self, requests: Sequence[Rate]) -> list[int]:
        return [len(repr(request)) // 4 + 1 for request in requests]

    def answer(self, batch: Sequence[Rate]) -> list[float | None]:
        return [None if value is None else float(value) for value in self.rate(batch)]


def resolve(choice: ModelChoice) -> Identity:
    """The package and checkpoint behind a role; MissingModel says in one line what is missing and how to get it."""
    package = PACKAGES[choice.role]
    found = find_spec(package.module)
    if found is None:
        line = f"{choice.role} needs the package {package.module!r}, which is not installed"
        raise MissingModel(f"{line}; get it with: {package.install}")
    name, path, sha256 = _checkpoint(choice)
    try:
        runtime = f"{package.module}-{version(package.distribution)}"
    except PackageNotFoundError:
        runtime = package.module
    device = choice.device or "cpu"
    kind = "online" if choice.pull else "offline"
    return Identity(choice.role, name, sha256, runtime, choice.dtype, device, kind, path, asked=choice.name)


def _checkpoint(choice: ModelChoice) -> tuple[str, Path, str]:
    """Name, place and hash of what the package will read."""
    if choice.role == "ctc":  # loaded by name inside the package, so the name is all there is to sign
        name = choice.name or CTC_DEFAULT
        return name, Path(), hashlib.sha256(name.encode()).hexdigest()
    path = Path(choice.name) if choice.name else None
    if choice.role == "comet" and choice.pull and (path is None or not path.exists()):
        path = Path(str(import_module("comet").download_model(choice.name or COMET_DEFAULT)))
    if path is None or not path.exists():
        what = f"{choice.name}: no such checkpoint" if choice.name else f"{choice.role} needs a checkpoint"
        fetch = f" (--pull fetches {COMET_DEFAULT})" if choice.role == "comet" else ""
        raise MissingModel(f"{what}; name it with: --model {choice.role}=FOLDER{fetch}")
    if path.is_dir():
        return path.name, path, combined(folder_hashes(path, remembered_hash))
    return path.stem, path, remembered_hash(path)


def load(identity: Identity) -> Model[Rate, float | None]:
    """The package's scorer, ready to rate."""
    if identity.kind == "offline":  # the packages' own loaders must not go looking for files on the network
        for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
            os.environ.setdefault(variable, "1")
    try:
        return PackageModel(identity.role, LOADERS[identity.role](identity))
    except (ImportError, AttributeError) as problem:
        package = PACKAGES[identity.role]
        line = f"the installed package {package.module!r} is not {package.distribution}, or is broken ({problem})"
        raise UsageError(f"{identity.role}: {line}") from problem


def _bleurt(identity: Identity) -> Callable[[Sequence[Rate]], Sequence[float]]:
    scorer = import_module("bleurt.score").BleurtScorer(str(identity.folder))

    def rate(batch: Sequence[Rate]) -> Sequence[float]:
        scores: Sequence[float] = scorer.score(
            references=[r.reference for r in batch], candidates=[r.text for r in batch]
        )
        return scores

    return rate


def _comet(identity: Identity) -> Callable[[Sequence[Rate]], Sequence[float]]:
    path = identity.folder
    inside = next(iter(sorted(path.rglob("*.ckpt"))), None) if path.is_dir() else path
    if inside is None:
        raise UsageError(f"--model comet={identity.asked}: no .ckpt file in {path}")
    model = import_module("comet").load_from_checkpoint(str(inside))
    gpus = int(identity.device.startswith("cuda"))

    def rate(batch: Sequence[Rate]) -> Sequence[float]:
        samples = [{"src": r.source, "mt": r.text, "ref": r.reference} for r in batch]
        scores: Sequence[float] = model.predict(samples, batch_size=8, gpus=gpus, progress_bar=False).scores
        return scores

    return rate


def _ctc(identity: Identity) -> Callable[[Sequence[Rate]], Sequence[float | None]]:
    scorer = import_module("ctc_score").SummarizationScorer(align=identity.name, device=identity.device)
    return lambda batch: [scorer.score(doc=r.source, refs=[], hypo=r.text, aspect="consistency") for r in batch]


LOADERS: dict[str, Callable[[Identity], Callable[[Sequence[Rate]], Sequence[float | None]]]] = {
    "bleurt": _bleurt,
    "comet": _comet,
    "ctc": _ctc,
}
