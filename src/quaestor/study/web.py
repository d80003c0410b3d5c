"""The web application of a study, and the command that serves it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from quaestor.study.admin import AdminPages
from quaestor.study.folder import Study
from quaestor.study.pages import Pages
from quaestor.study.rater import RaterPages
from quaestor.study.security import App, Guard, Limiter, Signer
from quaestor.study.store import Store

RATER_BURST, RATER_RATE = 150, 10
STRANGER_BURST, STRANGER_RATE = 500, 20

Handler = Callable[[Request, Exception], Awaitable[Response]]


def application(study: Study, store: Store) -> App:
    """The whole application; `store` must be open."""
    signer = Signer(study.secrets.key)
    pages = Pages(study.protocol.title, study.protocol.instructions)

    async def missing(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        texts = {404: "There is no such page.", 413: "The request is too large."}
        text = texts.get(status, "This request cannot be answered.")
        return pages.notice(status, text)

    async def broken(request: Request, error: Exception) -> Response:
        return pages.notice(500, "Something went wrong on our side. Your saved ratings are safe; please try again.")

    async def home(request: Request) -> Response:
        return pages.notice(200, "Please open the link you were given.", title="A study lives here")

    async def health(request: Request) -> Response:
        return PlainTextResponse("ok")

    routes = [
        Route("/", home),
        Route("/health", health),
        *RaterPages(study, store, signer, pages).routes(),
        *AdminPages(study, store, signer, pages).routes(),
        Mount("/static", StaticFiles(directory=Path(str(files("quaestor.study").joinpath("static"))))),
    ]
    inner = Starlette(routes=routes, exception_handlers={HTTPException: missing, Exception: broken})
    return Guard(inner, signer, Limiter(RATER_BURST, RATER_RATE), Limiter(STRANGER_BURST, STRANGER_RATE))  # type: ignore[arg-type]


def serve(study: Study, store: Store, host: str, port: int) -> None:
    """Serve until stopped."""
    import uvicorn

    uvicorn.run(application(study, store), host=host, port=port, log_level="warning", access_log=False)  # type: ignore[arg-type]
