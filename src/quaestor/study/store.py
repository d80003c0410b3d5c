"""Where ratings live: hands out tasks, never more often than planned, and keeps every acknowledged rating."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, exists, func, insert, select, update
from sqlalchemy.engine import Connection, Row
from sqlalchemy.exc import OperationalError

from quaestor.errors import UsageError
from quaestor.study.database import Closed, Database
from quaestor.study.folder import QUALIFICATION, Study
from quaestor.study.schema import assignments, facts, metadata, raters, ratings, tasks

CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no 0/O, 1/I


class NoTask(Exception):
    """There is nothing to do for this rater now; the message is for them."""


@dataclass(frozen=True)
class Arrival:
    """Who comes, from where: `rater` is the pseudonym, `session` lets exactly this visit be resumed."""

    rater: str
    source: str
    session: str
    worker: str | None = None
    platform: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Assignment:
    """A task in the hands of a rater."""

    id: str
    task: str
    rater: str
    state: str
    session: str
    order: tuple[int, ...]
    platform: dict[str, str]
    code: str
    feedback: str
    assigned: float
    expires: float
    submitted: float | None


class Store:
    """The database of one study."""

    def __init__(self, study: Study, url: str | None = None) -> None:
        self.study = study
        self.url = url or study.default_database
        self._database = Database(self.url)
        self.reading, self._writing = self._database.reading, self._database.writing
        try:
            self._prepare()
        except OperationalError as error:
            raise UsageError(f"cannot open the database: {str(error.orig).strip().splitlines()[0]}") from None

    def close(self) -> None:
        self._database.close()

    def _prepare(self) -> None:
        with self._writing(alone=True) as connection:
            metadata.create_all(connection)
            known = {row.name: row.value for row in connection.execute(select(facts))}
            if known.setdefault("study", self.study.id) != self.study.id:
                raise UsageError("this database belongs to another study: give every study its own")
            if "created" not in known:
                rows = [{"name": "study", "value": self.study.id}, {"name": "created", "value": str(time.time())}]
                connection.execute(insert(facts), [*rows, {"name": "paused", "value": "no"}])
            planned = {task.id: task.raters for task in self.study.by_id.values()}
            stored = {row.id: row.raters for row in connection.execute(select(tasks))}
            new = [{"id": name, "raters": count} for name, count in planned.items() if name not in stored]
            if new:
                connection.execute(insert(tasks), new)
            for name, count in stored.items():  # the plan was edited: follow it, keep what was rated
                if planned.get(name, 0) != count:
                    connection.execute(update(tasks).where(tasks.c.id == name).values(raters=planned.get(name, 0)))

    # -- the researcher's switch

    @property
    def paused(self) -> bool:
        with self.reading() as connection:
            return connection.scalar(select(facts.c.value).where(facts.c.name == "paused")) == "yes"

    def pause(self, paused: bool) -> None:
        with self._writing() as connection:
            value = "yes" if paused else "no"
            connection.execute(update(facts).where(facts.c.name == "paused").values(value=value))

    # -- handing out tasks

    def assign(self, arrival: Arrival, now: float | None = None) -> Assignment:
        """The rater's open task, or a new one: a task they never had, the least taken first, in their own order."""
        now = time.time() if now is None else now
        with self._writing(alone=True) as connection:
            self._expire(connection, now)
            rater = self._rater(connection, arrival, now)
            mine = assignments.c.rater == arrival.rater
            held = connection.execute(
                select(assignments)
                .where(mine, assignments.c.session == arrival.session)
                .order_by(assignments.c.assigned.desc())
            ).first()
            if held is not None and (held.state == "open" or self._reopen(connection, held, now)):
                return _assignment(connection.execute(_one(held.id)).one())
            own_session = arrival.source in ("mturk", "prolific")  # these platforms give every task a session
            if held is not None and held.state == "submitted" and own_session and held.task != QUALIFICATION:
                return _assignment(held)
            if connection.scalar(select(facts.c.value).where(facts.c.name == "paused")) == "yes":
                raise NoTask("The study is paused at the moment. Please come back later.")
            protocol = self.study.protocol
            if protocol.qualification and rater.qualified is None:
                if connection.scalar(select(func.count()).where(mine, assignments.c.task == QUALIFICATION)):
                    raise NoTask("You have begun the test in another window or visit. Please finish it there.")
                return self._take(connection, arrival, QUALIFICATION, None, now)
            if rater.qualified == 0:
                raise NoTask("Thank you for your interest. The test was not passed, so there is no task for you.")
            counted = and_(mine, assignments.c.task != QUALIFICATION, assignments.c.state != "expired")
            done = connection.scalar(select(func.count()).where(counted)) or 0
            if done >= protocol.task.max_per_rater:
                raise NoTask("Thank you! You have done as many tasks as one person may do in this study.")
            found = connection.execute(_free_task(arrival.rater)).first()
            if found is None:
                raise NoTask("There is no task left for you at the moment. Thank you for your interest.")
            used = set(connection.scalars(select(assignments.c.slot).where(assignments.c.task == found.id)))
            slot = next(place for place in range(found.raters) if place not in used)
            return self._take(connection, arrival, found.id, slot, now)

    def _rater(self, connection: Connection, arrival: Arrival, now: float) -> Row[Any]:
        query = select(raters).where(raters.c.id == arrival.rater)
        if (row := connection.execute(query).first()) is None:
            worker = arrival.worker if self.study.keep_worker_ids else None
            values = {"id": arrival.rater, "source": arrival.source, "worker": worker, "arrived": now}
            connection.execute(insert(raters).values(values))
            row = connection.execute(query).one()
        return row

    def _take(self, connection: Connection, arrival: Arrival, task: str, slot: int | None, now: float) -> Assignment:
        order = list(range(len(self.study.by_id[task].items)))
        secrets.SystemRandom().shuffle(order)
        code = "-".join("".join(secrets.choice(CODE_LETTERS) for _ in range(4)) for _ in range(3))
        row: dict[str, Any] = {
            "id": secrets.token_hex(8),
            "task": task,
            "rater": arrival.rater,
            "slot": slot,
            "state": "open",
            "session": arrival.session,
            "order": json.dumps(order),
            "platform": json.dumps({"source": arrival.source, **(arrival.platform or {})}),
            "code": code,
            "feedback": "",
            "assigned": now,
            "expires": now + 60 * self.study.protocol.task.minutes,
            "submitted": None,
        }
        connection.execute(insert(assignments).values(row))
        return _assignment(connection.execute(_one(row["id"])).one())

    @staticmethod
    def _expire(connection: Connection, now: float) -> None:
        late = and_(assignments.c.state == "open", assignments.c.expires < now)
        connection.execute(update(assignments).where(late).values(state="expired", slot=None))

    def expire(self, now: float | None = None) -> None:
        """Give the places of unfinished tasks whose time is over back to the pool."""
        with self._writing(alone=True) as connection:
            self._expire(connection, time.time() if now is None else now)

    def assignment(self, name: str) -> Assignment | None:
        with self.reading() as connection:
            row = connection.execute(_one(name)).first()
        return None if row is None else _assignment(row)

    def resume(self, name: str, now: float | None = None) -> bool:
        """A rater comes back to an expired task: they may go on when its place was not given away meanwhile."""
        now = time.time() if now is None else now
        with self._writing(alone=True) as connection:
            row = connection.execute(_one(name)).one()
            return row.state == "open" or self._reopen(connection, row, now)

    def _reopen(self, connection: Connection, row: Row[Any], now: float) -> bool:
        if row.state != "expired":
            return False
        slot = None
        if row.task != QUALIFICATION:
            places = connection.scalar(select(tasks.c.raters).where(tasks.c.id == row.task)) or 0
            used = set(connection.scalars(select(assignments.c.slot).where(assignments.c.task == row.task)))
            if (slot := next((place for place in range(places) if place not in used), None)) is None:
                return False
        values = {"state": "open", "slot": slot, "expires": now + 60 * self.study.protocol.task.minutes}
        connection.execute(update(assignments).where(assignments.c.id == row.id).values(values))
        return True

    def another(self, held: Assignment) -> Assignment:
        """The next task for the rater of a submitted one."""
        platform = {name: value for name, value in held.platform.items() if name != "source"}
        return self.assign(Arrival(held.rater, held.platform["source"], held.session, None, platform))

    def qualified(self, rater: str) -> bool | None:
        """Whether a rater passed the test; None when they have not taken it."""
        with self.reading() as connection:
            value = connection.scalar(select(raters.c.qualified).where(raters.c.id == rater))
        return None if value is None else bool(value)

    # -- rating

    def rate(self, name: str, item: int, answers: Mapping[str, int], now: float | None = None) -> None:
        """Keep ratings of one item; on disk when this returns. What has not changed is not written again."""
        at = time.time() if now is None else now
        self._database.together(lambda connection: self._rate(connection, name, item, answers, at))

    def _rate(self, connection: Connection, name: str, item: int, answers: Mapping[str, int], now: float) -> None:
        self._open(connection, name, now)
        before = _latest(connection, name, item).get(item, {})
        rows = [
            {
                "assignment": name,
                "item": item,
                "criterion": criterion,
                "answer": answer,
                "value": self.study.protocol.criterion(criterion).value(answer),
                "at": now,
            }
            for criterion, answer in answers.items()
            if before.get(criterion) != answer
        ]
        if rows:
            connection.execute(insert(ratings), rows)
        expires = now + 60 * self.study.protocol.task.minutes
        connection.execute(update(assignments).where(assignments.c.id == name).values(expires=expires))

    def _open(self, connection: Connection, name: str, now: float) -> Row[Any]:
        query = _one(name)
        row = connection.execute(query.with_for_update()).one()  # SQLite leaves FOR UPDATE out
        if row.state != "open" or row.expires < now:
            raise Closed(row.state if row.state != "open" else "expired")
        return row

    def current(self, name: str) -> dict[int, dict[str, int]]:
        """The answers of a task as they stand: item → criterion → answer."""
        with self.reading() as connection:
            return _latest(connection, name)

    def missing(self, name: str) -> list[int]:
        """Items of a task that lack a rating, in the rater's order, counted from 0."""
        with self.reading() as connection:
            row = connection.execute(_one(name)).one()
            return self._missing(connection, row)

    def _missing(self, connection: Connection, row: Row[Any]) -> list[int]:
        have = _latest(connection, row.id)
        wanted = {criterion.name for criterion in self.study.protocol.criteria}
        return [place for place, item in enumerate(json.loads(row.order)) if wanted - set(have.get(item, {}))]

    def submit(self, name: str, feedback: str, now: float | None = None) -> list[int]:
        """Close a complete task; an incomplete one stays open and the places that lack ratings come back.

        Submitting again changes nothing.
        """
        at = time.time() if now is None else now
        return self._database.together(lambda connection: self._submit(connection, name, feedback, at))

    def _submit(self, connection: Connection, name: str, feedback: str, now: float) -> list[int]:
        row = connection.execute(_one(name)).one()
        if row.state == "submitted":
            return []
        row = self._open(connection, name, now)
        if places := self._missing(connection, row):
            return places
        values = {"state": "submitted", "submitted": now, "feedback": feedback}
        connection.execute(update(assignments).where(assignments.c.id == name).values(values))
        if row.task == QUALIFICATION:
            self._qualify(connection, row)
        return []

    def _qualify(self, connection: Connection, row: Row[Any]) -> None:
        protocol = self.study.protocol
        given = _latest(connection, row.id)
        hits = [
            protocol.criterion(criterion).value(given[place][criterion]) == value
            for place, item in enumerate(protocol.qualification)
            for criterion, value in item.expected.items()
        ]
        share = sum(hits) / len(hits)
        values = {"qualification": share, "qualified": int(share >= protocol.pass_mark)}
        connection.execute(update(raters).where(raters.c.id == row.rater).values(values))


def _one(name: str) -> Select[Any]:
    return select(assignments).where(assignments.c.id == name)


def _free_task(rater: str) -> Select[Any]:
    had = exists().where(assignments.c.task == tasks.c.id, assignments.c.rater == rater)
    taken = func.count(assignments.c.slot)
    return (
        select(tasks.c.id, tasks.c.raters)
        .select_from(tasks.outerjoin(assignments, assignments.c.task == tasks.c.id))
        .where(tasks.c.id != QUALIFICATION, ~had.correlate(tasks))
        .group_by(tasks.c.id, tasks.c.raters)
        .having(taken < tasks.c.raters)
        .order_by(taken, func.random())
        .limit(1)
    )


def _latest(connection: Connection, name: str, item: int | None = None) -> dict[int, dict[str, int]]:
    """The last word on every criterion of one item, or of all, of an assignment (later rows override earlier ones)."""
    found: dict[int, dict[str, int]] = {}
    query = select(ratings.c.item, ratings.c.criterion, ratings.c.answer).where(ratings.c.assignment == name)
    if item is not None:
        query = query.where(ratings.c.item == item)
    for place, criterion, answer in connection.execute(query.order_by(ratings.c.id)):
        found.setdefault(place, {})[criterion] = answer
    return found


def _assignment(row: Row[Any]) -> Assignment:
    order = getattr(row, "order")  # noqa: B009
    return Assignment(
        row.id,
        row.task,
        row.rater,
        row.state,
        row.session,
        tuple(json.loads(order)),
        json.loads(row.platform),
        row.code,
        row.feedback,
        row.assigned,
        row.expires,
        row.submitted,
    )
