"""elench: how good are generated questions, answers and summaries, and how far can that number be trusted?

import elench
result = elench.score(records, ["qrelscore", "qsts"])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elench.case import Case, judge
    from elench.engine.result import Result
    from elench.engine.scoring import score
    from elench.errors import ElenchError, Unscored, UsageError
    from elench.evaluate.compare import compare
    from elench.metrics import all_metrics, metric, register
    from elench.metrics.base import Metric, Score
    from elench.records.record import Record, read_records, write_records

_HOMES = {
    "score": "engine.scoring", "Result": "engine.result", "judge": "case", "Case": "case",
    "compare": "evaluate.compare", "metric": "metrics",
    "register": "metrics", "all_metrics": "metrics", "Metric": "metrics.base", "Score": "metrics.base",
    "Record": "records.record", "read_records": "records.record", "write_records": "records.record",
    "ElenchError": "errors", "UsageError": "errors", "Unscored": "errors",
}  # fmt: skip
__all__ = [
    "Case",
    "ElenchError",
    "Metric",
    "Record",
    "Result",
    "Score",
    "Unscored",
    "UsageError",
    "all_metrics",
    "compare",
    "judge",
    "metric",
    "read_records",
    "register",
    "score",
    "write_records",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Names are loaded on first use, so that importing elench costs next to nothing."""
    if name in _HOMES:
        return getattr(import_module(f"elench.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'elench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
