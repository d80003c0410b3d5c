"""Evidence that is only worked out when someone looks at it, so that scoring a million records stays fast."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any


class Evidence(Mapping[str, Any]):
    """A mapping whose content is the result of `explain(*given)`, a module-level function, called at the first look."""

    def __init__(self, explain: Callable[..., dict[str, Any]], *given: Any) -> None:
        self.explain, self.given = explain, given
        self.content: dict[str, Any] | None = None

    def _looked(self) -> dict[str, Any]:
        if self.content is None:
            self.content = self.explain(*self.given)
        return self.content

    def __getitem__(self, key: str) -> Any:
        return self._looked()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._looked())

    def __len__(self) -> int:
        return len(self._looked())

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._looked(),)  # what travels to another process is the plain content

    def __repr__(self) -> str:
        return repr(self._looked())
