"""Records are scored a window at a time: memory is bounded by the window, not by the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from elench.engine.drive import Driver
from elench.errors import Unscored
from elench.metrics.base import CorpusMetric, Metric, Score
from elench.metrics.notes import with_notes
from elench.records.record import Record
from elench.requests import Failure
from elench.runs import Outcome

RECORDS, CHARACTERS = 512, 400_000
"""A window ends at this many records or this many characters of distinct text, whichever comes first."""
Item = TypeVar("Item")


def windows(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Group rows by count and by text; where a window ends depends on the rows alone, so that a resumed run computes
    in the same batches as an uninterrupted one."""
    window: list[Item] = []
    texts: set[str] = set()
    size = 0
    for item in items:
        window.append(item)
        for text in _texts(item):
            if text and text not in texts:
                texts.add(text)
                size += len(text)
        if len(window) >= RECORDS or size >= CHARACTERS:
            yield window
            window, size = [], 0
            texts.clear()
    if window:
        yield window


def _texts(item: object) -> Sequence[str | None]:
    if isinstance(item, Record):
        return (item.context, item.question, item.answer, item.summary, *item.references)
    return (item,) if isinstance(item, str) else ()


def score_window(
    records: Sequence[Record],
    metrics: Sequence[Metric],
    driver: Driver,
    states: Mapping[str, object],
    on_step: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Every metric on every record of a window; an error in one record leaves that record unscored, with the reason.

    `states` holds what the first pass prepared for metrics that need one (see `engine.corpus`).
    """
    specs = [str(m) for m in metrics]
    coroutines = [
        metric.score_given(record, states[spec])
        if isinstance(metric, CorpusMetric) and spec in states
        else metric.score(record)
        for record in records
        for metric, spec in zip(metrics, specs, strict=True)
    ]
    results = iter(driver.run(coroutines, on_step))
    return [
        _outcome(record, {spec: (metric, next(results)) for metric, spec in zip(metrics, specs, strict=True)})
        for record in records
    ]


def _outcome(record: Record, results: Mapping[str, tuple[Metric, Score | Failure]]) -> Outcome:
    scores, unscored = {}, {}
    for spec, (metric, result) in results.items():
        if isinstance(result, Failure):
            unscored[spec] = reason(result.error)
        elif not math.isfinite(result.value):
            unscored[spec] = "the score is not a finite number"
        else:
            scores[spec] = with_notes(metric, record, result)
    return Outcome(record.id, record.system, scores, unscored, record)


def reason(error: Exception) -> str:
    """Why a record is unscored, in words."""
    if isinstance(error, Unscored):
        return str(error)
    return f"error: {type(error).__name__}: {error}".splitlines()[0][:300]
