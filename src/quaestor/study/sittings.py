"""What came in: one sitting per task and rater, with its ratings as they stand."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select

from quaestor.study.folder import QUALIFICATION
from quaestor.study.schema import assignments, raters, ratings
from quaestor.study.store import Store


@dataclass(frozen=True)
class Sitting:
    """One rater's work on one task."""

    id: str
    task: str
    rater: str
    source: str
    state: str
    """open | submitted | expired"""
    assigned: float
    submitted: float | None
    values: Mapping[int, Mapping[str, float]]
    """Item's place in the plan's task → criterion → rating."""
    code: str = ""
    feedback: str = ""
    changes: int = 0
    """How often a rating was changed before the task was submitted."""

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


def collect(store: Store, qualification: bool = False) -> list[Sitting]:
    """All sittings of a study (those of the qualification test instead, when asked)."""
    found: dict[str, dict[int, dict[str, float]]] = defaultdict(dict)
    rows_of: dict[str, int] = defaultdict(int)
    with store.reading() as connection:
        query = select(ratings.c.assignment, ratings.c.item, ratings.c.criterion, ratings.c.value)
        for name, item, criterion, value in connection.execute(query.order_by(ratings.c.id)):
            found[name].setdefault(item, {})[criterion] = value
            rows_of[name] += 1
        heads = connection.execute(select(assignments).order_by(assignments.c.assigned, assignments.c.id)).all()
    return [
        Sitting(
            id=row.id,
            task=row.task,
            rater=row.rater,
            source=json.loads(row.platform)["source"],
            state=row.state,
            assigned=row.assigned,
            submitted=row.submitted,
            values=found[row.id],
            code=row.code,
            feedback=row.feedback,
            changes=rows_of[row.id] - sum(len(given) for given in found[row.id].values()),
        )
        for row in heads
        if (row.task == QUALIFICATION) == qualification
    ]


def rater_facts(store: Store) -> list[RaterFacts]:
    with store.reading() as connection:
        rows = connection.execute(select(raters).order_by(raters.c.arrived, raters.c.id)).all()
    return [
        RaterFacts(r.id, r.source, r.worker, None if r.qualified is None else bool(r.qualified), r.qualification)
        for r in rows
    ]


def by_rater(sittings: Sequence[Sitting]) -> dict[str, list[Sitting]]:
    """Submitted sittings of each rater."""
    found: dict[str, list[Sitting]] = defaultdict(list)
    for sitting in sittings:
        if sitting.state == "submitted":
            found[sitting.rater].append(sitting)
    return dict(found)
