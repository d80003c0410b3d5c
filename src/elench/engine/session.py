"""The one path that scores records. The command, `elench.score`, the HTTP service, rewards, perturb and augment bring
records to a session and do something with the outcomes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from elench.engine.baselines import find_baseline
from elench.engine.corpus import first_pass
from elench.engine.drive import Driver, Step
from elench.engine.windows import score_window, windows
from elench.errors import UsageError
from elench.metrics.base import Metric
from elench.models.base import ModelSet
from elench.records.judging import choices_of
from elench.records.record import Record, Reject
from elench.requests import Failure
from elench.runs import Outcome

if TYPE_CHECKING:
    from elench.models.cache import AnswerCache

RecordOrReject = Record | Reject
Item = TypeVar("Item")
T = TypeVar("T")


@dataclass
class Session:
    """Models, a cache of their answers, and where the work is done.

        session = Session()
        for outcome in session.score(records, [metric("f1")]):
            outcome.value("f1"), outcome.unscored, outcome.reject

    Every row given comes back as one outcome, in order: a record with its scores and the reasons for missing ones, a
    reject (a line that is not a record) as it is.
    """

    models: ModelSet = field(default_factory=ModelSet)
    cache: AnswerCache | bool = True
    """True: the answer cache of this user; False: none."""
    workers: int = 1
    engine: str = "local"
    """local (this process, or `workers` processes) or ray."""
    address: str | None = None
    """Of the Ray cluster; None starts one here."""
    explain: bool = True
    """Whether evidence comes back from worker processes; in this process it is worked out when someone looks."""

    def score(self, rows: Iterable[RecordOrReject], metrics: Sequence[Metric]) -> Iterator[Outcome]:
        """One outcome per row, in order."""
        for window in self.windows(rows, metrics):
            yield from window

    def windows(
        self,
        rows: Iterable[RecordOrReject],
        metrics: Sequence[Metric],
        skip: int = 0,
        on_step: Callable[[], None] = lambda: None,
    ) -> Iterator[list[Outcome]]:
        """As `score`, a window at a time; the first `skip` rows, done by an earlier run, are read but not scored.

        `on_step` is called before each batch that a model answers and whenever one metric has finished with one record.
        """
        check_metrics(metrics)
        driver = self.driver(metrics)
        rows, states = first_pass(rows, metrics, driver)
        waiting: deque[list[RecordOrReject]] = deque()

        def records_of(groups: Iterable[list[RecordOrReject]]) -> Iterator[list[Record]]:
            for group in groups:
                waiting.append(group)
                yield [row for row in group if isinstance(row, Record)]

        groups = records_of(windows(islice(rows, skip, None)))
        for scored in self._scored(groups, metrics, driver, states, on_step):
            found = iter(scored)
            yield [Outcome.rejected(r) if isinstance(r, Reject) else next(found) for r in waiting.popleft()]

    def _scored(
        self,
        groups: Iterable[list[Record]],
        metrics: Sequence[Metric],
        driver: Driver,
        states: Mapping[str, object],
        on_step: Callable[[], None],
    ) -> Iterator[list[Outcome]]:
        if self.engine == "ray":
            from elench.engine.ray import score_on_ray

            yield from score_on_ray(self, groups, metrics, states)
        elif self.workers > 1:
            from elench.engine.workers import score_in_processes

            yield from score_in_processes(self, groups, metrics, states)
        else:
            for group in groups:
                yield score_window(group, metrics, driver, states, on_step)

    def map(
        self, items: Iterable[Item], work: Callable[[Item], Sequence[Step[T]]]
    ) -> Iterator[tuple[Item, list[T | Failure]]]:
        """Other work that asks models: each item with the results (or Failures) of its coroutines, in order."""
        driver = self.driver()
        for window in windows(items):
            tasks = [list(work(item)) for item in window]
            results = iter(driver.run([task for own in tasks for task in own]))
            for item, own in zip(window, tasks, strict=True):
                yield item, [next(results) for _ in own]

    def driver(self, metrics: Sequence[Metric] | None = None) -> Driver:
        """What answers requests here; the cache is opened only when a metric asks a model."""
        return Driver(self.models, self._open_cache(metrics is None or any(m.roles for m in metrics)))

    def _open_cache(self, wanted: bool) -> AnswerCache | None:
        if self.cache is False or not wanted:
            return None
        if self.cache is True:
            from elench.models.cache import AnswerCache

            return AnswerCache()
        return self.cache

    def signature(self, metric: Metric, judging: str | None = None) -> str:
        """Everything that could change the number, on one line; `judging` is what the file as a whole judges."""
        parts = [metric.spec(full=True)]
        if judging and len(choices_of(metric)) > 1:
            parts.append(f"judging {judging}")
        parts += [f"elench {version('elench')}", *map(self.models.fingerprint, metric.roles)]
        return " | ".join([*parts, *(f"b({b.spec})={find_baseline(b, self.models):.6f}" for b in metric.baselines)])

    def signatures(self, metrics: Sequence[Metric], judging: str | None = None) -> dict[str, str]:
        return {str(metric): self.signature(metric, judging) for metric in metrics}


def check_metrics(metrics: Sequence[Metric]) -> None:
    """At least one metric, none twice."""
    specs = [str(m) for m in metrics]
    if not specs:
        raise UsageError("no metric given; see: elench metrics")
    twice = next((spec for i, spec in enumerate(specs) if spec in specs[:i]), None)
    if twice:
        raise UsageError(f"metric listed twice: {twice}")
