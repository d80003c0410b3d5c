"""How a metric asks: it awaits a request and goes on with the typed answer.

No event loop is involved: `__await__` hands the request to the engine, which collects the open requests of thousands of
records, drops duplicates, asks the cache, packs the rest into batches and sends the answers back in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, overload

from elench.errors import Unscored

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")


@dataclass(frozen=True)
class Request(Generic[T_co]):
    """A question to the model that plays `role`; `await` gives back the answer, a T_co."""

    role: ClassVar[str]
    cached: ClassVar[bool] = True
    """Whether the answer is small enough to keep on disk between runs."""

    def __await__(self) -> Generator[tuple[Request[object], ...], list[Any], T_co]:
        answers = yield (self,)
        answer: T_co = result_of(answers[0])
        return answer


@dataclass(frozen=True)
class Failure:
    """Takes the place of a result, or of an answer, that is not available."""

    error: Exception


def result_of(result: T | Failure) -> T:
    """A result that is available; what made it fail is raised."""
    if isinstance(result, Failure):
        raise result.error
    return result


class _Together(Generic[T]):
    """Several awaitables stepped side by side, so that all their requests reach the engine in one round."""

    def __init__(self, awaitables: tuple[Awaitable[Any], ...]) -> None:
        self.awaitables = awaitables

    def __await__(self) -> Generator[tuple[Request[object], ...], list[object], T]:
        steps = [a.__await__() for a in self.awaitables]
        results: list[Any] = [None] * len(steps)
        open_requests: dict[int, tuple[Request[object], ...]] = {}

        def advance(i: int, answers: list[object] | None) -> None:
            try:
                # what await hands out is a generator
                open_requests[i] = steps[i].send(answers)  # type: ignore[attr-defined]
            except StopIteration as done:
                open_requests.pop(i, None)
                results[i] = done.value
            except BaseException:
                for step in steps:  # the others will never be asked again
                    step.close()  # type: ignore[attr-defined]  # what await hands out is a generator
                raise

        for i in range(len(steps)):
            advance(i, None)
        while open_requests:
            pending = list(open_requests.items())
            answers = yield tuple(request for _, requests in pending for request in requests)
            at = 0
            for i, requests in pending:
                advance(i, answers[at : at + len(requests)])
                at += len(requests)
        return tuple(results)  # type: ignore[return-value]  # what await hands out is a generator


@overload
def together(a: Awaitable[T1], b: Awaitable[T2], /) -> _Together[tuple[T1, T2]]: ...
@overload
def together(a: Awaitable[T1], b: Awaitable[T2], c: Awaitable[T3], /) -> _Together[tuple[T1, T2, T3]]: ...
@overload
def together(*awaitables: Awaitable[T]) -> _Together[tuple[T, ...]]: ...
def together(*awaitables: Awaitable[Any]) -> _Together[Any]:
    """Await several requests, or several coroutines that await requests, at once: `a, b = await together(A(), B())`."""
    return _Together(awaitables)


async def attempt(awaitable: Awaitable[T]) -> T | Unscored:
    """What an awaitable gives, or why it cannot: one of several texts that cannot be scored spares the others."""
    try:
        return await awaitable
    except Unscored as reason:
        return reason


async def whichever(*awaitables: Awaitable[T]) -> tuple[tuple[int, ...], tuple[T, ...]]:
    """Those of several awaitables that give something, and their places; Unscored when none does."""
    found = await together(*[attempt(a) for a in awaitables])
    places = tuple(i for i, one in enumerate(found) if not isinstance(one, Unscored))
    if not places:
        raise next(one for one in found if isinstance(one, Unscored))
    return places, tuple(one for one in found if not isinstance(one, Unscored))
