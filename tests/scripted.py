"""Models that answer by a plain function, so that a metric's arithmetic can be worked out by hand.

found = run("questeval", {"reader": lambda request: …}, summary=…, context=…)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elench.engine.drive import Driver, Failure
from elench.metrics import metric
from elench.metrics.base import Score
from elench.models.base import ModelSet
from elench.records.record import Record


class Script:
    """A model that answers each request by a function, and remembers what it was asked."""

    budget, name, sha256 = 4096, "script", "0" * 64

    def __init__(self, role: str, say: Callable[[Any], Any]) -> None:
        self.role, self.say = role, say
        self.asked: list[Any] = []

    def batches(self, requests: Sequence[Any]) -> list[list[int]]:
        return [list(range(len(requests)))]

    def answer(self, batch: Sequence[Any]) -> list[Any]:
        self.asked += batch
        return [self.say(r) for r in batch]


def scripted(says: Mapping[str, Callable[[Any], Any]]) -> ModelSet:
    """A model set in which each role is played by a function."""
    return ModelSet(loaded={role: Script(role, say) for role, say in says.items()})


def run(spec: str, models: ModelSet | Mapping[str, Callable[[Any], Any]], **fields: Any) -> Score:
    """Score one record; what makes it unscored is raised."""
    record = Record.from_object({"id": "1", **fields})
    given = models if isinstance(models, ModelSet) else scripted(models)
    result = Driver(given).run([metric(spec).score(record)])[0]
    if isinstance(result, Failure):
        raise result.error
    return result
