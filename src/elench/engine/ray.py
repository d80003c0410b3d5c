"""The same scoring on a Ray cluster: models live in actors, windows travel, results come back in input order.

A worker that dies costs a retry. A window that keeps killing workers is cut into single records, and a record that does
so on its own ends as unscored, with the reason.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elench.engine.workers import Worker, for_workers, threads_for, with_records
from elench.errors import ElenchError, MissingExtra, UsageError
from elench.metrics.base import Metric
from elench.records.record import Record
from elench.runs import Outcome

if TYPE_CHECKING:
    from elench.engine.session import Session

TRIES = 3
"""How often the same records may lose their worker before they are taken apart."""


class ActorPool:
    """A bounded number of actors; each has at most two windows, so that none waits for the next one."""

    def __init__(self, workers: int, threads: int, *arguments: Any) -> None:
        self.ray = _ray()
        environment = {"env_vars": {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}}
        made = self.ray.remote(num_cpus=threads, runtime_env=environment, max_concurrency=1)(Worker)
        shared = [self.ray.put(argument) for argument in arguments]
        self.start: Callable[[], Any] = lambda: made.remote(*shared)
        self.actors = [self.start() for _ in range(workers)]
        self.load = [0] * workers

    def submit(self, records: Sequence[Record]) -> tuple[int, object]:
        """Hand records to the actor with the least to do."""
        chosen = min(range(len(self.actors)), key=lambda i: self.load[i])
        self.load[chosen] += 1
        return chosen, self.actors[chosen].score.remote(records)

    def collect(self, chosen: int, answer: Any) -> list[Outcome] | None:
        """The outcomes, or None when the worker died; a dead worker is replaced."""
        try:
            outcomes: list[Outcome] = self.ray.get(answer)
        except (self.ray.exceptions.RayActorError, self.ray.exceptions.OutOfMemoryError):
            self.load[chosen] -= 1
            self._revive(chosen)
            return None
        except self.ray.exceptions.RayTaskError as error:
            cause = error.as_instanceof_cause() if hasattr(error, "as_instanceof_cause") else error
            raise (cause if isinstance(cause, ElenchError) else ElenchError(f"a Ray worker failed: {cause}")) from None
        self.load[chosen] -= 1
        return outcomes

    def _revive(self, chosen: int) -> None:
        try:
            self.ray.get(self.actors[chosen].__ray_ready__.remote(), timeout=5)
        except (self.ray.exceptions.RayActorError, self.ray.exceptions.GetTimeoutError):
            self.actors[chosen] = self.start()

    def insist(self, records: Sequence[Record], metrics: Sequence[Metric], tries: int = 1) -> list[Outcome]:
        """Score records that have lost their worker `tries` times: again, then one by one, then say why not."""
        while tries < TRIES:
            outcomes = self.collect(*self.submit(records))
            if outcomes is not None:
                return outcomes
            tries += 1
        if len(records) == 1:
            reason = f"the worker died each of the {TRIES} times it scored this record"
            record = records[0]
            return [Outcome(record.id, record.system, {}, {str(metric): reason for metric in metrics})]
        return [outcome for record in records for outcome in self.insist([record], metrics, tries=0)]

    def stop(self) -> None:
        for actor in self.actors:
            self.ray.kill(actor)


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise MissingExtra("--engine ray", "ray") from None
    return ray


def check_address(address: str) -> None:
    """Ray itself waits for minutes where nobody listens; say so at once."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return  # "auto", "local" or a name that Ray resolves
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise UsageError(f"--address {address}: no Ray cluster answers there ({error})") from None


def connect(address: str | None, workers: int) -> bool:
    """Join the cluster at `address`, or start one on this machine; True when this call started it."""
    ray = _ray()
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address:
        check_address(address)
        ray.init(address=address, log_to_driver=False, logging_level="error")
    else:
        cpus = max(workers, os.cpu_count() or 1)
        ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False, logging_level="error")
    return True


def score_on_ray(
    session: Session, groups: Iterable[list[Record]], metrics: Sequence[Metric], states: Mapping[str, object]
) -> Iterator[list[Outcome]]:
    """Outcomes of each window, in input order, from as many actors as the session has workers."""
    started = connect(session.address, session.workers)
    pool = ActorPool(session.workers, threads_for(session.workers), for_workers(session), list(metrics), dict(states))
    flying: deque[tuple[list[Record], int, Any]] = deque()
    try:
        for group in groups:
            flying.append((group, *pool.submit(group)))
            if len(flying) >= 2 * session.workers:
                yield _land(pool, flying.popleft(), metrics)
        while flying:
            yield _land(pool, flying.popleft(), metrics)
    finally:
        pool.stop()
        if started:
            _ray().shutdown()


def _land(pool: ActorPool, flight: tuple[list[Record], int, object], metrics: Sequence[Metric]) -> list[Outcome]:
    records, chosen, answer = flight
    outcomes = pool.collect(chosen, answer)
    return with_records(pool.insist(records, metrics) if outcomes is None else outcomes, records)
