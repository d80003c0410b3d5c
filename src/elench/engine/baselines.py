"""Stored baselines for rescaling: the mean of a metric over unrelated pairs, per model and data set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from elench.errors import UsageError
from elench.models.base import ModelSet
from elench.models.catalog import cache_folder
from elench.requests import Baseline


def store_path() -> Path:
    return cache_folder() / "baselines.json"


def _stored() -> dict[str, dict[str, dict[str, Any]]]:
    """{spec and model: {data set: {b, n}}}."""
    path = store_path()
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _key(spec: str, about: str, models: ModelSet) -> str:
    return f"{spec} {models.fingerprint(about)}"


def find_baseline(request: Baseline, models: ModelSet) -> float:
    """The figure stored for the model in use; UsageError names the command that computes it."""
    found = _stored().get(_key(request.spec, request.about, models), {})
    if request.data == "on" and found:
        return float(list(found.values())[-1]["b"])
    if request.data in found:
        return float(found[request.data]["b"])
    known = f" (stored: {', '.join(found)})" if found else ""
    raise UsageError(
        f"no baseline of {request.spec} is stored for this model and rescale={request.data}{known}: "
        f"run elench baselines FILE -m {request.spec} (qrelscore needs both, qrel-lrm and qrel-grg)"
    )


def store_baseline(request: Baseline, models: ModelSet, value: float, n: int) -> None:
    """Keep a baseline; the data set stored last is the one that rescale=on uses."""
    stored = _stored()
    kept = stored.setdefault(_key(request.spec, request.about, models), {})
    kept.pop(request.data, None)
    kept[request.data] = {"b": value, "n": n}
    path = store_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)
