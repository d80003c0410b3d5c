"""Take fields out of a parsed TOML table, with messages that name the file, the place and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from elench.errors import UsageError
from elench.study.design.toml_lines import Path

_MISSING: object = object()


class Fields:
    """A table being read: every field is asked for once, and what nobody asked for is refused."""

    def __init__(
        self, table: Mapping[str, Any], file: str, lines: Mapping[Path, int] | None = None, path: Path = ()
    ) -> None:
        self._table, self._file, self._lines, self._path = table, file, lines or {}, path
        self._asked: list[str] = []

    def wrong(self, name: str, what: str) -> UsageError:
        """A mistake in a field: file, line, where in the file, what is wrong."""
        line = next(
            (
                self._lines[at]
                for n in range(len(self._path) + 1, 0, -1)
                if (at := (*self._path, name)[:n]) in self._lines
            ),
            None,
        )
        place = [f"{part + 1}" if isinstance(part, int) else part for part in self._path]
        inside = " ".join(place)
        where = self._file if line is None else f"{self._file}:{line}"
        return UsageError(": ".join(part for part in (where, inside, name, what) if part))

    def _within(self, table: Mapping[str, object], *parts: str | int) -> Fields:
        return Fields(table, self._file, self._lines, (*self._path, *parts))

    @property
    def empty(self) -> bool:
        return not self._table

    def _take(self, name: str, default: object) -> object:
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
        return self._within(value, name)

    def tables(self, name: str, least: int = 0) -> list[Fields]:
        value = self._take(name, [] if least == 0 else _MISSING)
        if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
            raise self.wrong(name, f"must be tables: write [[{name}]] above each")
        if len(value) < least:
            raise self.wrong(name, f"needs at least {least}: write [[{name}]]")
        return [self._within(v, name, place) for place, v in enumerate(value)]

    def refuse_rest(self) -> None:
        """Misspelt fields must not be ignored silently."""
        for name in self._table:
            if name not in self._asked:
                raise self.wrong(name, f"unknown field{_near(name, tuple(self._asked))}")


def _near(word: str, choices: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word, choices, 1)
    return f" (did you mean {near[0]}?)" if near else ""
