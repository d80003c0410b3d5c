"""Read a posted form."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request

MOST_FIELDS = 2000
"""Span marking has a field per word; the size of the whole body is limited anyway."""


class Form:
    """The text fields of a form. NUL, which no database stores, is left out; so are files."""

    def __init__(self, data: FormData) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in data.multi_items():
            if isinstance(value, str):
                self._values.setdefault(name, []).append(value.replace("\0", ""))

    def get(self, name: str, default: str = "") -> str:
        return self._values.get(name, [default])[0]

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def __contains__(self, name: str) -> bool:
        return name in self._values


async def read_form(request: Request) -> Form:
    return Form(await request.form(max_files=0, max_fields=MOST_FIELDS))
