"""Shipped inputs and the scores they must give: the example of every metric's card, recomputed on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quaestor.errors import UsageError
from quaestor.metrics import all_metrics, metric
from quaestor.metrics.base import Metric
from quaestor.models.base import ModelSet
from quaestor.scoring import score

EXPECTED = Path(__file__).with_name("expected.json")


@dataclass(frozen=True)
class Check:
    """What came of one metric."""

    spec: str
    verdict: str
    """ok, wrong or skipped (a model or an extra is not installed)."""
    detail: str


def _value(chosen: Metric, models: ModelSet) -> float:
    record: dict[str, Any] = {**chosen.example, "id": "example"}
    result = score([record], chosen, models=models, cache=False)
    value: float | None = result[str(chosen), "example"]
    if value is None:
        raise ValueError(f"unscored: {result.unscored[str(chosen)]['example']}")
    return value


def recompute(tolerance: float) -> Iterator[Check]:
    """Every shipped value against the one computed here."""
    models = ModelSet()
    for spec, expected in json.loads(EXPECTED.read_text(encoding="utf-8")).items():
        try:
            got = _value(metric(spec), models)
        except UsageError as missing:
            yield Check(spec, "skipped", str(missing))
            continue
        except Exception as wrong:  # whatever is wrong with this installation, the user must hear of it
            yield Check(spec, "wrong", f"{type(wrong).__name__}: {wrong}")
            continue
        difference = abs(got - expected)
        verdict = "ok" if difference <= tolerance * max(1.0, abs(expected)) else "wrong"
        yield Check(spec, verdict, f"{got:.6f}, expected {expected:.6f}")


def record_expected() -> None:
    """Write the expected values of this machine; a developer does so when a metric's definition changes."""
    models = ModelSet()
    values = {name: _value(cls.with_parameters({}), models) for name, cls in all_metrics().items()}
    EXPECTED.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
