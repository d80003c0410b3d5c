"""The rater's pages: instructions, one item at a time, review, completion code."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from quaestor.study.arrivals import COOKIE, BadLink, Visitor, recognise
from quaestor.study.database import Closed
from quaestor.study.folder import QUALIFICATION, Study
from quaestor.study.pages import Pages
from quaestor.study.security import Signer, same
from quaestor.study.store import Assignment, NoTask, Store

NAMES = {
    "context": "Passage",
    "question": "Question",
    "summary": "Summary",
    "answer": "Answer",
    "reference": "Reference",
}
FEEDBACK_LIMIT = 4000
REMEMBERED = 5000


def highlighted(context: str, answer: str) -> tuple[str, str, str]:
    """The passage before, in and after the answer: its first occurrence as whole words; none when it is not there."""
    if answer.strip():
        pattern = rf"(?<!\w){re.escape(answer.strip())}(?!\w)"
        for flags in (0, re.IGNORECASE):
            if found := re.search(pattern, context, flags):
                return context[: found.start()], found.group(), context[found.end() :]
    return context, "", ""


def item_view(study: Study, task: str, place: int) -> dict[str, Any]:
    """What the item template needs; neither the kind of the item, nor its system, nor its record leaves the server."""
    shown = study.shown(study.by_id[task], place)
    texts = dict(shown["texts"])
    context = texts.pop("context", "")
    passage = highlighted(context, shown["answer"]) if context.strip() else None
    names = dict(NAMES)
    if study.protocol.judge == "answer":
        names |= {"answer": "Predicted answer", "reference": "Correct answer"}
    elif "reference" in texts:
        names["reference"] = f"Reference {study.protocol.judge}"
    parts = [(names[name], text, name == study.protocol.judge) for name, text in texts.items() if text.strip()]
    return {"passage": passage, "parts": parts, "criteria": study.protocol.criteria}


class RaterPages:
    """Answers what raters ask. Every address carries the signed link of one task and opens only that."""

    def __init__(self, study: Study, store: Store, signer: Signer, pages: Pages) -> None:
        self.study, self.store, self.signer, self.pages = study, store, signer, pages
        self._seen: dict[str, Assignment] = {}

    def routes(self) -> list[Route]:
        return [
            Route("/join/{join}", self.join, methods=["GET", "POST"]),
            Route("/t/{link}", self.task),
            Route("/t/{link}/review", self.review),
            Route("/t/{link}/submit", self.submit, methods=["POST"]),
            Route("/t/{link}/done", self.done),
            Route("/t/{link}/another", self.another, methods=["POST"]),
            Route("/t/{link}/{place:int}", self.item, methods=["GET", "POST"]),
        ]

    # -- arriving

    async def join(self, request: Request) -> Response:
        if not same(request.path_params["join"], self.study.secrets.join):
            return self.pages.notice(404, "This link does not lead to a study.")
        try:
            visitor = recognise(request.query_params, request.cookies, self.study.invitations)
        except BadLink as wrong:
            return self.pages.notice(400, str(wrong))
        if visitor.source == "mturk":
            request.scope.setdefault("state", {})["framed"] = True
        if request.method == "POST":
            return await self._begin(request, visitor)
        response = self.pages.show(
            "instructions.html",
            preview=visitor.preview,
            action=f"{request.url.path}?{urlencode(list(request.query_params.multi_items()))}",
            csrf=self._join_mac(visitor),
            rule=self.study.protocol.task,
        )
        if visitor.cookie:
            secure = request.url.scheme == "https"
            year = 365 * 24 * 3600
            response.set_cookie(COOKIE, visitor.cookie, max_age=year, httponly=True, samesite="lax", secure=secure)
        return response

    def _join_mac(self, visitor: Visitor) -> str:
        return self.signer.mac("join", visitor.source, visitor.worker, visitor.session)

    async def _begin(self, request: Request, visitor: Visitor) -> Response:
        form = await fields(request)
        if visitor.cookie or visitor.preview or not same(form.get("csrf", ""), self._join_mac(visitor)):
            text = "This page is out of date, or your browser refuses cookies. Please open the link again."
            return self.pages.notice(403, text)
        try:
            held = await run_in_threadpool(self.store.assign, visitor.arrival(self.signer))
        except NoTask as reason:
            return self.pages.notice(200, str(reason), title="No task at the moment")
        return RedirectResponse(f"/t/{self.signer.link(held.id)}", 303)

    # -- rating

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
            return self._nowhere()
        if held.state == "submitted":
            return RedirectResponse(f"/t/{request.path_params['link']}/done", 303)
        if held.state == "expired":
            return self._over()
        return None

    def _nowhere(self) -> Response:
        return self.pages.notice(404, "This link does not lead to a task.")

    def _over(self) -> Response:
        text = "The time for this task is over and it was given to somebody else. Your ratings were kept. Thank you!"
        return self.pages.notice(410, text, title="Time is over")

    async def task(self, request: Request) -> Response:
        held = await self._held(request)
        closed = self._closed(request, held)
        if held is None or closed is not None:
            return closed or self._nowhere()
        missing = await run_in_threadpool(self.store.missing, held.id)
        where = missing[0] + 1 if missing else "review"
        return RedirectResponse(f"/t/{request.path_params['link']}/{where}", 303)

    async def item(self, request: Request) -> Response:
        posted = request.method == "POST"
        # Saving looks at the state of the task itself; what else is needed of it never changes.
        known = self._seen.get(request.path_params["link"]) if posted else None
        held = known or await self._held(request)
        place = request.path_params["place"]
        if held is None or not 1 <= place <= len(held.order):
            return self._nowhere()
        if len(self._seen) > REMEMBERED:
            self._seen.clear()
        self._seen[request.path_params["link"]] = held
        request.scope.setdefault("state", {})["framed"] = held.platform["source"] == "mturk"
        if posted:
            return await self._save(request, held, place)
        return self._closed(request, held) or await self._item_page(request, held, place)

    async def _item_page(self, request: Request, held: Assignment, place: int, status: int = 200) -> Response:
        given = await run_in_threadpool(self.store.current, held.id)
        wanted = {criterion.name for criterion in self.study.protocol.criteria}
        rated = [not wanted - set(given.get(item, {})) for item in held.order]
        item = held.order[place - 1]
        return self.pages.show(
            "item.html",
            status,
            **item_view(self.study, held.task, item),
            given=given.get(item, {}),
            incomplete=status == 422,
            place=place,
            rated=rated,
            link=request.path_params["link"],
            csrf=self.signer.mac("form", held.id),
            test=held.task == QUALIFICATION,
            preview="",
        )

    async def _save(self, request: Request, held: Assignment, place: int) -> Response:
        form = await fields(request)
        quiet = request.headers.get("accept", "") == "application/json"
        if not self.signer.matches(form.get("csrf", ""), "form", held.id):
            return self._refused(quiet, 403, "This form did not come from your task page.")
        answers: dict[str, int] = {}
        try:
            for criterion in self.study.protocol.criteria:
                if form.get(criterion.name, "").strip():
                    answers[criterion.name] = criterion.parse(form[criterion.name])
        except ValueError as wrong:
            return self._refused(quiet, 422, str(wrong))
        item = held.order[place - 1]
        try:
            await run_in_threadpool(self.store.rate, held.id, item, answers)
        except Closed:
            now = await self._held(request)  # takes an expired task up again when its place is still free
            if now is None or now.state != "open":
                if quiet:
                    return JSONResponse({"saved": False, "closed": True}, 409)
                return self._closed(request, now) or self._over()
            await run_in_threadpool(self.store.rate, held.id, item, answers)
        back = form.get("go") == "back"
        if quiet and "go" not in form:
            return JSONResponse({"saved": True})
        partly = not back and len(answers) < len(self.study.protocol.criteria)
        if partly and place - 1 in await run_in_threadpool(self.store.missing, held.id):
            if quiet:
                return JSONResponse({"saved": True, "incomplete": True})
            return await self._item_page(request, held, place, 422)
        step = max(1, place - 1) if back else place + 1
        where = f"/t/{request.path_params['link']}/{step if step <= len(held.order) else 'review'}"
        return JSONResponse({"saved": True, "next": where}) if quiet else RedirectResponse(where, 303)

    def _refused(self, quiet: bool, status: int, text: str) -> Response:
        if quiet:
            return JSONResponse({"saved": False, "reason": text}, status)
        return self.pages.notice(status, text)

    # -- finishing

    async def review(self, request: Request) -> Response:
        held = await self._held(request)
        closed = self._closed(request, held)
        if held is None or closed is not None:
            return closed or self._nowhere()
        missing = await run_in_threadpool(self.store.missing, held.id)
        return self.pages.show(
            "review.html",
            missing=[place + 1 for place in missing],
            count=len(held.order),
            link=request.path_params["link"],
            csrf=self.signer.mac("form", held.id),
        )

    async def submit(self, request: Request) -> Response:
        held = await self._held(request)
        if held is None:
            return self._nowhere()
        form = await fields(request)
        if not self.signer.matches(form.get("csrf", ""), "form", held.id):
            return self.pages.notice(403, "This form did not come from your task page.")
        link = request.path_params["link"]
        try:
            missing = await run_in_threadpool(self.store.submit, held.id, form.get("feedback", "")[:FEEDBACK_LIMIT])
        except Closed:
            return self._over()
        return RedirectResponse(f"/t/{link}/review" if missing else f"/t/{link}/done", 303)

    async def done(self, request: Request) -> Response:
        held = await self._held(request)
        if held is None or held.state != "submitted":
            return RedirectResponse(f"/t/{request.path_params['link']}", 303)
        test = held.task == QUALIFICATION
        return self.pages.show(
            "done.html",
            held=held,
            source=held.platform["source"],
            prolific=self.study.protocol.prolific_code,
            link=request.path_params["link"],
            csrf=self.signer.mac("form", held.id),
            test=test,
            passed=await run_in_threadpool(self.store.qualified, held.rater) if test else None,
        )

    async def another(self, request: Request) -> Response:
        held = await self._held(request)
        if held is None or held.state != "submitted":
            return self.pages.notice(404, "This link does not lead to a finished task.")
        form = await fields(request)
        if not self.signer.matches(form.get("csrf", ""), "form", held.id):
            return self.pages.notice(403, "This form did not come from your task page.")
        try:
            following = await run_in_threadpool(self.store.another, held)
        except NoTask as reason:
            return self.pages.notice(200, str(reason), title="No task at the moment")
        return RedirectResponse(f"/t/{self.signer.link(following.id)}", 303)


async def fields(request: Request) -> dict[str, str]:
    """The text fields of a form; files are refused by leaving them out."""
    form = await request.form(max_files=0, max_fields=60)
    return {name: value for name, value in form.items() if isinstance(value, str)}
