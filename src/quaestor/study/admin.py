"""The researcher's pages, behind a token: progress, preview, pause, export."""

from __future__ import annotations

import time

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from quaestor.study.export import ratings_csv, ratings_jsonl
from quaestor.study.folder import Study
from quaestor.study.pages import Pages
from quaestor.study.progress import progress
from quaestor.study.rater import fields, item_view
from quaestor.study.security import Signer, same
from quaestor.study.store import Store

COOKIE = "quaestor_admin"
HOURS = 12


class AdminPages:
    """Answers what the researcher asks; without the token every page is the sign-in page."""

    def __init__(self, study: Study, store: Store, signer: Signer, pages: Pages) -> None:
        self.study, self.store, self.signer, self.pages = study, store, signer, pages

    def routes(self) -> list[Route]:
        return [
            Route("/admin", self.overview),
            Route("/admin/login", self.login, methods=["POST"]),
            Route("/admin/logout", self.logout, methods=["POST"]),
            Route("/admin/pause", self.pause, methods=["POST"]),
            Route("/admin/preview", self.instructions),
            Route("/admin/preview/{task}/{place:int}", self.preview),
            Route("/admin/export.{kind}", self.export),
        ]

    # -- signing in: the cookie holds no token, only its end of life and a signature

    def _session(self) -> str:
        end = str(int(time.time()) + HOURS * 3600)
        return f"{end}.{self.signer.mac('admin', self.study.secrets.admin, end)}"

    def _known(self, request: Request) -> str | None:
        """The session, when it is genuine and not over."""
        session = request.cookies.get(COOKIE, "")
        end, _, mac = session.partition(".")
        genuine = self.signer.matches(mac, "admin", self.study.secrets.admin, end)
        return session if genuine and end.isdigit() and int(end) > time.time() else None

    def _entered(self, request: Request) -> Response:
        response = RedirectResponse("/admin", 303)
        secure = request.url.scheme == "https"
        value = self._session()
        response.set_cookie(COOKIE, value, max_age=HOURS * 3600, httponly=True, samesite="strict", secure=secure)
        return response

    def _stranger(self, wrong: bool = False) -> Response:
        return self.pages.show("login.html", 403 if wrong else 401, wrong=wrong)

    async def login(self, request: Request) -> Response:
        token = (await fields(request)).get("token", "")
        if not same(token.strip(), self.study.secrets.admin):
            return self._stranger(wrong=True)
        return self._entered(request)

    async def logout(self, request: Request) -> Response:
        response = RedirectResponse("/admin", 303)
        response.delete_cookie(COOKIE)
        return response

    # -- looking

    async def overview(self, request: Request) -> Response:
        if "token" in request.query_params:  # the printed link; the token leaves the address bar at once
            if not same(request.query_params["token"], self.study.secrets.admin):
                return self._stranger(wrong=True)
            return self._entered(request)
        session = self._known(request)
        if session is None:
            return self._stranger()
        now = await run_in_threadpool(progress, self.store)
        join = f"{request.url.scheme}://{request.url.netloc}/join/{self.study.secrets.join}"
        return self.pages.show(
            "admin.html",
            now=now,
            study=self.study,
            protocol=self.study.protocol,
            join=join,
            invitations=[(name, f"{join}?invite={secret}") for secret, name in self.study.invitations.items()],
            csrf=self.signer.mac("admin form", session),
            at=time.strftime("%H:%M:%S UTC", time.gmtime()),
        )

    async def instructions(self, request: Request) -> Response:
        if self._known(request) is None:
            return self._stranger()
        first = f"/admin/preview/{self.study.tasks[0].id}/1"
        return self.pages.show(
            "instructions.html", preview=False, action=first, csrf="", rule=self.study.protocol.task, method="get"
        )

    async def preview(self, request: Request) -> Response:
        if self._known(request) is None:
            return self._stranger()
        task = self.study.by_id.get(request.path_params["task"])
        place = request.path_params["place"]
        if task is None or not 1 <= place <= len(task.items):
            return self.pages.notice(404, "There is no such item in the plan.")
        item = task.items[place - 1]
        return self.pages.show(
            "item.html",
            **item_view(self.study, task.id, place - 1),
            given={},
            incomplete=False,
            place=place,
            rated=[False] * len(task.items),
            link="",
            csrf="",
            test=False,
            preview=f"{item.kind} item of {item.system or 'the test'} (record {item.record}) in task {task.id}",
            preview_base=f"/admin/preview/{task.id}/",
        )

    # -- acting

    async def pause(self, request: Request) -> Response:
        session = self._known(request)
        if session is None:
            return self._stranger()
        form = await fields(request)
        if not self.signer.matches(form.get("csrf", ""), "admin form", session):
            return self.pages.notice(403, "This form did not come from the researcher's page.")
        await run_in_threadpool(self.store.pause, form.get("paused") == "yes")
        return RedirectResponse("/admin", 303)

    async def export(self, request: Request) -> Response:
        if self._known(request) is None:
            return self._stranger()
        kind = request.path_params["kind"]
        if kind not in ("jsonl", "csv"):
            return self.pages.notice(404, "Exports are .jsonl and .csv.")
        text = await run_in_threadpool(ratings_jsonl if kind == "jsonl" else ratings_csv, self.store)
        media = "application/x-ndjson" if kind == "jsonl" else "text/csv; charset=utf-8"
        name = f'attachment; filename="ratings-{self.study.id}.{kind}"'
        return Response(text, media_type=media, headers={"content-disposition": name})
