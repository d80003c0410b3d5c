"""What the researcher can do in a running study; every action is a row of the event log."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

from sqlalchemy import insert, select, update
from sqlalchemy.engine import Connection

from elench.errors import UsageError
from elench.study.collect.handout import give_back
from elench.study.collect.schema import StoredRow, assignments, events, invitations, raters, tasks
from elench.study.collect.standing import settle
from elench.study.collect.steps import write_message
from elench.study.collect.store import Store
from elench.study.folder import KNOWN

MOST_AT_ONCE = 1000
"""Raters by which a task is extended at once: a slip of the keyboard must not cost a fortune."""


def _standing(connection: Connection, rater: str) -> str:
    """What was decided about a rater so far."""
    found = connection.scalar(select(raters.c.standing).where(raters.c.id == rater))
    if found is None:
        raise UsageError(f"no rater {rater!r}: `elench study status` lists them")
    return str(found)


def _decide(connection: Connection, rater: str, standing: str) -> None:
    """The researcher's word comes before the filter's, but not before the rater's own."""
    if _standing(connection, rater) == "withdrawn":
        raise UsageError(f"rater {rater} withdrew from the study: their work must not be used")
    connection.execute(update(raters).where(raters.c.id == rater).values(standing=standing))


def exclude(store: Store, rater: str, reason: str, actor: str = "researcher") -> None:
    """Leave a rater's work out, free its places, and give them no further task."""
    if not reason.strip():
        raise UsageError("give a reason for excluding a rater: it is kept in the event log")

    def write(connection: Connection) -> None:
        _decide(connection, rater, "excluded")
        give_back(connection, assignments.c.rater == rater)
        settle(connection, store.study, rater)

    store.act(write, actor, "excluded", rater, reason.strip())


def readmit(store: Store, rater: str, reason: str, actor: str = "researcher") -> None:
    """Count a rater's work whatever the filter says; it takes up places that are still free."""
    if not reason.strip():
        raise UsageError("give a reason for readmitting a rater: it is kept in the event log")

    def write(connection: Connection) -> None:
        _decide(connection, rater, "readmitted")
        settle(connection, store.study, rater)

    store.act(write, actor, "readmitted", rater, reason.strip())


def return_slot(store: Store, assignment: str, reason: str, actor: str = "researcher") -> None:
    """Take an unfinished task away from its rater so that somebody else can have it."""

    def write(connection: Connection) -> None:
        if not give_back(connection, assignments.c.id == assignment):
            raise UsageError(f"no unfinished task {assignment!r}: it was submitted or returned meanwhile")

    store.act(write, actor, "slot returned", assignment, reason.strip())


def extend(store: Store, more: int, task: str | None = None, reason: str = "", actor: str = "researcher") -> None:
    """Ask for more raters: for every task, or for one."""
    if not 1 <= more <= MOST_AT_ONCE:
        raise UsageError(f"extend by 1 to {MOST_AT_ONCE} raters per task, not {more}")
    if task is not None and (task not in store.study.by_id or task in KNOWN):
        raise UsageError(f"no task {task!r} in the plan")
    which = tasks.c.id.not_in(KNOWN) if task is None else tasks.c.id == task
    statement = update(tasks).where(which).values(extra=tasks.c.extra + more)
    detail = f"{more} more rater(s) per task" + (f": {reason.strip()}" if reason.strip() else "")
    store.act(lambda c: c.execute(statement), actor, "extended", task or "all tasks", detail)


def invite(store: Store, names: Sequence[str], actor: str = "researcher") -> dict[str, str]:
    """Personal links, also in a running study: name → secret."""
    made = {name.strip(): secrets.token_urlsafe(16) for name in names if name.strip()}
    known = set(all_invitations(store).values())
    if twice := sorted(known & set(made)):
        raise UsageError(f"{', '.join(twice)} already has an invitation")
    if not made:
        raise UsageError("no name to invite")
    rows = [{"secret": secret, "name": name, "at": time.time()} for name, secret in made.items()]
    store.act(lambda c: c.execute(insert(invitations), rows), actor, "invited", ", ".join(made))
    return made


def all_invitations(store: Store) -> dict[str, str]:
    """Secret of each personal link → the name it was made for."""
    with store.reading() as connection:
        later = {row.secret: row.name for row in connection.execute(select(invitations))}
    return {**store.study.invitations, **later}


def reply(store: Store, rater: str, text: str) -> None:
    """Answer a rater's feedback: shown on the page with their completion code."""
    with store.reading() as connection:
        _standing(connection, rater)
    write_message(store, rater, "researcher", text)


def event_log(store: Store, most: int = 500) -> list[StoredRow]:
    """The newest events first."""
    with store.reading() as connection:
        return list(connection.execute(select(events).order_by(events.c.id.desc()).limit(most)))


def work_of(connection: Connection, rater: str) -> list[StoredRow]:
    """Every task that a rater took, oldest first."""
    return list(
        connection.execute(select(assignments).where(assignments.c.rater == rater).order_by(assignments.c.assigned))
    )
