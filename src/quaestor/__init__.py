"""quaestor: how good are generated questions, answers and summaries, and how far can that number be trusted?

import quaestor
result = quaestor.score(records, ["qascore", "qsts"])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quaestor.comparison import compare
    from quaestor.errors import QuaestorError, Unscored, UsageError
    from quaestor.metrics import all_metrics, metric, register
    from quaestor.metrics.base import Metric, Score
    from quaestor.records import Record, read_records, write_records
    from quaestor.scoring import Result, score

_HOMES = {
    "score": "scoring", "Result": "scoring", "compare": "comparison", "metric": "metrics", "register": "metrics",
    "all_metrics": "metrics", "Metric": "metrics.base", "Score": "metrics.base", "Record": "records",
    "read_records": "records", "write_records": "records", "QuaestorError": "errors", "UsageError": "errors",
    "Unscored": "errors",
}  # fmt: skip
__all__ = [
    "Metric", "QuaestorError", "Record", "Result", "Score", "Unscored", "UsageError", "all_metrics", "compare",
    "metric", "read_records", "register", "score", "write_records",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Names are loaded on first use, so that importing quaestor costs next to nothing."""
    if name in _HOMES:
        return getattr(import_module(f"quaestor.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'quaestor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
