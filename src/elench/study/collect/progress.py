"""The state of a running study: what `elench study status` prints and the desk shows."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.engine import Connection

from elench.study.analyse.flags import Habits, habits
from elench.study.analyse.outlook import Outlook, outlook
from elench.study.analyse.quality import Verdict, judge_rater
from elench.study.analyse.rater_agreement import CriterionAlpha, agreement
from elench.study.analyse.scores import compare_systems, intervals, judgements, kept_sittings, tabulate
from elench.study.analyse.sequential import PairState, pair_states
from elench.study.analyse.sittings import Sitting, by_rater, load_sittings
from elench.study.collect.schema import StoredRow, assignments, events, messages, raters, ratings, tasks
from elench.study.collect.store import Store
from elench.study.folder import KNOWN, Study

HEAVY_SECONDS = 20.0
"""The desk computes verdicts, ranking and agreement anew at most this often."""


@dataclass(frozen=True)
class TaskProgress:
    """One task of the plan."""

    id: str
    passage: str
    items: int
    planned: int
    counted: int
    """Submitted and passed."""
    submitted: int
    open: int
    expired: int
    minutes: float | None


@dataclass(frozen=True)
class SystemProgress:
    """How often a system has been rated."""

    name: str
    planned: int
    rated: int
    """Ordinary and repeated items in counted tasks."""


@dataclass(frozen=True)
class RaterProgress:
    """One rater's work so far."""

    id: str
    source: str
    worker: str | None
    standing: str
    submitted: int
    counted: int
    open: int
    minutes: float | None
    qualification: float | None
    verdict: Verdict | None
    habits: Habits | None
    shared: bool
    """Another rater came from the same browser."""

    @property
    def flags(self) -> tuple[str, ...]:
        own = self.habits.flags if self.habits else ()
        return (*own, "same browser as another rater") if self.shared else own


@dataclass(frozen=True)
class Place:
    """A system in the ranking so far."""

    system: str
    score: float
    interval: tuple[float, float]
    letters: str
    n: int


@dataclass(frozen=True)
class Heavy:
    """What changes only when work is submitted or a rater's standing changes."""

    at: float
    mark: tuple[int, ...]
    verdicts: dict[str, Verdict]
    habits: dict[str, Habits]
    ranking: tuple[Place, ...]
    ranking_all: tuple[Place, ...]
    """Without the filter."""
    agreement: tuple[CriterionAlpha, ...]
    outlook: Outlook
    pairs: tuple[PairState, ...]
    minutes: dict[str, list[float]]
    """By task."""


@dataclass(frozen=True)
class Progress:
    """Everything at a glance."""

    paused: bool
    tasks: tuple[TaskProgress, ...]
    systems: tuple[SystemProgress, ...]
    raters: tuple[RaterProgress, ...]
    planned: int
    counted: int
    submitted: int
    open: int
    expired: int
    ratings: int
    minutes: float | None
    judged: int
    passed: int
    filtered: bool
    heavy: Heavy
    threads: tuple[tuple[str, int, str], ...]
    """Rater, number of messages, the newest one."""


class Watch:
    """Follows one store. Submitted work never changes, so it is read once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._sittings: dict[str, Sitting] = {}
        self._verdicts: dict[tuple[str, int, str], tuple[Verdict, Habits]] = {}
        self._heavy: Heavy | None = None

    def progress(self, fresh: bool = False) -> Progress:
        """Count what is there now; `fresh` computes everything anew."""
        with self._lock:
            self.store.expire()
            self.store.settle()
            with self.store.reading() as connection:
                heads = connection.execute(_heads()).all()
                mark = self._mark(connection)
                heavy = self._heavy
                old = heavy is not None and time.monotonic() - heavy.at > HEAVY_SECONDS
                if heavy is None or fresh or (mark != heavy.mark and old):
                    heavy = self._compute(connection, heads, mark)
                    self._heavy = heavy
                return self._assemble(connection, heads, heavy)

    @staticmethod
    def _mark(connection: Connection) -> tuple[int, ...]:
        submitted = select(func.count()).select_from(assignments).where(assignments.c.state == "submitted")
        queries = (submitted, select(func.max(events.c.id)), select(func.sum(raters.c.judged)))
        return tuple(int(connection.scalar(query) or 0) for query in queries)

    def sittings(self, connection: Connection, heads: Sequence[StoredRow]) -> list[Sitting]:
        """Submitted work with its present place and standing; only what is new is read from the database."""
        done = {row.id: row for row in heads if row.state == "submitted" and row.task not in KNOWN}
        new = [name for name in done if name not in self._sittings]
        for start in range(0, len(new), 500):
            for sitting in load_sittings(connection, self.store.study, only=new[start : start + 500]):
                self._sittings[sitting.id] = sitting
        known = [(self._sittings[name], row) for name, row in done.items() if name in self._sittings]
        return [replace(sitting, slot=row.slot, standing=row.standing) for sitting, row in known]

    def _judge(self, rater: str, own: list[Sitting]) -> tuple[Verdict, Habits]:
        key = (rater, len(own), own[0].standing)
        if key not in self._verdicts:
            verdict = judge_rater(self.store.study, rater, own)
            self._verdicts[key] = (verdict, habits(self.store.study, own, verdict))
        return self._verdicts[key]

    def _compute(self, connection: Connection, heads: Sequence[StoredRow], mark: tuple[int, ...]) -> Heavy:
        study = self.store.study
        done = self.sittings(connection, heads)
        judged = {rater: self._judge(rater, own) for rater, own in by_rater(done).items()}
        verdicts = {rater: verdict for rater, (verdict, _) in judged.items()}
        kept = [s for s in done if verdicts[s.rater].passed]
        target = connection.scalar(select(func.sum(tasks.c.raters + tasks.c.extra)).where(tasks.c.id.not_in(KNOWN)))
        minutes: dict[str, list[float]] = {}
        for sitting in done:
            if sitting.minutes is not None:
                minutes.setdefault(sitting.task, []).append(sitting.minutes)
        return Heavy(
            at=time.monotonic(),
            mark=mark,
            verdicts=verdicts,
            habits={rater: found for rater, (_, found) in judged.items()},
            ranking=ranking(study, kept),
            ranking_all=ranking(study, kept_sittings(done, None)),
            agreement=tuple(agreement(study, kept, draws=0)),
            outlook=outlook(study, done, int(target or 0)),
            pairs=tuple(pair_states(study, done)) if study.adaptive else (),
            minutes=minutes,
        )

    def _assemble(self, connection: Connection, heads: Sequence[StoredRow], heavy: Heavy) -> Progress:
        study = self.store.study
        real = [row for row in heads if row.task not in KNOWN]
        states = Counter((row.task, row.state) for row in real)
        counted = Counter(row.task for row in real if row.state == "submitted" and row.slot is not None)
        places = {row.id: row.raters + row.extra for row in connection.execute(select(tasks))}
        planned, rated = Counter[str](), Counter[str]()
        for task in study.tasks:
            for item in task.items:
                if item.scored:
                    planned[item.system] += places[task.id]
                    rated[item.system] += counted[task.id]
        return Progress(
            paused=self.store.paused,
            tasks=tuple(_task(study, task.id, places[task.id], counted, states, heavy) for task in study.tasks),
            systems=tuple(SystemProgress(name, planned[name], rated[name]) for name in study.systems),
            raters=_raters(connection, real, heavy),
            planned=sum(places[task.id] for task in study.tasks),
            counted=sum(counted.values()),
            submitted=sum(row.state == "submitted" for row in real),
            open=sum(row.state == "open" for row in real),
            expired=sum(row.state == "expired" for row in real),
            ratings=connection.scalar(select(func.count()).select_from(ratings)) or 0,
            minutes=_median([m for several in heavy.minutes.values() for m in several]),
            judged=len(heavy.verdicts),
            passed=sum(v.passed for v in heavy.verdicts.values()),
            filtered=study.protocol.filter.judges_raters,
            heavy=heavy,
            threads=_threads(connection),
        )


def progress(store: Store) -> Progress:
    """Everything computed anew, for the command line."""
    return Watch(store).progress(fresh=True)


def _heads() -> Any:
    columns = ("id", "task", "rater", "slot", "state", "assigned", "submitted")
    return (
        select(*(assignments.c[name] for name in columns), raters.c.standing)
        .join(raters, raters.c.id == assignments.c.rater)
        .order_by(assignments.c.assigned, assignments.c.id)
    )


def ranking(study: Study, sittings: Sequence[Sitting]) -> tuple[Place, ...]:
    """Systems best first, with intervals and letters; empty while there is nothing to rank."""
    found = judgements(study, sittings, study.protocol.standardise)
    rated = [name for name in study.systems if any(j.system == name for j in found)]
    if len(rated) < 2:
        return ()
    table = tabulate(found, rated, len(study.protocol.criteria))
    values = table.scores()[:, -1]
    low, high = intervals(table)
    order = sorted(range(len(rated)), key=lambda k: -values[k])
    _, letters = compare_systems(table, order)
    return tuple(
        Place(rated[k], float(values[k]), (float(low[k, -1]), float(high[k, -1])), letters[place], int(table.shown[k]))
        for place, k in enumerate(order)
    )


def _task(
    study: Study, name: str, places: int, counted: Counter[str], states: Counter[Any], heavy: Heavy
) -> TaskProgress:
    task = study.by_id[name]
    passage = study.records[task.items[0].record, task.items[0].system].context or ""
    return TaskProgress(
        id=name,
        passage=passage[:80],
        items=len(task.screens),
        planned=places,
        counted=counted[name],
        submitted=states[name, "submitted"],
        open=states[name, "open"],
        expired=states[name, "expired"],
        minutes=_median(heavy.minutes.get(name, [])),
    )


def _raters(connection: Connection, real: Sequence[StoredRow], heavy: Heavy) -> tuple[RaterProgress, ...]:
    own: dict[str, list[StoredRow]] = {}
    for row in real:
        own.setdefault(row.rater, []).append(row)
    rows = connection.execute(select(raters).order_by(raters.c.arrived, raters.c.id)).all()
    devices = Counter(row.device for row in rows if row.device)
    return tuple(
        RaterProgress(
            id=row.id,
            source=row.source,
            worker=row.worker,
            standing=row.standing,
            submitted=sum(one.state == "submitted" for one in own.get(row.id, ())),
            counted=sum(one.state == "submitted" and one.slot is not None for one in own.get(row.id, ())),
            open=sum(one.state == "open" for one in own.get(row.id, ())),
            minutes=_median([(one.submitted - one.assigned) / 60 for one in own.get(row.id, ()) if one.submitted]),
            qualification=row.qualification,
            verdict=heavy.verdicts.get(row.id),
            habits=heavy.habits.get(row.id),
            shared=bool(row.device) and devices[row.device] > 1,
        )
        for row in rows
    )


def _threads(connection: Connection) -> tuple[tuple[str, int, str], ...]:
    rows = connection.execute(select(messages).order_by(messages.c.id)).all()
    counts = Counter(row.rater for row in rows)
    newest = {row.rater: f"{row.author}: {row.text}" for row in rows}
    return tuple((rater, counts[rater], text) for rater, text in newest.items())


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None
