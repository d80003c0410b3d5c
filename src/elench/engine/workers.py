"""Several processes on one machine: each scores whole windows, outcomes come back in input order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from typing import TYPE_CHECKING

from elench.engine.windows import score_window
from elench.errors import ElenchError
from elench.metrics.base import Metric, Score
from elench.records.record import Record
from elench.runs import Outcome

if TYPE_CHECKING:
    from elench.engine.session import Session

_worker: Worker | None = None
"""What this worker process was given at its start."""


class Worker:
    """One copy of the models, scoring window after window; used in worker processes and in Ray actors."""

    def __init__(self, session: Session, metrics: Sequence[Metric], states: Mapping[str, object]) -> None:
        self.metrics, self.states, self.explain = metrics, states, session.explain
        self.driver = session.driver(metrics)

    def score(self, records: Sequence[Record]) -> list[Outcome]:
        """The outcomes without their records, which the sender has, and without evidence that nobody asked for."""
        found = score_window(records, self.metrics, self.driver, self.states)
        return [
            replace(o, record=None, scores=o.scores if self.explain else {k: _bare(s) for k, s in o.scores.items()})
            for o in found
        ]


def _bare(score: Score) -> Score:
    return Score(score.value, {}, score.counts)


def with_records(outcomes: Sequence[Outcome], records: Sequence[Record]) -> list[Outcome]:
    """What came back from a worker, each with its record."""
    return [replace(outcome, record=record) for outcome, record in zip(outcomes, records, strict=True)]


def _start(session: Session, metrics: Sequence[Metric], states: Mapping[str, object]) -> None:
    global _worker
    _worker = Worker(session, metrics, states)


def _score(records: Sequence[Record]) -> list[Outcome]:
    assert _worker is not None
    return _worker.score(records)


def threads_for(workers: int) -> int:
    """Processor threads of each worker: an even share of the machine, unless OMP_NUM_THREADS says less."""
    share = max(1, (os.cpu_count() or 1) // workers)
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, int(wanted)) if wanted.isdigit() and int(wanted) else share


def for_workers(session: Session) -> Session:
    """A session that travels: the same models by name, not loaded; a cache that each process opens for itself."""
    models = session.models
    fresh = type(models)(models.names, models.family, models.dtype, models.device, models.pull)
    return replace(session, models=fresh, cache=session.cache is not False, workers=1, engine="local")


def score_in_processes(
    session: Session, groups: Iterable[list[Record]], metrics: Sequence[Metric], states: Mapping[str, object]
) -> Iterator[list[Outcome]]:
    """Outcomes of each window, in order; at most two windows per worker are in flight."""
    threads = str(threads_for(session.workers))
    before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    os.environ.update(OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads)
    given = (for_workers(session), list(metrics), dict(states))
    pool = ProcessPoolExecutor(session.workers, get_context("spawn"), _start, given)
    flying: deque[tuple[list[Record], Future[list[Outcome]]]] = deque()

    def land() -> list[Outcome]:
        records, future = flying.popleft()
        return with_records(future.result(), records)

    try:
        for group in groups:
            flying.append((group, pool.submit(_score, group)))
            if len(flying) >= 2 * session.workers:
                yield land()
        while flying:
            yield land()
    except BrokenProcessPool:
        raise ElenchError(
            "a worker process died (out of memory?); what is written is safe: run again with --resume"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
