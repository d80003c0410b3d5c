"""Transactions that are on disk when they return, the same on SQLite and PostgreSQL."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import text
from sqlalchemy.engine import Connection

from elench.study.collect.schema import open_engine

T = TypeVar("T")
_LOCK = 0x7175616573746F72  # "elench": serialises the handing out of tasks on PostgreSQL


class Refused(Exception):
    """A write that must not happen; raised before anything is written, so others in the same transaction go on."""


class Closed(Refused):
    """The task was submitted or went back to the pool; nothing more can be rated in it."""


class Stale(Refused):
    """Another tab has newer ratings of this item than the page being saved."""


class _Job:
    """A write that waits to be committed together with others."""

    def __init__(self, write: Callable[[Connection], Any]) -> None:
        self.write, self.done = write, False
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self, connection: Connection) -> None:
        self.error = None
        try:
            self.result = self.write(connection)
        except Refused as refused:
            self.error = refused


class Database:
    """One database. SQLite has one writer: waiting in line here is fairer and faster than its busy polling."""

    def __init__(self, url: str) -> None:
        self._engine = open_engine(url)
        self._writer = self._engine.execution_options(writes=True)
        self._line = threading.Lock() if self._engine.dialect.name == "sqlite" else None
        self._alone = threading.Lock()
        self._jobs: deque[_Job] = deque()

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self, alone: bool = False) -> Iterator[Connection]:
        """A transaction; `alone`: nobody else, in whatever process, has one of this kind meanwhile."""
        if self._line is not None:
            with self._line, self._writer.begin() as connection:
                yield connection
            return
        if not alone:
            with self._writer.begin() as connection:
                yield connection
            return
        with self._alone, self._writer.begin() as connection:  # wait here first, without holding a connection
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            yield connection

    def together(self, write: Callable[[Connection], T]) -> T:
        """Run `write` in a transaction. On SQLite, writes that wait for the same disk are committed as one: whoever is
        next in line does all that have gathered, and nobody returns before their own is on disk."""
        if self._line is None:
            with self._writer.begin() as connection:
                return write(connection)
        job = _Job(write)
        self._jobs.append(job)
        with self._line:
            if not job.done:
                self._commit_all()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def _commit_all(self) -> None:
        """Only the head of the line comes here; a job is in the queue until it is done."""
        batch = [self._jobs.popleft() for _ in range(len(self._jobs))]
        try:
            self._commit(batch)
        except BaseException:  # one of them failed and took the others with it: each on its own
            for job in batch:
                try:
                    self._commit([job])
                except BaseException as error:
                    job.error = error
        finally:
            for job in batch:
                job.done = True

    def _commit(self, batch: list[_Job]) -> None:
        with self._writer.begin() as connection:
            for job in batch:
                job.run(connection)
