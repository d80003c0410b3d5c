"""Which task an arriving rater gets: their unfinished one, or the next one that still needs ratings."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, and_, func, insert, select, update
from sqlalchemy.engine import Connection

from elench.study.collect import standing
from elench.study.collect.schema import StoredRow, assignments, facts, raters, tasks
from elench.study.folder import KNOWN, QUALIFICATION, TRAINING, Study

if TYPE_CHECKING:
    from elench.study.collect.store import Arrival

CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no 0/O, 1/I
PLATFORMS = ("mturk", "prolific")  # they give every task a session of its own


REFUSALS = {"excluded": "not_admitted", "stopped": "stopped", "screened": "screened_out", "withdrawn": "not_admitted"}
"""A rater's standing → the text that tells them why there is no task."""


class NoTask(Exception):
    """There is nothing to do for this rater now; the argument names the text that tells them why."""


def welcome(connection: Connection, study: Study, arrival: Arrival, now: float) -> str:
    """Register a rater; the name of the reason why they are not admitted, else empty."""
    row = _rater(connection, study, arrival, now)
    visit = and_(assignments.c.rater == row.id, assignments.c.session == arrival.session)
    if connection.scalar(select(func.count()).select_from(assignments).where(visit)):
        return ""  # came back to a task of this visit: its own page tells how it ended
    if row.standing in REFUSALS:
        return REFUSALS[row.standing]
    if row.arrived == now and _took_part_earlier(study, arrival):
        connection.execute(update(raters).where(raters.c.id == row.id).values(standing="excluded"))
        return "took_part_earlier"
    if study.protocol.one_person and arrival.device is not None:
        before = and_(raters.c.device == arrival.device, raters.c.id != row.id, raters.c.arrived < row.arrived)
        if connection.scalar(select(func.count()).select_from(raters).where(before)):
            return "same_person"
    return ""


def _took_part_earlier(study: Study, arrival: Arrival) -> bool:
    from elench.study.collect.security import Signer

    worker = arrival.worker or ""
    return any(Signer(key).pseudonym(arrival.source, worker) in names for key, names in study.secrets.earlier)


def _rater(connection: Connection, study: Study, arrival: Arrival, now: float) -> StoredRow:
    query = select(raters).where(raters.c.id == arrival.rater)
    row = connection.execute(query).first()
    if row is None:
        values = {
            "id": arrival.rater,
            "source": arrival.source,
            "worker": arrival.worker if study.keep_worker_ids else None,
            "arrived": now,
            "device": arrival.device,
        }
        connection.execute(insert(raters).values(values))
    elif row.device is None and arrival.device is not None:
        connection.execute(update(raters).where(raters.c.id == arrival.rater).values(device=arrival.device))
    return connection.execute(query).one()


def assign(connection: Connection, study: Study, arrival: Arrival, now: float) -> str:
    """The assignment for an arrival; NoTask names the reason when there is none."""
    rater = _rater(connection, study, arrival, now)
    mine = assignments.c.rater == arrival.rater
    query = select(assignments).where(mine, assignments.c.session == arrival.session)
    held = connection.execute(query.order_by(assignments.c.assigned.desc())).first()
    if held is not None and (held.state == "open" or reopen(connection, study, held, now)):
        return str(held.id)
    if held is not None and held.state == "submitted" and arrival.source in PLATFORMS and held.task not in KNOWN:
        return str(held.id)
    if arrival.rater in standing.unjudged(connection, arrival.rater):
        standing.settle(connection, study, arrival.rater)
        rater = _rater(connection, study, arrival, now)
    if rater.standing in REFUSALS:
        raise NoTask(REFUSALS[rater.standing])
    if connection.scalar(select(facts.c.value).where(facts.c.name == "paused")) == "yes":
        raise NoTask("paused")
    if arrival.source == "prolific":  # one submission at a time: a new session means that the old one was returned
        give_back(connection, and_(mine, assignments.c.session != arrival.session))
    for known, done in ((TRAINING, rater.trained), (QUALIFICATION, rater.qualified)):
        if known in study.by_id and done is None:
            return _take_known(connection, study, arrival, known, now)
    if rater.qualified == 0:
        raise NoTask("test_failed")
    return _next(connection, study, arrival, now)


def _take_known(connection: Connection, study: Study, arrival: Arrival, task: str, now: float) -> str:
    """Training and test are done once; begun in another visit they are taken up there, or anew when that is gone."""
    elsewhere = and_(assignments.c.rater == arrival.rater, assignments.c.task == task)
    begun = connection.scalar(select(func.count()).where(elsewhere, assignments.c.state == "open"))
    if begun and arrival.source not in PLATFORMS:
        raise NoTask("test_elsewhere")
    give_back(connection, elsewhere)
    return _take(connection, study, arrival, task, None, now)


def _next(connection: Connection, study: Study, arrival: Arrival, now: float) -> str:
    mine = and_(assignments.c.rater == arrival.rater, assignments.c.task.not_in(KNOWN))
    counted = and_(mine, assignments.c.state.in_(("open", "submitted")))
    most = study.protocol.task.max_per_rater
    full = (connection.scalar(select(func.count()).where(counted)) or 0) >= most
    found = None if full else _free(connection, study, arrival.rater)
    if found is None and arrival.source in PLATFORMS:
        # A worker who returned a task and takes it again comes with a new session: the abandoned one makes room.
        abandoned = and_(mine, assignments.c.session != arrival.session, assignments.c.state.in_(("open", "expired")))
        if give_back(connection, abandoned):
            found = _free(connection, study, arrival.rater)
    if found is None:
        raise NoTask("enough" if full else "nothing_left")
    return _take(connection, study, arrival, found.id, standing.free_slot(connection, found.id), now)


def give_back(connection: Connection, which: Any) -> int:
    """Unfinished work that its rater will not go on with returns to the pool."""
    unfinished = and_(which, assignments.c.state.in_(("open", "expired")))
    done = connection.execute(update(assignments).where(unfinished).values(state="returned", slot=None))
    return done.rowcount


def _free(connection: Connection, study: Study, rater: str) -> StoredRow | None:
    """The task that needs a rater most, none of whose items this rater has seen."""
    mine = and_(assignments.c.rater == rater, assignments.c.task.not_in(KNOWN), assignments.c.state != "returned")
    had = connection.scalars(select(assignments.c.task).where(mine)).all()
    seen = frozenset().union(*(study.overlaps.get(task, frozenset((task,))) for task in had))
    wanted = connection.scalar(select(facts.c.value).where(facts.c.name == "wanted"))
    weights: dict[str, int] | None = json.loads(wanted) if wanted else None
    if weights is None:
        return connection.execute(_open_tasks(seen).limit(1)).first()
    rows = [row for row in connection.execute(_open_tasks(seen)) if weights.get(row.id, 0) > 0]
    return max(rows, key=lambda row: (weights[row.id], -row.taken), default=None)


def _open_tasks(seen: frozenset[str]) -> Select[Any]:
    taken = func.count(assignments.c.slot)
    places = (tasks.c.raters + tasks.c.extra).label("places")
    return (
        select(tasks.c.id, places, taken.label("taken"))
        .select_from(tasks.outerjoin(assignments, assignments.c.task == tasks.c.id))
        .where(tasks.c.id.not_in(KNOWN), tasks.c.id.not_in(sorted(seen)))
        .group_by(tasks.c.id, tasks.c.raters, tasks.c.extra)
        .having(taken < tasks.c.raters + tasks.c.extra)
        .order_by(taken, func.random())
    )


def _take(connection: Connection, study: Study, arrival: Arrival, task: str, slot: int | None, now: float) -> str:
    chance = secrets.SystemRandom()
    order = [list(screen) for screen in study.by_id[task].screens]
    if task != TRAINING:  # examples come in the order in which they are explained
        chance.shuffle(order)
    for screen in order:
        chance.shuffle(screen)
    name = secrets.token_hex(8)
    code = "-".join("".join(secrets.choice(CODE_LETTERS) for _ in range(4)) for _ in range(3))
    row: dict[str, Any] = {
        "id": name,
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
        "expires": now + 60 * study.protocol.task.minutes,
        "submitted": None,
    }
    connection.execute(insert(assignments).values(row))
    return name


def expire(connection: Connection, now: float) -> None:
    """Give the places of unfinished tasks whose time is over back to the pool."""
    late = and_(assignments.c.state == "open", assignments.c.expires < now)
    connection.execute(update(assignments).where(late).values(state="expired", slot=None))


def reopen(connection: Connection, study: Study, row: StoredRow, now: float) -> bool:
    """Let a rater go on with an expired task when one of its places is free."""
    if row.state != "expired":
        return False
    slot = None
    if row.task not in KNOWN:
        slot = standing.free_slot(connection, row.task)
        if slot is None:
            return False
    values = {"state": "open", "slot": slot, "expires": now + 60 * study.protocol.task.minutes}
    connection.execute(update(assignments).where(assignments.c.id == row.id).values(values))
    return True
