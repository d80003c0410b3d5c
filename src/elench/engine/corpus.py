"""The first pass over the records, for metrics that need to know the whole file (document frequencies)."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Generic, TypeVar

from elench.engine.drive import Driver
from elench.engine.windows import windows
from elench.metrics.base import Corpus, CorpusMetric, Metric
from elench.records.record import Record, Reject
from elench.requests import Failure

Item = TypeVar("Item")
IN_MEMORY = 50_000
"""Rows that are kept in memory between the two passes; further ones wait in a temporary file."""


def first_pass(
    rows: Iterable[Record | Reject], metrics: Sequence[Metric], driver: Driver
) -> tuple[Iterable[Record | Reject], dict[str, object]]:
    """The rows again, for the second pass, and the prepared state of each metric that needs one.

    Without such a metric nothing is read, and the rows stream. A state is prepared once, here; worker processes get it.
    """
    wanted = {str(m): m for m in metrics if isinstance(m, CorpusMetric) and m.first_pass}
    if not wanted:
        return rows, {}
    kept = Replay(rows)
    corpora = gather((row for row in kept.record() if isinstance(row, Record)), wanted.values(), driver)
    return kept, {spec: metric.prepare(corpora[spec]) for spec, metric in wanted.items()}


def gather(records: Iterable[Record], metrics: Iterable[CorpusMetric], driver: Driver) -> dict[str, Corpus]:
    """The corpus counts of each metric over the records; those of two parts add up."""
    corpora: dict[str, Corpus] = {str(metric): Corpus() for metric in metrics}
    chosen = list(metrics)
    for window in windows(records):
        for metric in chosen:
            for found in driver.run([metric.gather(record) for record in window]):
                if not isinstance(found, Failure):  # such a record is unscored, with the reason, in the second pass
                    corpora[str(metric)].update(found)
    return corpora


class Replay(Generic[Item]):
    """Rows that are read once and gone through twice: `record()` first, then plain iteration."""

    def __init__(self, rows: Iterable[Item]) -> None:
        self.rows = rows
        self.memory: list[Item] = []
        self.file: IO[bytes] | None = None

    def record(self) -> Iterator[Item]:
        for row in self.rows:
            if len(self.memory) < IN_MEMORY:
                self.memory.append(row)
            else:
                self.file = self.file or tempfile.TemporaryFile()  # noqa: SIM115 (closed with this object)
                pickle.dump(row, self.file)
            yield row

    def __iter__(self) -> Iterator[Item]:
        yield from self.memory
        if self.file:
            self.file.seek(0)
            try:
                while True:
                    yield pickle.load(self.file)
            except EOFError:
                return
