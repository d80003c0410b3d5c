"""Drives metric coroutines: gathers open requests, drops duplicates, asks cache and models, hands answers back."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from elench.engine.baselines import find_baseline
from elench.errors import UsageError
from elench.requests import Baseline, Failure, Request

if TYPE_CHECKING:
    from elench.models.base import AnyModel, ModelSet
    from elench.models.cache import AnswerCache

T = TypeVar("T")
Asked = tuple[Request[object], ...]
Step = Coroutine[Asked, list[object], T]
"""A coroutine that hands out requests, takes their answers, each of its own type, and ends in a T."""
Answers = dict[Request[object], object]
"""What each request was answered with; a Failure where it could not be."""


@dataclass
class Driver:
    """Runs coroutines against a set of models, with an answer cache on disk if there is one."""

    models: ModelSet
    cache: AnswerCache | None = None
    asked: dict[str, int] = field(default_factory=dict)
    """How many requests each role answered anew; what the cache knew is not counted."""

    def run(self, coroutines: Sequence[Step[T]], on_step: Callable[[], None] = lambda: None) -> list[T | Failure]:
        """The result of each coroutine, or the Failure that ended it; usage errors stop the run.

        `on_step` is called before each batch that a model answers and after each finished coroutine.
        """
        try:
            return self._run(coroutines, on_step)
        finally:
            for coroutine in coroutines:  # after Ctrl-C: those that were not begun would warn
                coroutine.close()

    def _run(self, coroutines: Sequence[Step[T]], on_step: Callable[[], None]) -> list[T | Failure]:
        results: dict[int, T | Failure] = {}
        waiting: dict[int, Asked] = {}
        known: Answers = {}

        def step(i: int, resume: Callable[[], Asked]) -> None:
            try:
                waiting[i] = resume()
                return
            except StopIteration as done:
                results[i] = done.value
            except UsageError:
                raise
            except Exception as error:
                results[i] = Failure(error)
            waiting.pop(i, None)
            on_step()

        for i, coroutine in enumerate(coroutines):
            step(i, lambda c=coroutine: c.send(None))  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
        while waiting:
            new = [r for r in dict.fromkeys(r for requests in waiting.values() for r in requests) if r not in known]
            known.update(zip(new, self.answer(new, on_step), strict=True))
            for i, requests in list(waiting.items()):
                answers = [known[request] for request in requests]  # a Failure is raised where it was awaited
                # mypy cannot infer a lambda with defaults
                step(i, lambda c=coroutines[i], a=answers: c.send(a))  # type: ignore[misc]
            known = {request: answer for request, answer in known.items() if request.cached}
        return [results[i] for i in range(len(coroutines))]

    def answer(self, requests: Sequence[Request[object]], on_step: Callable[[], None] = lambda: None) -> list[object]:
        """Answers (or Failures) to distinct requests, in their order."""
        answers: Answers = {}
        by_role: dict[str, list[Request[object]]] = {}
        for request in requests:
            if isinstance(request, Baseline):
                answers[request] = find_baseline(request, self.models)
            else:
                by_role.setdefault(request.role, []).append(request)
        for role, asked in by_role.items():
            keep = [r for r in asked if r.cached] if self.cache else []
            if self.cache and keep:
                name = self.models.identity(role).key
                keys = {(name, r): r for r in keep}
                answers.update({keys[key]: value for key, value in self.cache.get_many(list(keys)).items()})
            self._ask(role, [r for r in asked if r not in answers], answers, on_step)
        return [answers[request] for request in requests]

    def _ask(
        self,
        role: str,
        requests: list[Request[object]],
        answers: Answers,
        on_step: Callable[[], None],
    ) -> None:
        self.asked[role] = self.asked.get(role, 0) + len(requests)
        if not requests:
            return  # the cache knew everything: the model is not even loaded
        model, name = self.models[role], self.models.identity(role).key
        for group in model.batches(requests):
            on_step()
            batch = [requests[i] for i in group]
            found = dict(zip(batch, _answer(model, batch), strict=True))
            answers.update(found)
            if self.cache:
                self.cache.put_many(
                    [((name, r), a) for r, a in found.items() if r.cached and not isinstance(a, Failure)]
                )


def _answer(model: AnyModel, batch: list[Request[object]]) -> Sequence[object]:
    """A batch that fails is asked again one by one, so that one bad text costs only its own record."""
    try:
        return model.answer(batch)
    except UsageError:
        raise
    except Exception as error:
        if len(batch) == 1:
            return [Failure(error)]
        return [_answer(model, [request])[0] for request in batch]
