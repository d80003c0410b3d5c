"""Take fields out of a parsed TOML table, with messages that name the file, the place and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from quaestor.errors import UsageError

_MISSING: Any = object()


class Fields:
    """A table being read: every field is asked for once, and what nobody asked for is refused."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self._table, self._where = table, where
        self._asked: list[str] = []

    def wrong(self, name: str, what: str) -> UsageError:
        return UsageError(f"{self._where}: {name}: {what}")

    def _take(self, name: str, default: Any) -> Any:
        self._asked.append(name)
        value = self._table.get(name, default)
        if value is _MISSING:
            raise self.wrong(name, "missing")
        return value

    def text(self, name: str, default: Any = _MISSING) -> str:
        value = self._take(name, default)
        if not isinstance(value, str) or (default is _MISSING and not value.strip()):
            raise self.wrong(name, f"must be a text, not {value!r}")
        return value

    def texts(self, name: str, least: int = 0) -> tuple[str, ...]:
        value = self._take(name, [] if least == 0 else _MISSING)
        if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
            raise self.wrong(name, "must be a list of texts")
        if len(value) < least:
            raise self.wrong(name, f"needs at least {least}")
        return tuple(value)

    def number(self, name: str, default: float, low: float, high: float = float("inf")) -> float:
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            limits = f"at least {low:g}" if high == float("inf") else f"from {low:g} to {high:g}"
            raise self.wrong(name, f"must be a number {limits}, not {value!r}")
        return float(value)

    def numbers(self, name: str, default: tuple[float, ...]) -> tuple[float, ...]:
        value = self._take(name, list(default))
        if not isinstance(value, list) or not all(
            isinstance(v, int | float) and not isinstance(v, bool) for v in value
        ):
            raise self.wrong(name, "must be a list of numbers")
        return tuple(float(v) for v in value)

    def whole(self, name: str, default: int, low: int) -> int:
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise self.wrong(name, f"must be a whole number, at least {low}, not {value!r}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self._take(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, f"must be true or false, not {value!r}")
        return value

    def choice(self, name: str, choices: tuple[str, ...], default: Any = _MISSING) -> str:
        value = self._take(name, default)
        if value not in choices:
            raise self.wrong(name, f"{value!r} is not one of {', '.join(choices)}{_near(str(value), choices)}")
        return str(value)

    def choices(self, name: str, choices: tuple[str, ...]) -> tuple[str, ...]:
        values = self.texts(name, least=1)
        for value in values:
            if value not in choices:
                raise self.wrong(name, f"{value!r} is not one of {', '.join(choices)}{_near(value, choices)}")
        return values

    def table(self, name: str, optional: bool = False) -> Fields:
        value = self._take(name, {} if optional else _MISSING)
        if not isinstance(value, Mapping):
            raise self.wrong(name, f"must be a table: write [{name}]")
        return Fields(value, f"{self._where}: {name}")

    def tables(self, name: str, least: int = 0) -> list[Fields]:
        value = self._take(name, [] if least == 0 else _MISSING)
        if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
            raise self.wrong(name, f"must be tables: write [[{name}]] above each")
        if len(value) < least:
            raise self.wrong(name, f"needs at least {least}: write [[{name}]]")
        return [Fields(v, f"{self._where}: {name} {place}") for place, v in enumerate(value, 1)]

    def refuse_rest(self) -> None:
        """Misspelt fields must not be ignored silently."""
        for name in self._table:
            if name not in self._asked:
                raise self.wrong(name, f"unknown field{_near(name, tuple(self._asked))}")


def _near(word: str, choices: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word, choices, 1)
    return f" (did you mean {near[0]}?)" if near else ""
