"""The rater's pages: one screen at a time, review, exit questions, completion code."""

from __future__ import annotations

import re
from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from elench.study.collect import steps
from elench.study.collect.database import Closed, Stale
from elench.study.collect.forms import Form, read_form
from elench.study.collect.handout import NoTask
from elench.study.collect.pages import Pages
from elench.study.collect.screens import lessons, screen_view
from elench.study.collect.security import Signer
from elench.study.collect.store import Assignment, Store
from elench.study.design.criterion import Misranked
from elench.study.folder import QUALIFICATION, TRAINING, Study

FEEDBACK_LIMIT = 4000
REMEMBERED = 5000
LONGEST_VIEW = 24 * 3600.0


class RaterPages:
    """Answers what raters ask. Every address carries the signed link of one task and opens only that."""

    def __init__(self, study: Study, store: Store, signer: Signer, pages: Pages) -> None:
        self.study, self.store, self.signer, self.pages = study, store, signer, pages
        self._seen: dict[str, Assignment] = {}

    def routes(self) -> list[Route]:
        return [
            Route("/t/{link}", self.task),
            Route("/t/{link}/instructions", self.instructions),
            Route("/t/{link}/withdraw", self.withdraw, methods=["POST"]),
            Route("/t/{link}/review", self.review),
            Route("/t/{link}/submit", self.submit, methods=["POST"]),
            Route("/t/{link}/after", self.after, methods=["GET", "POST"]),
            Route("/t/{link}/done", self.done),
            Route("/t/{link}/message", self.message, methods=["POST"]),
            Route("/t/{link}/another", self.another, methods=["POST"]),
            Route("/t/{link}/{place:int}", self.item, methods=["GET", "POST"]),
        ]

    # -- which task, and is it open?

    async def _held(self, request: Request) -> Assignment | None:
        """The assignment that the link opens. An expired one is taken up again when its place is still free."""
        name = self.signer.assignment(request.path_params["link"])
        held = await run_in_threadpool(self.store.assignment, name) if name else None
        if held is not None:
            request.scope.setdefault("state", {})["framed"] = held.platform["source"] == "mturk"
            if held.state == "expired" and await run_in_threadpool(self.store.resume, held.id):
                held = await run_in_threadpool(self.store.assignment, held.id)
        return held

    def _closed(self, request: Request, held: Assignment | None) -> Response | None:
        if held is None:
            return self.pages.notice(404, "no_task_here")
        if held.state == "submitted":
            return RedirectResponse(f"/t/{request.path_params['link']}/done", 303)
        if held.state == "returned":
            return self.pages.notice(410, "returned", title="over_title")
        return self._over() if held.state == "expired" else None

    def _over(self) -> Response:
        return self.pages.notice(410, "over", title="over_title")

    def _csrf(self, held: Assignment) -> str:
        return self.signer.mac("form", held.id)

    async def _form(self, request: Request, held: Assignment) -> Form | None:
        """The posted form, when it came from this task's pages."""
        form = await read_form(request)
        return form if self.signer.matches(form.get("csrf"), "form", held.id) else None

    async def task(self, request: Request) -> Response:
        held = await self._held(request)
        if held is None or (closed := self._closed(request, held)) is not None:
            return (closed if held else None) or self.pages.notice(404, "no_task_here")
        missing = await run_in_threadpool(self.store.missing, held.id)
        where = missing[0] + 1 if missing else "review"
        return RedirectResponse(f"/t/{request.path_params['link']}/{where}", 303)

    async def instructions(self, request: Request) -> Response:
        """The instructions again, while rating, with the way out of the study."""
        held = await self._held(request)
        if held is None:
            return self.pages.notice(404, "no_task_here")
        link = request.path_params["link"]
        protocol = self.study.protocol
        return self.pages.show(
            "instructions.html", preview=False, back=f"/t/{link}", link=link, csrf=self._csrf(held), action="",
            rule=protocol.task, reward=protocol.reward, step="",
        )  # fmt: skip

    async def withdraw(self, request: Request) -> Response:
        held = await self._held(request)
        if held is None or await self._form(request, held) is None:
            return self.pages.notice(403, "foreign_form")
        await run_in_threadpool(steps.withdraw, self.store, held.rater)
        return self.pages.notice(200, "withdrawn", title="withdrawn_title")

    # -- rating

    async def item(self, request: Request) -> Response:
        posted = request.method == "POST"
        # Saving looks at the state of the task itself; what else is needed of it never changes.
        known = self._seen.get(request.path_params["link"]) if posted else None
        held = known or await self._held(request)
        place = request.path_params["place"]
        if held is None or not 1 <= place <= len(held.order):
            return self.pages.notice(404, "no_task_here")
        if len(self._seen) > REMEMBERED:
            self._seen.clear()
        self._seen[request.path_params["link"]] = held
        request.scope.setdefault("state", {})["framed"] = held.platform["source"] == "mturk"
        if posted:
            return await self._save(request, held, place)
        return self._closed(request, held) or await self._item_page(request, held, place)

    async def _item_page(
        self, request: Request, held: Assignment, place: int, status: int = 200, notice: str = ""
    ) -> Response:
        now = await run_in_threadpool(self.store.now, held.id)
        wanted = {criterion.name for criterion in self.study.protocol.asked if criterion.required}
        rated = [all(not wanted - set(now.answers.get(p, {})) for p in screen) for screen in held.order]
        places = held.order[place - 1]
        taught = held.task == TRAINING and "feedback" in request.query_params and rated[place - 1]
        return self.pages.show(
            "item.html",
            status,
            **screen_view(self.study, held.task, places, self.pages.say),
            given=[now.answers.get(p, {}) for p in places],
            seen=max((now.versions.get(p, 0) for p in places), default=0),
            incomplete=status == 422,
            notice=notice,
            lessons=lessons(self.study, held.task, places[0], now.answers[places[0]], self.pages.say) if taught else {},
            place=place,
            rated=rated,
            link=request.path_params["link"],
            csrf=self._csrf(held),
            heading={QUALIFICATION: "test_item_of", TRAINING: "training_item_of"}.get(held.task, "item_of"),
            preview="",
            preview_base="",
        )

    def _answers(self, form: Form, held: Assignment, place: int) -> dict[int, dict[str, str]]:
        """What a form says about the items of a screen; ValueError for what is not on the scale."""
        places = held.order[place - 1]
        answers: dict[int, dict[str, str]] = {p: {} for p in places}
        words = 0
        if any(c.scale == "spans" for c in self.study.protocol.asked):
            view = screen_view(self.study, held.task, places[:1], self.pages.say)
            words = len(view["outputs"][0]["words"])
        for criterion in self.study.protocol.asked:
            given = criterion.read(form.all, len(places), words)
            if given is not None:  # free text about a comparison is kept with its first output
                for p, answer in zip(places, given, strict=False):
                    answers[p][criterion.name] = answer
        return answers

    async def _save(self, request: Request, held: Assignment, place: int) -> Response:
        form = await read_form(request)
        quiet = request.headers.get("accept", "") == "application/json"
        if not self.signer.matches(form.get("csrf"), "form", held.id):
            return self._refused(quiet, 403, self.pages.say["foreign_form"])
        try:
            answers = self._answers(form, held, place)
            version = await self._keep(request, held, answers, form)
        except Misranked as wrong:
            count = len(held.order[place - 1])
            return self._refused(quiet, 422, self.pages.say[wrong.key].format(count=count))
        except ValueError as wrong:
            return self._refused(quiet, 422, str(wrong))
        except Stale:
            if quiet:
                return JSONResponse({"saved": False, "stale": True}, 409)
            return await self._item_page(request, held, place, 409, self.pages.say["stale"])
        except Closed:
            if quiet:
                return JSONResponse({"saved": False, "closed": True}, 409)
            return self._closed(request, await self._held(request)) or self._over()
        if quiet and "go" not in form:
            return JSONResponse({"saved": True, "seen": version})
        return await self._go(request, held, place, form, quiet)

    async def _keep(self, request: Request, held: Assignment, answers: Mapping[int, object], form: Form) -> int:
        """Save; an expired task is taken up again when its place is still free."""
        seen = int(form.get("seen")) if re.fullmatch(r"\d{1,18}", form.get("seen"), re.ASCII) else None
        more = {"seen": seen, "tab": form.get("tab")[:40], "seconds": _seconds(form.get("seconds"))}

        def keep() -> int:
            return self.store.rate_screen(held.id, answers, **more)  # type: ignore[arg-type]

        try:
            return await run_in_threadpool(keep)
        except Closed:
            now = await self._held(request)
            if now is None or now.state != "open":
                raise
            return await run_in_threadpool(keep)

    async def _go(self, request: Request, held: Assignment, place: int, form: Form, quiet: bool) -> Response:
        """Where "next" and "back" lead."""
        back = form.get("go") == "back"
        if not back and place - 1 in await run_in_threadpool(self.store.missing, held.id):
            if quiet:
                return JSONResponse({"saved": True, "incomplete": True})
            return await self._item_page(request, held, place, 422)
        link = request.path_params["link"]
        step = max(1, place - 1) if back else place + 1
        where = f"/t/{link}/{step if step <= len(held.order) else 'review'}"
        if held.task == TRAINING and not back:
            where = f"/t/{link}/{place}?feedback=1"
        return JSONResponse({"saved": True, "next": where}) if quiet else RedirectResponse(where, 303)

    def _refused(self, quiet: bool, status: int, text: str) -> Response:
        if quiet:
            return JSONResponse({"saved": False, "reason": text}, status)
        return self.pages.tell(status, text, self.pages.say["sorry"])

    # -- finishing

    async def review(self, request: Request) -> Response:
        held = await self._held(request)
        closed = self._closed(request, held)
        if held is None or closed is not None:
            return closed or self.pages.notice(404, "no_task_here")
        missing = await run_in_threadpool(self.store.missing, held.id)
        return self.pages.show(
            "review.html",
            missing=[place + 1 for place in missing],
            count=len(held.order),
            link=request.path_params["link"],
            csrf=self._csrf(held),
            training=held.task == TRAINING,
        )

    async def submit(self, request: Request) -> Response:
        held = await self._held(request)
        if held is None:
            return self.pages.notice(404, "no_task_here")
        form = await self._form(request, held)
        if form is None:
            return self.pages.notice(403, "foreign_form")
        link = request.path_params["link"]
        try:
            missing = await run_in_threadpool(self.store.submit, held.id, form.get("feedback")[:FEEDBACK_LIMIT])
        except Closed:
            return self._closed(request, await self._held(request)) or self._over()
        if missing:
            return RedirectResponse(f"/t/{link}/review", 303)
        if held.task == TRAINING:
            return await self._following(held)
        asked = held.task != QUALIFICATION and bool(self.study.protocol.after)
        if asked and "after" not in await run_in_threadpool(steps.taken, self.store, held.rater):
            return RedirectResponse(f"/t/{link}/after", 303)
        return RedirectResponse(f"/t/{link}/done", 303)

    async def after(self, request: Request) -> Response:
        """The exit survey, once per rater."""
        held = await self._held(request)
        if held is None or held.state != "submitted":
            return RedirectResponse(f"/t/{request.path_params['link']}", 303)
        questions = self.study.protocol.after
        if request.method == "GET":
            return self.pages.show(
                "questions.html", action=request.url.path, csrf=self._csrf(held), step="after", kind="after",
                questions=questions, left=0, wrong=0,
            )  # fmt: skip
        form = await self._form(request, held)
        if form is None:
            return self.pages.notice(403, "foreign_form")
        given = steps.valid_answers(questions, {q.name: form.get(f"q-{q.name}") for q in questions})
        await run_in_threadpool(steps.record, self.store, held.rater, "after", given)
        return RedirectResponse(f"/t/{request.path_params['link']}/done", 303)

    async def done(self, request: Request) -> Response:
        held = await self._held(request)
        if held is None or held.state != "submitted":
            return RedirectResponse(f"/t/{request.path_params['link']}", 303)
        rater = await run_in_threadpool(self.store.rater, held.rater)
        protocol = self.study.protocol
        failed = rater is not None and rater.standing == "stopped"
        codes = protocol.prolific
        return self.pages.show(
            "done.html",
            held=held,
            source=held.platform["source"],
            prolific=(codes.failed_check or codes.completed) if failed else codes.completed,
            screened_out=codes.screened_out,
            link=request.path_params["link"],
            csrf=self._csrf(held),
            test=held.task == QUALIFICATION,
            passed=None if rater is None else rater.qualified,
            stopped=failed,
            paid=not failed or protocol.reward.failed,
            thread=await run_in_threadpool(steps.thread, self.store, held.rater),
        )

    async def message(self, request: Request) -> Response:
        """A rater's answer in the thread with the researcher."""
        held = await self._held(request)
        form = None if held is None else await self._form(request, held)
        if held is None or form is None:
            return self.pages.notice(403, "foreign_form")
        await run_in_threadpool(steps.write_message, self.store, held.rater, "rater", form.get("text"))
        return RedirectResponse(f"/t/{request.path_params['link']}/done", 303)

    async def another(self, request: Request) -> Response:
        held = await self._held(request)
        if held is None or held.state != "submitted":
            return self.pages.notice(404, "no_finished_task")
        if await self._form(request, held) is None:
            return self.pages.notice(403, "foreign_form")
        return await self._following(held)

    async def _following(self, held: Assignment) -> Response:
        try:
            following = await run_in_threadpool(self.store.another, held)
        except NoTask as reason:
            return self.pages.notice(200, str(reason), title="no_task_title")
        return RedirectResponse(f"/t/{self.signer.link(following.id)}", 303)


def _seconds(text: str) -> float | None:
    """The time an item was in view, as the browser tells; nonsense is left out."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= LONGEST_VIEW else None
