"""Records from parallel lists and tables: what datasets.map, pandas, torchmetrics and evaluate bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elench.engine.scoring import score
from elench.metrics import metric as parse_metric
from elench.metrics.base import Metric
from elench.records.judging import choices_of
from elench.records.record import JUDGES

if TYPE_CHECKING:
    from elench.models.base import ModelSet


def rows_from_lists(
    metric: Metric, predictions: Sequence[str], references: Sequence[Any] | None, columns: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    """Records from parallel lists: what is judged, its references, and any of context, question, answer, summary."""
    able = choices_of(metric)
    judged = able[0] if len(able) == 1 else _guess(columns)
    lists: dict[str, Sequence[Any]] = {judged: predictions, **columns}
    if references is not None:
        lists["references"] = [[r] if isinstance(r, str) else list(r) for r in references]
    if not len(predictions):
        raise ValueError("no predictions: there is nothing to score")
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the lists have different lengths: {', '.join(f'{k} {v}' for k, v in lengths.items())}")
    return [
        {"id": str(i), "judge": judged, **{name: values[i] for name, values in lists.items()}}
        for i in range(len(predictions))
    ]


def _guess(columns: Mapping[str, Sequence[object]]) -> str:
    """What the predictions are when the metric judges several things: an answer when questions are given, else …"""
    left = [name for name in JUDGES if name not in columns]
    if not left:
        raise ValueError("question, answer and summary are all given as columns: name the judged one with [judge=…]")
    if "question" in columns and "answer" in left:
        return "answer"
    if len(left) == 1:
        return left[0]
    return "summary" if "context" in columns and "summary" in left else left[-2]


def map_scores(
    metrics: str | Metric | Sequence[str | Metric], *, models: ModelSet | None = None
) -> Callable[[Mapping[str, Sequence[object]]], dict[str, list[float | None]]]:
    """A function for `datasets.Dataset.map(…, batched=True)`: adds one column per metric.

        dataset.map(map_scores("rouge-l,bertscore"), batched=True, batch_size=1000)

    Metrics that need a pass over the whole file (cider, idf weights) see one batch at a time here.
    """

    def function(batch: Mapping[str, Sequence[Any]]) -> dict[str, list[float | None]]:
        size = len(next(iter(batch.values())))
        rows: list[dict[str, Any]] = []
        for i in range(size):
            row = {name: values[i] for name, values in batch.items() if values[i] is not None}
            rows.append({**row, "id": str(i)})
        result = score(rows, metrics, models=models)
        return {spec: result.values(spec) for spec in result.specs}

    return function


def add_scores(frame: Any, metrics: str | Metric | Sequence[str | Metric], *, models: ModelSet | None = None) -> Any:
    """A pandas table with one more column per metric."""
    result = score(frame, metrics, models=models)
    return frame.assign(**{spec: result.values(spec) for spec in result.specs})


__all__ = ["add_scores", "map_scores", "parse_metric", "rows_from_lists"]
