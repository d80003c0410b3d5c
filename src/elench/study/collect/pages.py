"""Fill page templates in the study's language; every text is escaped, whatever its source."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib


@lru_cache
def language(name: str) -> dict[str, str]:
    """The texts of one language; what a translation lacks is in English."""
    folder = files("elench.study.collect").joinpath("languages")
    english = tomllib.loads(folder.joinpath("en.toml").read_text("utf-8"))
    return english | tomllib.loads(folder.joinpath(f"{name}.toml").read_text("utf-8"))


class Pages:
    """The templates of one study."""

    def __init__(self, title: str, instructions: tuple[str, ...], code: str = "en") -> None:
        self._templates = environment()
        self.say = language(code)
        self._common = {
            "study_title": title,
            "instructions": instructions,
            "t": self.say,
            "language": code,
            "direction": self.say["direction"],
        }

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        text = self._templates.get_template(template).render({**self._common, **values})
        return HTMLResponse(text, status)

    def notice(self, status: int, key: str, title: str = "sorry", **values: object) -> Response:
        """A page with one text, named by its key in the language file."""
        return self.tell(status, self.say[key].format(**values), self.say[title])

    def tell(self, status: int, text: str, title: str = "Sorry") -> Response:
        """A page with one text as it is: for the researcher, whose pages are in English."""
        return self.show("notice.html", status, text=text, title=title)


def environment() -> Environment:
    """Templates with escaping always on; a misspelt name is an error, not an empty place."""
    loader = PackageLoader("elench.study.collect", "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
