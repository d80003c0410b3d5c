"""From the link to the first item: consent, instructions, comprehension check, questions about the rater."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from elench.study.collect import steps
from elench.study.collect.actions import all_invitations
from elench.study.collect.arrivals import COOKIE, BadLink, Visitor, recognise
from elench.study.collect.forms import Form, read_form
from elench.study.collect.handout import NoTask
from elench.study.collect.pages import Pages
from elench.study.collect.prolific import FILE, ProlificKeys
from elench.study.collect.security import Signer, same
from elench.study.collect.site import Site
from elench.study.collect.store import Arrival, Store
from elench.study.folder import Study

YEAR = 365 * 24 * 3600
STEP = "step"


class ArrivalPages:
    """Leads an arriving visitor through the steps that the protocol asks for, then hands out a task."""

    def __init__(self, study: Study, store: Store, signer: Signer, pages: Pages, site: Site) -> None:
        self.study, self.store, self.signer, self.pages, self.site = study, store, signer, pages, site
        keys = study.folder / FILE
        self._keys = ProlificKeys(keys, site.host) if keys.is_file() else None

    def routes(self) -> list[Route]:
        return [Route("/join/{join}", self.join, methods=["GET", "POST"])]

    async def join(self, request: Request) -> Response:
        if not same(request.path_params["join"], self.study.secrets.join):
            return self.pages.notice(404, "no_study")
        invited = await run_in_threadpool(all_invitations, self.store)
        try:
            visitor = recognise(request.query_params, request.cookies, invited, self._keys)
        except BadLink as wrong:
            return self.pages.notice(400, str(wrong))
        if visitor.source == "mturk":
            request.scope.setdefault("state", {})["framed"] = True
        response = await (self._posted(request, visitor) if request.method == "POST" else self._shown(request, visitor))
        if visitor.cookie and not visitor.preview:
            framed = visitor.source == "mturk" and self.site.secure
            response.set_cookie(
                COOKIE, visitor.cookie, max_age=YEAR, httponly=True, secure=self.site.secure,
                samesite="none" if framed else "lax",
            )  # fmt: skip
        return response

    def _csrf(self, visitor: Visitor) -> str:
        return self.signer.mac("join", visitor.source, visitor.worker, visitor.session)

    def _address(self, request: Request, step: str = "") -> str:
        query = [(name, value) for name, value in request.query_params.multi_items() if name != STEP]
        query += [(STEP, step)] if step else []
        return f"{request.url.path}?{urlencode(query)}" if query else request.url.path

    # -- showing a step

    async def _shown(self, request: Request, visitor: Visitor) -> Response:
        if visitor.preview:
            return self._instructions(request, visitor)
        rater = self.signer.pseudonym(visitor.source, visitor.worker)
        done = await run_in_threadpool(steps.taken, self.store, rater)
        if self.study.protocol.consent is not None and "consent" not in done:
            return self._show_step(request, visitor, "consent.html", "consent", consent=self.study.protocol.consent)
        step = request.query_params.get(STEP, "")
        show = {"check": self._show_check, "before": self._show_before}.get(step)
        if show is None or step in done:
            return self._instructions(request, visitor)
        return await show(request, visitor, rater)

    def _show_step(self, request: Request, visitor: Visitor, template: str, step: str, **values: Any) -> Response:
        action = self._address(request)
        return self.pages.show(template, action=action, csrf=self._csrf(visitor), step=step, **values)

    def _instructions(self, request: Request, visitor: Visitor) -> Response:
        reward = self.study.protocol.reward
        return self._show_step(
            request, visitor, "instructions.html", "instructions", preview=visitor.preview, reward=reward,
            rule=self.study.protocol.task, back="", link="",
        )  # fmt: skip

    async def _show_check(self, request: Request, visitor: Visitor, rater: str) -> Response:
        def attempts() -> int:
            with self.store.reading() as connection:
                return steps.wrong_attempts(connection, rater)

        wrong = await run_in_threadpool(attempts)
        questions = self.study.protocol.check
        left = self.study.protocol.attempts - wrong
        return self._show_step(
            request, visitor, "questions.html", "check", questions=questions, kind="check", left=left, wrong=wrong
        )

    async def _show_before(self, request: Request, visitor: Visitor, rater: str) -> Response:
        questions = self.study.protocol.before
        return self._show_step(
            request, visitor, "questions.html", "before", questions=questions, kind="before", left=0, wrong=0
        )

    # -- a step was finished

    async def _posted(self, request: Request, visitor: Visitor) -> Response:
        form = await read_form(request)
        nameless = visitor.source == "link" and visitor.cookie
        if nameless or visitor.preview or not same(form.get("csrf"), self._csrf(visitor)):
            return self.pages.notice(403, "out_of_date")
        if form.get(STEP) == "consent" and form.get("agree") == "no":
            return self.pages.notice(200, "declined", title="declined_title")
        arrival = visitor.arrival(self.signer)
        refused = await run_in_threadpool(self.store.welcome, arrival)
        if refused:
            return self._refused(refused, visitor)
        handlers: dict[str, Callable[[Request, Form, Arrival], Awaitable[None]]] = {
            "consent": self._consented,
            "check": self._checked,
            "before": self._answered,
        }
        if handle := handlers.get(form.get(STEP)):
            await handle(request, form, arrival)
            if form.get(STEP) == "consent":
                return RedirectResponse(self._address(request), 303)
        return await self._go_on(request, visitor, arrival)

    async def _consented(self, request: Request, form: Form, arrival: Arrival) -> None:
        await run_in_threadpool(steps.record, self.store, arrival.rater, "consent", {})

    async def _checked(self, request: Request, form: Form, arrival: Arrival) -> None:
        given = {question.name: form.get(f"q-{question.name}") for question in self.study.protocol.check}
        await run_in_threadpool(steps.check, self.store, arrival.rater, given, form.get("attempt"))

    async def _answered(self, request: Request, form: Form, arrival: Arrival) -> None:
        questions = self.study.protocol.before
        given = steps.valid_answers(questions, {q.name: form.get(f"q-{q.name}") for q in questions})
        await run_in_threadpool(steps.record, self.store, arrival.rater, "before", given)

    async def _go_on(self, request: Request, visitor: Visitor, arrival: Arrival) -> Response:
        """The next step that is not done yet, or a task."""
        protocol = self.study.protocol
        done = await run_in_threadpool(steps.taken, self.store, arrival.rater)
        wanted = {"consent": protocol.consent, "check": protocol.check, "before": protocol.before}
        for step, asked in wanted.items():
            if asked and step not in done:
                refused = await run_in_threadpool(self.store.welcome, arrival)
                if refused:
                    return self._refused(refused, visitor)
                return RedirectResponse(self._address(request, step), 303)
        try:
            held = await run_in_threadpool(self.store.assign, arrival)
        except NoTask as reason:
            return self._refused(str(reason), visitor)
        return RedirectResponse(f"/t/{self.signer.link(held.id)}", 303)

    def _refused(self, reason: str, visitor: Visitor) -> Response:
        codes = self.study.protocol.prolific
        code = codes.screened_out if reason in ("screened_out", "test_failed", "took_part_earlier") else ""
        prolific = code if visitor.source == "prolific" else ""
        title = self.pages.say["no_task_title"]
        return self.pages.show("notice.html", 200, text=self.pages.say[reason], title=title, prolific=prolific)
