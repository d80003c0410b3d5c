"""What a rater does beside rating: consent, comprehension check, demographics, exit survey, messages, withdrawal."""

from __future__ import annotations

import time
from collections.abc import Mapping

from sqlalchemy import func, insert, select, update
from sqlalchemy.engine import Connection

from elench.study.collect.handout import give_back
from elench.study.collect.schema import StoredRow, assignments, messages, raters, steps
from elench.study.collect.standing import settle
from elench.study.collect.store import Store, log
from elench.study.design.protocol import Question

LONGEST = 2000


def taken(store: Store, rater: str) -> set[str]:
    """Steps that a rater has finished."""
    with store.reading() as connection:
        rows = connection.execute(
            select(steps.c.step, steps.c.field, steps.c.value).where(steps.c.rater == rater)
        ).all()
    return {row.step for row in rows if row.field == "done" and row.value == "yes"}


def record(store: Store, rater: str, step: str, answers: Mapping[str, str]) -> None:
    """Keep the answers of a finished step; an unanswered question is not stored."""
    with store._writing() as connection:
        _keep(connection, rater, step, answers, done=True)


def _keep(connection: Connection, rater: str, step: str, answers: Mapping[str, str], done: bool) -> None:
    now = time.time()
    fields = {name: value[:LONGEST] for name, value in answers.items() if value} | {"done": "yes" if done else "no"}
    rows = [{"rater": rater, "step": step, "field": name, "value": value, "at": now} for name, value in fields.items()]
    connection.execute(insert(steps), rows)


def wrong_attempts(connection: Connection, rater: str) -> int:
    """How often the comprehension check was answered wrongly."""
    failed = (steps.c.rater == rater, steps.c.step == "check", steps.c.field == "done", steps.c.value == "no")
    return connection.scalar(select(func.count()).select_from(steps).where(*failed)) or 0


def check(store: Store, rater: str, answers: Mapping[str, str], attempt: str) -> None:
    """Judge a comprehension check; after the last wrong attempt the rater is screened out.

    `attempt` is the number of wrong attempts that the page had seen: a button pressed twice is one attempt.
    """
    protocol = store.study.protocol
    right = all(answers.get(question.name) == question.right for question in protocol.check)
    with store._writing(alone=True) as connection:
        before = wrong_attempts(connection, rater)
        if attempt != str(before) or before >= protocol.attempts:
            return
        _keep(connection, rater, "check", answers, done=right)
        if not right and before + 1 == protocol.attempts:
            connection.execute(update(raters).where(raters.c.id == rater).values(standing="screened"))
            detail = f"{protocol.attempts} wrong attempts at the comprehension check"
            log(connection, "server", "screened out", rater, detail)


def valid_answers(questions: tuple[Question, ...], given: Mapping[str, str]) -> dict[str, str]:
    """Answers that are among the choices, or any text where there are none."""
    return {
        q.name: given[q.name]
        for q in questions
        if given.get(q.name, "").strip() and (not q.choices or given[q.name] in q.choices)
    }


def withdraw(store: Store, rater: str) -> None:
    """A rater ends their participation: open work returns to the pool and nothing they did is analysed."""

    def write(connection: Connection) -> None:
        connection.execute(update(raters).where(raters.c.id == rater).values(standing="withdrawn"))
        give_back(connection, assignments.c.rater == rater)
        settle(connection, store.study, rater)

    store.act(write, "rater", "withdrew", rater)


def thread(store: Store, rater: str) -> list[StoredRow]:
    """Messages between a rater and the researcher, oldest first."""
    with store.reading() as connection:
        return list(connection.execute(select(messages).where(messages.c.rater == rater).order_by(messages.c.id)))


def write_message(store: Store, rater: str, author: str, text: str) -> None:
    words = text.strip()[:LONGEST]
    if not words:
        return
    values = {"rater": rater, "author": author, "text": words, "at": time.time()}
    with store._writing() as connection:
        connection.execute(insert(messages).values(values))
        if author == "researcher":
            log(connection, "researcher", "replied", rater)
