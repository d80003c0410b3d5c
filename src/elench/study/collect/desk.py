"""The researcher's desk, behind a token: progress, ranking, raters, actions, event log, preview, export."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from elench.errors import UsageError
from elench.study.analyse.export import dictionary, raters_csv, ratings_csv, ratings_jsonl
from elench.study.collect import actions, steps
from elench.study.collect.forms import Form, read_form
from elench.study.collect.pages import Pages
from elench.study.collect.payments import PLATFORM_FILES
from elench.study.collect.progress import Progress, Watch
from elench.study.collect.screens import screen_view
from elench.study.collect.security import Signer, same
from elench.study.collect.sign_in import SignIn
from elench.study.collect.site import Site
from elench.study.collect.store import Store
from elench.study.folder import Study

Page = Callable[[Request, str], Awaitable[Response]]


class DeskPages:
    """Answers what the researcher asks; without a session every page is the sign-in page."""

    def __init__(self, study: Study, store: Store, signer: Signer, pages: Pages, site: Site) -> None:
        self.study, self.store, self.site = study, store, site
        self.pages = Pages(study.protocol.title, study.protocol.instructions)  # the desk itself is in English
        self.rater_pages = pages
        self.sign_in = SignIn(store, signer, self.pages, site)
        self.watch = Watch(store)

    def routes(self) -> list[Route]:
        pages: dict[str, Page] = {
            "/admin/raters/{rater}": self.rater,
            "/admin/events": self.events,
            "/admin/preview": self.instructions,
            "/admin/preview/{task}/{place:int}": self.preview,
            "/admin/export.{kind}": self.export,
            "/admin/payments/{kind}.csv": self.payments,
        }
        return [
            Route("/admin", self.overview),
            Route("/admin/login", self.sign_in.login, methods=["POST"]),
            Route("/admin/logout", self.sign_in.logout, methods=["POST"]),
            Route("/admin/act", self.act, methods=["POST"]),
            *(Route(path, self._guarded(page)) for path, page in pages.items()),
        ]

    def _guarded(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            session = await run_in_threadpool(self.sign_in.session, request)
            return self.sign_in.stranger() if session is None else await page(request, session)

        return answer

    # -- looking

    async def overview(self, request: Request) -> Response:
        if "token" in request.query_params:  # the printed link; the token leaves the address bar at once
            return await self.sign_in.enter(request, request.query_params["token"])
        return await self._guarded(self._overview)(request)

    async def _overview(self, request: Request, session: str) -> Response:
        now = await run_in_threadpool(self.watch.progress)
        invited = await run_in_threadpool(actions.all_invitations, self.store)
        join = self.site.join(self.study.secrets.join)
        return self.pages.show(
            "desk.html",
            now=now,
            heavy=now.heavy,
            study=self.study,
            protocol=self.study.protocol,
            join=join,
            invitations=[(name, f"{join}?invite={secret}") for secret, name in invited.items()],
            csrf=self.sign_in.form_key(session),
            events=await run_in_threadpool(actions.event_log, self.store, 8),
            at=time.strftime("%H:%M:%S UTC", time.gmtime()),
            clock=clock,
            payment_lists=self._payment_lists(now),
        )

    def _payment_lists(self, now: Progress) -> list[str]:
        """All payments, and the list of each platform that raters came from."""
        sources = {rater.source for rater in now.raters}
        bonus = ["bonus"] if self.study.protocol.reward.bonus else []
        return ["all", *(kind for kind in PLATFORM_FILES if kind in sources), *bonus]

    async def rater(self, request: Request, session: str) -> Response:
        now = await run_in_threadpool(self.watch.progress)
        name = request.path_params["rater"]
        found = next((rater for rater in now.raters if rater.id == name), None)
        if found is None:
            return self.pages.tell(404, "There is no such rater.")
        with self.store.reading() as connection:
            work = actions.work_of(connection, name)
        means = [h.mean for h in now.heavy.habits.values() if h.mean is not None]
        return self.pages.show(
            "rater.html",
            r=found,
            work=work,
            severity=None
            if found.habits is None or found.habits.mean is None
            else found.habits.mean - sum(means) / len(means),
            thread=await run_in_threadpool(steps.thread, self.store, name),
            events=[e for e in await run_in_threadpool(actions.event_log, self.store, 100_000) if e.subject == name],
            csrf=self.sign_in.form_key(session),
            clock=clock,
            now=now,
        )

    async def events(self, request: Request, session: str) -> Response:
        rows = await run_in_threadpool(actions.event_log, self.store, 5000)
        return self.pages.show("events.html", events=rows, clock=clock)

    async def instructions(self, request: Request, session: str) -> Response:
        protocol = self.study.protocol
        return self.rater_pages.show(
            "instructions.html", preview=False, action=f"/admin/preview/{self.study.tasks[0].id}/1", csrf="", step="",
            rule=protocol.task, reward=protocol.reward, method="get", back="", link="",
        )  # fmt: skip

    async def preview(self, request: Request, session: str) -> Response:
        task = self.study.by_id.get(request.path_params["task"])
        place = request.path_params["place"]
        if task is None or not 1 <= place <= len(task.screens):
            return self.pages.tell(404, "There is no such item in the plan.")
        places = task.screens[place - 1]
        shown = [
            f"{i.kind} item of {i.system or 'the test'} (record {i.record})" for i in (task.items[p] for p in places)
        ]
        return self.rater_pages.show(
            "item.html",
            **screen_view(self.study, task.id, places, self.rater_pages.say),
            given=[{} for _ in places],
            seen=0,
            incomplete=False,
            notice="",
            lessons={},
            place=place,
            rated=[False] * len(task.screens),
            link="",
            csrf="",
            heading="item_of",
            preview=f"{'; '.join(shown)} in task {task.id}",
            preview_base=f"/admin/preview/{task.id}/",
        )

    # -- acting

    async def act(self, request: Request) -> Response:
        session = await run_in_threadpool(self.sign_in.session, request)
        if session is None:
            return self.sign_in.stranger()
        form = await read_form(request)
        if not same(form.get("csrf"), self.sign_in.form_key(session)):
            return self.pages.tell(403, "This form did not come from the researcher's page.")
        try:
            await run_in_threadpool(self._act, form)
        except UsageError as wrong:
            return self.pages.tell(400, str(wrong))
        back = form.get("back")
        return RedirectResponse(back if back.startswith("/admin") and "//" not in back else "/admin", 303)

    def _act(self, form: Form) -> None:
        """Every action of the desk by its name."""
        subject, reason = form.get("subject"), form.get("reason")[:500]
        known: dict[str, Callable[[], Any]] = {
            "pause": lambda: self.store.pause(True, reason=reason),
            "resume": lambda: self.store.pause(False, reason=reason),
            "exclude": lambda: actions.exclude(self.store, subject, reason),
            "readmit": lambda: actions.readmit(self.store, subject, reason),
            "return": lambda: actions.return_slot(self.store, subject, reason),
            "extend": lambda: actions.extend(self.store, _whole(form.get("more")), subject or None, reason),
            "invite": lambda: actions.invite(self.store, form.get("names").splitlines()),
            "reply": lambda: actions.reply(self.store, subject, form.get("text")),
        }
        action = form.get("action")
        if action not in known:
            raise UsageError(f"no action {action!r}")
        known[action]()

    # -- taking out

    async def export(self, request: Request, session: str) -> Response:
        kind = request.path_params["kind"]
        made: dict[str, Callable[[], str]] = {
            "jsonl": lambda: ratings_jsonl(self.store),
            "csv": lambda: ratings_csv(self.store),
            "raters.csv": lambda: raters_csv(self.store),
            "dictionary.json": lambda: json.dumps(dictionary(self.study), indent=1, ensure_ascii=False) + "\n",
        }
        if kind not in made:
            return self.pages.tell(404, "Exports are .jsonl, .csv, .raters.csv and .dictionary.json.")
        text = await run_in_threadpool(made[kind])
        await run_in_threadpool(lambda: self.store.act(lambda c: None, "researcher", "exported", f"ratings.{kind}"))
        ending = kind.rsplit(".", 1)[-1]
        media = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}.get(ending, "application/json")
        return _download(text, media, f"ratings-{self.study.id}.{kind}")

    async def payments(self, request: Request, session: str) -> Response:
        kind = request.path_params["kind"]
        if kind not in PLATFORM_FILES:
            return self.pages.tell(404, f"Payment lists are {', '.join(PLATFORM_FILES)}.")
        text = await run_in_threadpool(PLATFORM_FILES[kind], self.store)
        await run_in_threadpool(lambda: self.store.act(lambda c: None, "researcher", "exported", f"payments {kind}"))
        return _download(text, "text/csv; charset=utf-8", f"{kind}-{self.study.id}.csv")


def _download(text: str, media: str, name: str) -> Response:
    return Response(text, media_type=media, headers={"content-disposition": f'attachment; filename="{name}"'})


def _whole(text: str) -> int:
    if not re.fullmatch(r"\d{1,6}", text.strip(), re.ASCII):
        raise UsageError(f"{text[:20]!r} is not a whole number of raters")
    return int(text)


def clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
