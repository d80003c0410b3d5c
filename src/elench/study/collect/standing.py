"""Quality judged while the study runs: whose work counts towards the target, and who gets no further task."""

from __future__ import annotations

import json
import time
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.engine import Connection

from elench.study.analyse.quality import Verdict, judge_rater
from elench.study.analyse.sequential import pair_states, wanted_tasks
from elench.study.analyse.sittings import load_sittings
from elench.study.collect.schema import assignments, events, facts, raters, tasks
from elench.study.folder import KNOWN, Study


def unjudged(connection: Connection, rater: str | None = None) -> list[str]:
    """Raters with submitted work that their verdict has not seen."""
    real = assignments.c.task.not_in(KNOWN)
    query = (
        select(raters.c.id)
        .join(assignments, assignments.c.rater == raters.c.id)
        .where(assignments.c.state == "submitted", real)
        .group_by(raters.c.id, raters.c.judged)
        .having(func.count() != raters.c.judged)
    )
    if rater is not None:
        query = query.where(raters.c.id == rater)
    return list(connection.scalars(query))


def settle(connection: Connection, study: Study, rater: str) -> None:
    """Judge a rater's submitted work: it takes up places of the target when it passes and frees them when it fails."""
    row = connection.execute(select(raters).where(raters.c.id == rater)).one()
    sittings = [s for s in load_sittings(connection, study, rater) if s.state == "submitted"]
    verdict = judge_rater(study, rater, sittings)
    passed = verdict.passed
    for sitting in sittings:
        slot = sitting.slot
        if passed and slot is None:
            _set_slot(connection, sitting.id, free_slot(connection, sitting.task))
        elif not passed and slot is not None:
            _set_slot(connection, sitting.id, None)
    values: dict[str, Any] = {"judged": len(sittings)}
    if not passed and not verdict.undecided and not row.standing:
        values["standing"] = "stopped"
        _log(connection, "stopped", rater, f"{len(sittings)} tasks, p = {_p(verdict)} on {verdict.pairs} pairs")
    if passed and row.standing == "stopped":  # a task that was still open turned the verdict
        values["standing"] = ""
        _log(connection, "resumed", rater, f"p = {_p(verdict)} on {verdict.pairs} pairs")
    connection.execute(update(raters).where(raters.c.id == rater).values(values))
    if study.adaptive:
        _choose_next(connection, study)


def _choose_next(connection: Connection, study: Study) -> None:
    """Which tasks are still wanted: those that compare systems whose difference is not certain yet."""
    states = pair_states(study, load_sittings(connection, study))
    weights = json.dumps(wanted_tasks(study, states))
    if not connection.execute(update(facts).where(facts.c.name == "wanted").values(value=weights)).rowcount:
        connection.execute(insert(facts).values(name="wanted", value=weights))


def _p(verdict: Verdict) -> str:
    return "undefined" if verdict.p is None else f"{verdict.p:.4f}"


def _log(connection: Connection, action: str, subject: str, detail: str) -> None:
    values = {"at": time.time(), "actor": "server", "action": action, "subject": subject, "detail": detail}
    connection.execute(insert(events).values(values))


def _set_slot(connection: Connection, name: str, slot: int | None) -> None:
    connection.execute(update(assignments).where(assignments.c.id == name).values(slot=slot))


def free_slot(connection: Connection, task: str) -> int | None:
    """A place of a task that nobody holds; None when it has all the ratings it needs."""
    places = connection.scalar(select(tasks.c.raters + tasks.c.extra).where(tasks.c.id == task)) or 0
    used = set(connection.scalars(select(assignments.c.slot).where(assignments.c.task == task)))
    return next((place for place in range(places) if place not in used), None)
