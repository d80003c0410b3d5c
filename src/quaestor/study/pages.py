"""Fill page templates; every text is escaped, whoever wrote it."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response


class Pages:
    """The templates of one study."""

    def __init__(self, title: str, instructions: tuple[str, ...]) -> None:
        self._templates = environment()
        self._common = {"study_title": title, "instructions": instructions}

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        text = self._templates.get_template(template).render({**self._common, **values})
        return HTMLResponse(text, status)

    def notice(self, status: int, text: str, title: str = "") -> Response:
        return self.show("notice.html", status, text=text, title=title or "Sorry")


def environment() -> Environment:
    """Templates with escaping always on; a misspelt name is an error, not an empty place."""
    loader = PackageLoader("quaestor.study", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
