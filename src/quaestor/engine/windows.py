"""Scores records a window at a time: memory is bounded by the window, not by the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from quaestor.engine.drive import Driver
from quaestor.errors import Unscored
from quaestor.metrics.base import Corpus, CorpusMetric, Metric, Score
from quaestor.records import Record, Reject
from quaestor.requests import Failure

RECORDS, CHARACTERS = 512, 400_000
"""A window ends at so many records or so many characters of distinct text, whichever comes first."""
Item = TypeVar("Item", bound="Record | Reject")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the metrics said of one record."""

    id: str
    system: str | None
    scores: dict[str, Score] = field(default_factory=dict)
    unscored: dict[str, str] = field(default_factory=dict)

    def to_object(self, specs: Sequence[str], explain: bool = False) -> dict[str, Any]:
        """The output line of the contract."""
        line: dict[str, Any] = {
            "id": self.id,
            "system": self.system,
            "scores": {spec: self.scores[spec].value if spec in self.scores else None for spec in specs},
            "unscored": self.unscored,
        }
        if explain:
            line["evidence"] = {spec: dict(score.evidence) for spec, score in self.scores.items()}
        return line


def windows(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Group records by count and by text; where a window ends depends on the items alone, so that a resumed run
    computes in the same batches as an uninterrupted one."""
    window: list[Item] = []
    texts: set[str] = set()
    size = 0
    for item in items:
        window.append(item)
        if isinstance(item, Record):
            for text in (item.context, item.question, item.answer, item.summary, *item.references):
                if text and text not in texts:
                    texts.add(text)
                    size += len(text)
        if len(window) >= RECORDS or size >= CHARACTERS:
            yield window
            window, size = [], 0
            texts.clear()
    if window:
        yield window


def score_window(
    records: Sequence[Record],
    metrics: Sequence[Metric],
    driver: Driver,
    corpora: Mapping[str, Corpus],
    on_done: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Every metric on every record of a window; an error in one record leaves that record unscored, with the reason."""
    specs = [str(m) for m in metrics]
    coroutines = [
        metric.score_given(record, corpora[spec]) if isinstance(metric, CorpusMetric) else metric.score(record)
        for record in records
        for metric, spec in zip(metrics, specs, strict=True)
    ]
    results = driver.run(coroutines, on_done)
    outcomes = []
    for r, record in enumerate(records):
        outcome = Outcome(record.id, record.system)
        for m, spec in enumerate(specs):
            result = results[r * len(specs) + m]
            if isinstance(result, Failure):
                outcome.unscored[spec] = reason(result.error)
            elif not math.isfinite(result.value):
                outcome.unscored[spec] = "the score is not a finite number"
            else:
                outcome.scores[spec] = result
        outcomes.append(outcome)
    return outcomes


def reason(error: Exception) -> str:
    """Why a record is unscored, in words."""
    if isinstance(error, Unscored):
        return str(error)
    return f"error: {type(error).__name__}: {error}".splitlines()[0][:300]


def gather_corpora(records: Iterable[Record], metrics: Sequence[Metric], driver: Driver) -> dict[str, Corpus]:
    """The first pass over the file for the metrics that need one; the states of two parts merge by `merge_corpora`."""
    wanted = {str(m): m for m in metrics if isinstance(m, CorpusMetric)}
    corpora: dict[str, Corpus] = {spec: Corpus() for spec in wanted}
    if not wanted:
        return corpora
    for window in windows(records):
        for spec, metric in wanted.items():
            for found in driver.run([metric.gather(record) for record in window]):
                if not isinstance(
                    found, Failure
                ):  # such a record will be unscored, with the reason, in the second pass
                    corpora[spec].update(found)
    return corpora


def merge_corpora(parts: Iterable[Mapping[str, Corpus]]) -> dict[str, Corpus]:
    """The corpus state of a whole file from the states of its parts, in any order."""
    merged: dict[str, Corpus] = {}
    for part in parts:
        for spec, counts in part.items():
            merged.setdefault(spec, Corpus()).update(counts)
    return merged
