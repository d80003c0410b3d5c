"""The web application of a study, and the command that serves it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from elench.study.collect.arrive import ArrivalPages
from elench.study.collect.desk import DeskPages
from elench.study.collect.pages import Pages
from elench.study.collect.rating import RaterPages
from elench.study.collect.security import App, Guard, Limiter, Signer
from elench.study.collect.site import Site
from elench.study.collect.store import Store
from elench.study.folder import Study

RATER_BURST, RATER_RATE = 150, 10
STRANGER_BURST, STRANGER_RATE = 500, 20


def application(study: Study, store: Store, site: Site | None = None) -> App:
    """The whole application; `store` must be open."""
    site = site or Site("http://localhost")
    signer = Signer(study.secrets.key)
    protocol = study.protocol
    pages = Pages(protocol.title, protocol.instructions, protocol.language)

    async def missing(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return pages.notice(status, {404: "no_page", 413: "too_large"}.get(status, "cannot"))

    async def broken(request: Request, error: Exception) -> Response:
        return pages.notice(500, "broken")

    async def home(request: Request) -> Response:
        return pages.notice(200, "home", title="home_title")

    async def health(request: Request) -> Response:
        return PlainTextResponse("ok")

    routes = [
        Route("/", home),
        Route("/health", health),
        *ArrivalPages(study, store, signer, pages, site).routes(),
        *RaterPages(study, store, signer, pages).routes(),
        *DeskPages(study, store, signer, pages, site).routes(),
        Mount("/static", StaticFiles(directory=Path(str(files("elench.study.collect").joinpath("static"))))),
    ]
    inner = Starlette(routes=routes, exception_handlers={HTTPException: missing, Exception: broken})
    return Guard(inner, signer, Limiter(RATER_BURST, RATER_RATE), Limiter(STRANGER_BURST, STRANGER_RATE))  # type: ignore[arg-type]


def serve(study: Study, store: Store, host: str, port: int, site: Site, trust: str = "127.0.0.1") -> None:
    """Serve until stopped. Forwarding headers are believed only behind a proxy, and only from `trust`."""
    import uvicorn

    from elench.connections import TimedProtocol

    uvicorn.run(
        application(study, store, site),  # type: ignore[arg-type]
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        http=TimedProtocol,
        proxy_headers=site.proxied,
        forwarded_allow_ips=trust if site.proxied else None,
    )
