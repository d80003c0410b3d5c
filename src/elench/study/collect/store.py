"""Where ratings are kept: hands out tasks, never more often than planned, and keeps every acknowledged rating."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Select, and_, func, insert, select, update
from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError

from elench.errors import UsageError
from elench.study.collect import handout, standing
from elench.study.collect.database import Closed, Database, Stale
from elench.study.collect.schema import (
    VERSION,
    StoredRow,
    assignments,
    events,
    facts,
    messages,
    metadata,
    raters,
    ratings,
    tasks,
)
from elench.study.folder import KNOWN, QUALIFICATION, TRAINING, Study, private


@dataclass(frozen=True)
class Arrival:
    """Who comes, from where: `rater` is the pseudonym, `session` lets exactly this visit be resumed."""

    rater: str
    source: str
    session: str
    worker: str | None = None
    platform: Mapping[str, str] | None = None
    device: str | None = None
    """Keyed hash of the browser's cookie."""


@dataclass(frozen=True)
class Assignment:
    """A task in the hands of a rater."""

    id: str
    task: str
    rater: str
    state: str
    session: str
    order: tuple[tuple[int, ...], ...]
    """Screens in the rater's order; each lists the places of its items in the plan's task."""
    platform: dict[str, str]
    code: str
    feedback: str
    assigned: float
    expires: float
    submitted: float | None
    slot: int | None


@dataclass(frozen=True)
class Current:
    """The answers of a task as they are now."""

    answers: dict[int, dict[str, str]]
    """Item's place → criterion → answer."""
    versions: dict[int, int]
    """Item's place → number of its newest rating: what a page has seen."""
    sent: dict[int, list[tuple[int, str]]]
    """Item's place → its ratings' numbers with the tab that sent each."""


class Store:
    """The database of one study."""

    def __init__(self, study: Study, url: str | None = None) -> None:
        self.study = study
        self.url = url or study.default_database
        if url is None:
            private(Path(study.folder) / "study.db")
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
            if known.setdefault("schema", VERSION) != VERSION or ("created" in known and "plan" not in known):
                raise UsageError("this database was written by another version of elench: analyse it with that version")
            if "created" not in known:
                new = {
                    "study": self.study.id,
                    "schema": VERSION,
                    "created": str(time.time()),
                    "paused": "no",
                    "plan": "",
                }
                connection.execute(insert(facts), [{"name": name, "value": value} for name, value in new.items()])
            elif known["plan"] not in ("", self.study.fingerprint):
                raise UsageError(
                    f"{self.study.folder}: plan, records or scales were changed after the first rating, given "
                    "under another design: restore them; for more raters use `elench study extend`, for another design "
                    "make a new study"
                )
            self._follow_plan(connection)

    def _follow_plan(self, connection: Connection) -> None:
        planned = {task.id: task.raters for task in self.study.by_id.values()}
        stored = {row.id: row.raters for row in connection.execute(select(tasks))}
        new = [{"id": name, "raters": count} for name, count in planned.items() if name not in stored]
        if new:
            connection.execute(insert(tasks), new)
        for name, count in stored.items():  # the plan was edited before the first rating
            if planned.get(name, 0) != count:
                connection.execute(update(tasks).where(tasks.c.id == name).values(raters=planned.get(name, 0)))

    # -- facts and the event log

    def fact(self, name: str) -> str:
        with self.reading() as connection:
            return connection.scalar(select(facts.c.value).where(facts.c.name == name)) or ""

    @property
    def paused(self) -> bool:
        return self.fact("paused") == "yes"

    def act(self, write: Any, actor: str, action: str, subject: str = "", detail: str = "") -> Any:
        """Run `write(connection)` and log it as one event, both or neither."""
        with self._writing(alone=True) as connection:
            result = write(connection)
            log(connection, actor, action, subject, detail)
            return result

    def pause(self, paused: bool, actor: str = "researcher", reason: str = "") -> None:
        value = "yes" if paused else "no"
        statement = update(facts).where(facts.c.name == "paused").values(value=value)
        self.act(lambda c: c.execute(statement), actor, "paused" if paused else "resumed", "study", reason)

    # -- handing out

    def assign(self, arrival: Arrival, now: float | None = None) -> Assignment:
        """The task of an arrival: an unfinished one again, or the next; NoTask says why there is none."""
        now = time.time() if now is None else now
        with self._writing(alone=True) as connection:
            handout.expire(connection, now)
            name = handout.assign(connection, self.study, arrival, now)
            return _assignment(connection.execute(_one(name)).one())

    def expire(self, now: float | None = None) -> None:
        """Give the places of unfinished tasks whose time is over back to the pool."""
        with self._writing(alone=True) as connection:
            handout.expire(connection, time.time() if now is None else now)

    def assignment(self, name: str) -> Assignment | None:
        with self.reading() as connection:
            row = connection.execute(_one(name)).first()
        return None if row is None else _assignment(row)

    def resume(self, name: str, now: float | None = None) -> bool:
        """A rater comes back to an expired task: they may go on when its place was not given away meanwhile."""
        now = time.time() if now is None else now
        with self._writing(alone=True) as connection:
            row = connection.execute(_one(name)).one()
            return row.state == "open" or handout.reopen(connection, self.study, row, now)

    def another(self, held: Assignment) -> Assignment:
        """The next task for the rater of a submitted one."""
        platform = {name: value for name, value in held.platform.items() if name != "source"}
        return self.assign(Arrival(held.rater, held.platform["source"], held.session, None, platform))

    def rater(self, name: str) -> StoredRow | None:
        with self.reading() as connection:
            return connection.execute(select(raters).where(raters.c.id == name)).first()

    def qualified(self, rater: str) -> bool | None:
        """Whether a rater passed the test; None when they have not taken it."""
        row = self.rater(rater)
        return None if row is None or row.qualified is None else bool(row.qualified)

    def welcome(self, arrival: Arrival, now: float | None = None) -> str:
        """Register a rater (or find them again); the reason why they are not admitted, else empty."""
        with self._writing(alone=True) as connection:
            return handout.welcome(connection, self.study, arrival, time.time() if now is None else now)

    # -- rating

    def rate(
        self,
        name: str,
        item: int,
        answers: Mapping[str, str | int],
        now: float | None = None,
        *,
        seen: int | None = None,
        tab: str = "",
        seconds: float | None = None,
    ) -> int:
        """Keep ratings of one item; on disk when this returns. What has not changed is not written again.

        `seen` is the version of the item that the rater's page showed: a page that missed newer ratings from another
        browser tab is refused with Stale. Returns the new version.
        """
        at = time.time() if now is None else now
        texts = {criterion: str(answer) for criterion, answer in answers.items()}
        return self.rate_screen(name, {item: texts}, at, seen=seen, tab=tab, seconds=seconds)

    def rate_screen(
        self,
        name: str,
        answers: Mapping[int, Mapping[str, str]],
        now: float | None = None,
        *,
        seen: int | None = None,
        tab: str = "",
        seconds: float | None = None,
    ) -> int:
        """Ratings of all items of a screen at once; see `rate`."""
        at = time.time() if now is None else now
        return self._database.together(lambda c: self._rate(c, name, answers, at, seen, tab, seconds))

    def _rate(
        self,
        connection: Connection,
        name: str,
        answers: Mapping[int, Mapping[str, str]],
        now: float,
        seen: int | None,
        tab: str,
        seconds: float | None,
    ) -> int:
        row = self._open(connection, name)
        task = self.study.by_id[row.task]
        current = self._current(connection, row, set(answers))
        version = max((current.versions.get(place, 0) for place in answers), default=0)
        elsewhere = max(
            (n for place in answers for n, by in current.sent.get(place, ()) if by != tab or not tab), default=0
        )
        rows = [
            {
                "assignment": name,
                "item": task.items[place].key,
                "criterion": criterion,
                "answer": answer,
                "value": self.study.protocol.criterion(criterion).value(answer),
                "tab": tab,
                "seconds": seconds,
                "at": now,
            }
            for place, given in answers.items()
            for criterion, answer in given.items()
            if current.answers.get(place, {}).get(criterion) != answer
        ]
        if rows and seen is not None and seen < elsewhere:
            raise Stale
        if rows:
            if row.task not in KNOWN:
                self._fix_plan(connection)
            connection.execute(insert(ratings), rows)
            newest = select(func.max(ratings.c.id)).where(ratings.c.assignment == name)
            version = connection.scalar(newest) or version
        expires = now + 60 * self.study.protocol.task.minutes
        connection.execute(update(assignments).where(assignments.c.id == name).values(expires=expires))
        return version

    def _fix_plan(self, connection: Connection) -> None:
        """The first rating fixes the design that it was given under."""
        unfixed = and_(facts.c.name == "plan", facts.c.value == "")
        connection.execute(update(facts).where(unfixed).values(value=self.study.fingerprint))

    def _open(self, connection: Connection, name: str) -> StoredRow:
        """A task past its time that nobody has taken away meanwhile is still the rater's."""
        row = connection.execute(_one(name).with_for_update()).one()  # SQLite leaves FOR UPDATE out
        if row.state != "open":
            raise Closed(row.state)
        return row

    def current(self, name: str) -> dict[int, dict[str, str]]:
        """The answers of a task as they are now: item → criterion → answer."""
        return self.now(name).answers

    def now(self, name: str) -> Current:
        """The answers of a task with their versions."""
        with self.reading() as connection:
            return self._current(connection, connection.execute(_one(name)).one())

    def _current(self, connection: Connection, row: StoredRow, places: set[int] | None = None) -> Current:
        """The newest answer to every criterion (later rows override earlier ones)."""
        task = self.study.by_id[row.task]
        columns = (ratings.c.id, ratings.c.item, ratings.c.criterion, ratings.c.answer, ratings.c.tab)
        query = select(*columns).where(ratings.c.assignment == row.id)
        if places is not None:
            query = query.where(ratings.c.item.in_([task.items[place].key for place in places]))
        answers: dict[int, dict[str, str]] = {}
        versions: dict[int, int] = {}
        sent: dict[int, list[tuple[int, str]]] = {}
        for number, key, criterion, answer, tab in connection.execute(query.order_by(ratings.c.id)):
            if (place := task.place_of.get(key)) is not None:
                answers.setdefault(place, {})[criterion] = answer
                versions[place] = number
                sent.setdefault(place, []).append((number, tab))
        return Current(answers, versions, sent)

    def missing(self, name: str) -> list[int]:
        """Screens of a task that lack a rating, in the rater's order, counted from 0."""
        with self.reading() as connection:
            return self._missing(connection, connection.execute(_one(name)).one())

    def _missing(self, connection: Connection, row: StoredRow) -> list[int]:
        have = self._current(connection, row).answers
        wanted = {criterion.name for criterion in self.study.protocol.asked if criterion.required}
        screens = json.loads(getattr(row, "order"))  # noqa: B009
        return [n for n, places in enumerate(screens) if any(wanted - set(have.get(place, {})) for place in places)]

    def submit(self, name: str, feedback: str, now: float | None = None) -> list[int]:
        """Close a complete task; an incomplete one stays open and the screens that lack ratings come back.

        Submitting again changes nothing. A submitted task is judged at once: the protocol's filter decides whether it
        counts towards the target and whether its rater goes on.
        """
        at = time.time() if now is None else now
        places = self._database.together(lambda connection: self._submit(connection, name, feedback, at))
        if not places:
            self.settle(name)
        return places

    def _submit(self, connection: Connection, name: str, feedback: str, now: float) -> list[int]:
        row = connection.execute(_one(name)).one()
        if row.state == "submitted":
            return []
        row = self._open(connection, name)
        if places := self._missing(connection, row):
            return places
        words = feedback.strip()
        values = {"state": "submitted", "submitted": now, "feedback": words}
        connection.execute(update(assignments).where(assignments.c.id == name).values(values))
        if words:
            said = {"rater": row.rater, "author": "rater", "text": words, "at": now}
            connection.execute(insert(messages).values(said))
        if row.task == QUALIFICATION:
            self._qualify(connection, row)
        if row.task == TRAINING:
            connection.execute(update(raters).where(raters.c.id == row.rater).values(trained=1))
        return []

    def settle(self, name: str | None = None) -> None:
        """Judge the rater of an assignment, or every rater with work that no verdict has seen yet."""
        with self.reading() as connection:
            waiting = standing.unjudged(connection)
            if name is not None:
                rater = connection.scalar(select(assignments.c.rater).where(assignments.c.id == name))
                waiting = [rater] if rater in waiting else []
        for rater in waiting:
            with self._writing(alone=True) as connection:
                standing.settle(connection, self.study, str(rater))

    def _qualify(self, connection: Connection, row: StoredRow) -> None:
        protocol = self.study.protocol
        given = self._current(connection, row).answers
        hits = []
        for place, item in enumerate(protocol.qualification):
            for criterion, (low, high) in item.expected.items():
                value = protocol.criterion(criterion).value(given[place][criterion])
                hits.append(value is not None and low <= value <= high)
        share = sum(hits) / len(hits)
        values = {"qualification": share, "qualified": int(share >= protocol.pass_mark)}
        connection.execute(update(raters).where(raters.c.id == row.rater).values(values))


def log(connection: Connection, actor: str, action: str, subject: str = "", detail: str = "") -> None:
    """A row of the event log, in the same transaction as what it tells."""
    values = {"at": time.time(), "actor": actor, "action": action, "subject": subject, "detail": detail}
    connection.execute(insert(events).values(values))


def _one(name: str) -> Select[Any]:
    return select(assignments).where(assignments.c.id == name)


def _assignment(row: StoredRow) -> Assignment:
    order = json.loads(getattr(row, "order"))  # noqa: B009
    screens = tuple(tuple(screen) for screen in order)
    return Assignment(
        row.id, row.task, row.rater, row.state, row.session, screens, json.loads(row.platform), row.code, row.feedback,
        row.assigned, row.expires, row.submitted, row.slot,
    )  # fmt: skip
