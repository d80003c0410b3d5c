"""Several processes on one machine: each scores whole windows, results come back in input order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from quaestor.engine.drive import Driver
from quaestor.engine.windows import Outcome, score_window
from quaestor.errors import QuaestorError
from quaestor.metrics.base import Corpus, Metric
from quaestor.records import Record

if TYPE_CHECKING:
    from quaestor.models.base import ModelSet

_here: dict[str, Any] = {}
"""What this worker process was given at its start."""


def _start(metrics: Sequence[Metric], models: ModelSet, cached: bool, corpora: Mapping[str, Corpus]) -> None:
    _here.update(metrics=metrics, driver=Driver(models, open_cache(metrics) if cached else None), corpora=corpora)


def _score(records: Sequence[Record]) -> list[Outcome]:
    return score_window(records, _here["metrics"], _here["driver"], _here["corpora"])


def threads_for(workers: int) -> int:
    """Processor threads of each worker: an even share of the machine, unless OMP_NUM_THREADS says less."""
    share = max(1, (os.cpu_count() or 1) // workers)
    told = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, int(told)) if told.isdigit() and int(told) else share


def open_cache(metrics: Sequence[Metric]) -> Any:
    """The answer cache on disk, when any of the metrics asks a model."""
    if not any(metric.roles_needed() for metric in metrics):
        return None
    from quaestor.models.cache import AnswerCache

    return AnswerCache()


def score_windows(
    groups: Iterable[list[Record]],
    metrics: Sequence[Metric],
    models: ModelSet,
    corpora: Mapping[str, Corpus],
    workers: int,
    cached: bool = True,
) -> Iterator[list[Outcome]]:
    """Outcomes of each window, in order, from `workers` processes; at most 2 windows per worker are in flight."""
    threads = str(threads_for(workers))
    before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    os.environ.update(OMP_NUM_THREADS=threads, MKL_NUM_THREADS=threads)
    fresh = type(models)(models.names, models.family, models.dtype, models.device, models.pull)
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _start, (list(metrics), fresh, cached, dict(corpora)))
    flying: deque[Future[list[Outcome]]] = deque()
    try:
        for group in groups:
            flying.append(pool.submit(_score, group))
            if len(flying) >= 2 * workers:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()
    except BrokenProcessPool:
        raise QuaestorError(
            "a worker process died (out of memory?); what is written is safe: run again with --resume"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
