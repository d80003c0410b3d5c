"""What came in: one sitting per task and rater, with its current ratings."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import select
from sqlalchemy.engine import Connection

from elench.study.collect.schema import StoredRow, assignments, raters, ratings
from elench.study.folder import KNOWN, QUALIFICATION, Study

if TYPE_CHECKING:
    from elench.study.collect.store import Store


@dataclass(frozen=True)
class Sitting:
    """One rater's work on one task."""

    id: str
    task: str
    rater: str
    source: str
    state: str
    """open | submitted | expired | returned"""
    assigned: float
    submitted: float | None
    values: Mapping[int, Mapping[str, float]]
    """Item's place in the plan's task → criterion → rating."""
    code: str = ""
    feedback: str = ""
    changes: int = 0
    """How often a rating was changed before the task was submitted."""
    slot: int | None = None
    """Place in the target that it takes up."""
    answers: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """As `values`, but as given: labels' places, ranks, marked words, free text."""
    seconds: Mapping[int, float] = field(default_factory=dict)
    """How long each item was in view."""
    order: tuple[int, ...] = ()
    """Items in the order in which the rater met them."""
    platform: Mapping[str, str] = field(default_factory=dict)
    standing: str = ""
    """What was decided about the rater: stopped, excluded, withdrawn, readmitted; empty: nothing."""

    @property
    def minutes(self) -> float | None:
        return None if self.submitted is None else (self.submitted - self.assigned) / 60


@dataclass(frozen=True)
class RaterFacts:
    """What the store knows about a rater beside their ratings."""

    id: str
    source: str
    worker: str | None
    qualified: bool | None
    qualification: float | None
    standing: str = ""
    """What was decided about them: stopped, excluded, readmitted; empty: nothing."""
    arrived: float = 0.0


def collect(store: Store, qualification: bool = False) -> list[Sitting]:
    """All sittings of a study (those of the qualification test instead, when asked)."""
    with store.reading() as connection:
        found = load_sittings(connection, store.study)
    if qualification:
        return [s for s in found if s.task == QUALIFICATION]
    return [s for s in found if s.task not in KNOWN]


def load_sittings(
    connection: Connection, study: Study, rater: str | None = None, only: Collection[str] | None = None
) -> list[Sitting]:
    """Sittings with their newest ratings: of everybody, of one rater, or of the assignments named in `only`."""
    heads = select(assignments, raters.c.standing).join(raters).order_by(assignments.c.assigned, assignments.c.id)
    query = select(*(ratings.c[name] for name in ("assignment", "item", "criterion", "answer", "value", "seconds")))
    if rater is not None:
        heads = heads.where(assignments.c.rater == rater, assignments.c.task.not_in(KNOWN))
        query = query.where(
            ratings.c.assignment.in_(select(assignments.c.id).where(assignments.c.rater == rater).scalar_subquery())
        )
    if only is not None:
        heads = heads.where(assignments.c.id.in_(list(only)))
        query = query.where(ratings.c.assignment.in_(list(only)))
    rows = {row.id: row for row in connection.execute(heads)}
    found = {name: _Collected({}, {}, {}, 0) for name in rows}
    for name, key, criterion, answer, value, seconds in connection.execute(query.order_by(ratings.c.id)):
        row = rows.get(name)
        task = None if row is None else study.by_id.get(row.task)
        if task is None or (place := task.place_of.get(key)) is None:
            continue
        found[name].add(place, criterion, answer, value, seconds)
    return [_sitting(row, found[name]) for name, row in rows.items() if row.task in study.by_id]


@dataclass
class _Collected:
    """Ratings of one sitting while they are read."""

    values: dict[int, dict[str, float]]
    answers: dict[int, dict[str, str]]
    seconds: dict[int, float]
    rows: int

    def add(self, place: int, criterion: str, answer: str, value: float | None, seconds: float | None) -> None:
        self.rows += 1
        self.answers.setdefault(place, {})[criterion] = answer
        if value is not None:
            self.values.setdefault(place, {})[criterion] = value
        if seconds is not None:
            self.seconds[place] = max(seconds, self.seconds.get(place, 0.0))


def _sitting(row: StoredRow, found: _Collected) -> Sitting:
    return Sitting(
        id=row.id,
        task=row.task,
        rater=row.rater,
        source=json.loads(row.platform)["source"],
        state=row.state,
        assigned=row.assigned,
        submitted=row.submitted,
        values=found.values,
        code=row.code,
        feedback=row.feedback,
        changes=found.rows - sum(len(given) for given in found.answers.values()),
        slot=row.slot,
        answers=found.answers,
        seconds=found.seconds,
        order=tuple(place for screen in json.loads(getattr(row, "order")) for place in screen),  # noqa: B009
        platform=json.loads(row.platform),
        standing=row.standing,
    )


def rater_facts(store: Store) -> list[RaterFacts]:
    with store.reading() as connection:
        rows = connection.execute(select(raters).order_by(raters.c.arrived, raters.c.id)).all()
    return [
        RaterFacts(
            r.id,
            r.source,
            r.worker,
            None if r.qualified is None else bool(r.qualified),
            r.qualification,
            r.standing,
            r.arrived,
        )
        for r in rows
    ]


def by_rater(sittings: Sequence[Sitting]) -> dict[str, list[Sitting]]:
    """Submitted sittings of each rater."""
    found: dict[str, list[Sitting]] = defaultdict(list)
    for sitting in sittings:
        if sitting.state == "submitted":
            found[sitting.rater].append(sitting)
    return dict(found)
