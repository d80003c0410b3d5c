"""Signing in as the researcher: sessions that end when they are signed out, and guessing made slow."""

from __future__ import annotations

import secrets
import time

from sqlalchemy import delete, insert, select
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from elench.study.collect.forms import read_form
from elench.study.collect.pages import Pages
from elench.study.collect.schema import sessions
from elench.study.collect.security import Limiter, Signer, same
from elench.study.collect.site import Site
from elench.study.collect.store import Store

COOKIE = "elench_admin"
HOURS = 12
GUESSES, GUESSES_PER_SECOND = 10, 1 / 30


class SignIn:
    """Who may see the desk. The cookie holds a session's name; the database keeps its keyed hash until it is over."""

    def __init__(self, store: Store, signer: Signer, pages: Pages, site: Site) -> None:
        self.store, self.signer, self.pages, self.site = store, signer, pages, site
        self._guesses = Limiter(GUESSES, GUESSES_PER_SECOND)

    def session(self, request: Request) -> str | None:
        """The session of a request, when it is genuine and not over."""
        name = request.cookies.get(COOKIE, "")
        if not 20 <= len(name) <= 64:
            return None
        query = select(sessions.c.ends).where(sessions.c.id == self.signer.mac("session", name))
        with self.store.reading() as connection:
            ends = connection.scalar(query)
        return name if ends is not None and ends > time.time() else None

    def form_key(self, session: str) -> str:
        """What a form of this session must carry."""
        return self.signer.mac("admin form", session)

    def stranger(self, wrong: bool = False, slow: bool = False) -> Response:
        return self.pages.show("login.html", 429 if slow else 403 if wrong else 401, wrong=wrong, slow=slow)

    async def enter(self, request: Request, token: str) -> Response:
        """Check a token; every wrong one counts against its sender's address."""
        address = request.client.host if request.client else "?"
        if not self._guesses.has(address):
            return self.stranger(slow=True)
        if not same(token.strip(), self.store.study.secrets.admin):
            self._guesses.allows(address)
            return self.stranger(wrong=True)
        name = secrets.token_urlsafe(24)
        await run_in_threadpool(self._open, name)
        response = RedirectResponse("/admin", 303)
        life = HOURS * 3600
        response.set_cookie(COOKIE, name, max_age=life, httponly=True, samesite="strict", secure=self.site.secure)
        return response

    def _open(self, name: str) -> None:
        values = {"id": self.signer.mac("session", name), "ends": time.time() + HOURS * 3600}
        with self.store._writing() as connection:
            connection.execute(delete(sessions).where(sessions.c.ends < time.time()))
            connection.execute(insert(sessions).values(values))

    async def login(self, request: Request) -> Response:
        return await self.enter(request, (await read_form(request)).get("token"))

    async def logout(self, request: Request) -> Response:
        """End the session for good: a copy of the cookie opens nothing afterwards."""
        session = await run_in_threadpool(self.session, request)
        if session is not None:
            form = await read_form(request)
            if not same(form.get("csrf"), self.form_key(session)):
                return self.pages.tell(403, "This form did not come from the researcher's page.")
            await run_in_threadpool(self._close, session)
        response = RedirectResponse("/admin", 303)
        response.delete_cookie(COOKIE)
        return response

    def _close(self, name: str) -> None:
        with self.store._writing() as connection:
            connection.execute(delete(sessions).where(sessions.c.id == self.signer.mac("session", name)))
