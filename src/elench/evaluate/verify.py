"""Shipped inputs and the scores they gave: the example of every metric's card, recomputed on this machine.

This checks the installation, not the truth: that the same models and code run here as where the values were recorded.
Whether a metric computes its paper is checked by tests/faithful, whether it agrees with people by docs/results.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elench.engine.scoring import score
from elench.engine.session import Session
from elench.errors import MissingModel, UsageError
from elench.metrics import all_metrics, metric
from elench.metrics.base import Metric

if TYPE_CHECKING:
    from elench.models.base import ModelSet

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
    models = Session().models
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
    models = Session().models
    values: dict[str, float] = {}
    for name, cls in all_metrics().items():
        try:
            values[name] = _value(cls.with_parameters({}), models)
        except MissingModel:  # no embedded model plays its role: nothing to compare with anywhere
            continue
    EXPECTED.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
