"""Stored baselines of QRelScore's parts: the mean over unrelated question/context pairs, per model and data set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from quaestor.errors import UsageError
from quaestor.models.base import Model
from quaestor.requests import Baseline, Request

if TYPE_CHECKING:
    from quaestor.models.base import ModelSet

PART_ROLE = {"lrm": "encoder", "grg": "causal"}


def store_path() -> Path:
    from quaestor.models.catalog import cache_folder

    return cache_folder() / "baselines.json"


class Baselines(Model):
    """Answers which baseline belongs to a part under the models in use."""

    role: ClassVar[str] = "baselines"
    name = "baselines"

    def __init__(self, models: ModelSet) -> None:
        self.models = models
        self.stored: dict[str, dict[str, dict[str, Any]]] = {}
        if store_path().exists():
            self.stored = json.loads(store_path().read_text(encoding="utf-8"))
        self.sha256 = hashlib.sha256(json.dumps(self.stored, sort_keys=True).encode()).hexdigest()

    def key(self, part: str, spec: str) -> str:
        return f"{spec} {self.models.fingerprint(PART_ROLE[part])} dtype={self.models.dtype}"

    def lengths(self, requests: Sequence[Request[Any]]) -> list[int]:
        return [1] * len(requests)

    def answer(self, batch: Sequence[Request[Any]]) -> list[float]:
        return [self.find(request) for request in batch if isinstance(request, Baseline)]

    def find(self, request: Baseline) -> float:
        found = self.stored.get(self.key(request.part, request.spec), {})
        if request.data == "on" and found:
            return float(list(found.values())[-1]["b"])
        if request.data in found:
            return float(found[request.data]["b"])
        known = f" (stored: {', '.join(found)})" if found else ""
        raise UsageError(
            f"no baseline of {request.spec} is stored for this model and rescale={request.data}{known}: "
            f"run quaestor baselines FILE -m {request.spec} (qrelscore needs both, qrel-lrm and qrel-grg)"
        )

    def store(self, part: str, spec: str, data: str, value: float, n: int) -> None:
        """Keep a baseline; the data set stored last is the one that rescale=on uses."""
        kept = self.stored.setdefault(self.key(part, spec), {})
        kept.pop(data, None)
        kept[data] = {"b": value, "n": n}
        path = store_path()
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".tmp")
        draft.write_text(json.dumps(self.stored, indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
