"""The HTTP service behind `elench serve`: post records, get scores and evidence."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from html import escape
from typing import Any

from elench.connections import TooLarge, TooSlow, read_body, replay
from elench.engine.scoring import score
from elench.errors import ElenchError, MissingExtra
from elench.metrics import all_metrics
from elench.models.base import ModelSet

try:
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import HTMLResponse, JSONResponse
    from pydantic import BaseModel, ConfigDict, Field
except ImportError:
    raise MissingExtra("elench serve", "serve") from None

RECORDS = 1000
"""Most records in one request."""


class ScoreRequest(BaseModel):
    """What is posted to /score."""

    model_config = ConfigDict(extra="forbid")
    records: list[dict[str, Any]] = Field(min_length=1, max_length=RECORDS, description="Records as in a JSONL file.")
    metrics: list[str] = Field(min_length=1, max_length=50, description="Metric specs such as rouge-l or bleu[n=2].")
    explain: bool = Field(False, description="Also return the evidence of every score.")


class ScoredLine(BaseModel):
    """The scores of one record."""

    id: str
    system: str | None = None
    scores: dict[str, float | None]
    unscored: dict[str, str]
    rejected: str | None = None
    evidence: dict[str, Any] | None = None


class ScoreResponse(BaseModel):
    """What comes back."""

    results: list[ScoredLine]
    summary: dict[str, Any]
    signatures: dict[str, str]


class Problem(BaseModel):
    """What was wrong, in one line."""

    error: str


class Abandoned(Exception):
    """The client hung up or its time is over: the job stops before its next batch."""


def make_app(
    models: ModelSet | None = None, max_bytes: int = 10_000_000, max_seconds: float = 120.0, max_waiting: int = 16
) -> FastAPI:
    """The application: one job is scored at a time and `max_waiting` may wait; bodies and time are bounded."""
    models = models or ModelSet()
    about = "Scores of generated questions, answers and summaries."
    app = FastAPI(title="elench", description=about, docs_url=None, redoc_url=None)
    app.add_middleware(BodyLimit, max_bytes=max_bytes)
    line = WaitingLine(max_waiting)

    @app.exception_handler(ElenchError)
    async def usage_error(request: Request, error: ElenchError) -> JSONResponse:
        return _problem(400, str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:5]]
        return _problem(422, "; ".join(faults).encode("utf-8", "replace").decode())

    _add_pages(app)
    refusals: dict[int | str, dict[str, object]] = {code: {"model": Problem} for code in (400, 408, 413, 422, 503)}

    @app.post("/score", responses=refusals)
    async def score_records(job: ScoreRequest, request: Request) -> object:
        """Score records with one or more metrics."""
        if line.full:
            return _problem(503, f"{max_waiting} jobs are waiting already: try again later", retry=10)
        over, begun = threading.Event(), threading.Event()

        def check() -> None:
            begun.set()
            if over.is_set():
                raise Abandoned

        running = asyncio.ensure_future(line.run(lambda: _score(job, models, check)))
        gone = asyncio.ensure_future(_hung_up(request))
        try:
            await asyncio.wait({running, gone}, timeout=max_seconds, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            over.set()  # a running job stops before its next batch
            if not begun.is_set():
                running.cancel()  # a waiting one leaves the line at once
            if gone.done():
                return _problem(499, "the client hung up")
            return _problem(503, f"not done within {max_seconds:g} seconds: send fewer records, or lighter metrics")
        finally:
            gone.cancel()
            running.add_done_callback(_forget)

    return app


def _add_pages(app: FastAPI) -> None:
    """What the service tells about itself."""

    @app.get("/docs", include_in_schema=False)
    async def documentation() -> HTMLResponse:
        """What can be asked, as a page that loads nothing from elsewhere."""
        return HTMLResponse(_page(app.openapi()))

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Is the service there?"""
        return {"status": "ok"}

    @app.get("/metrics")
    async def metrics() -> dict[str, str]:
        """Every metric with one sentence."""
        return {name: cls.description() for name, cls in all_metrics().items()}


def _score(job: ScoreRequest, models: ModelSet, check: Callable[[], None]) -> ScoreResponse:
    check()
    result = score(job.records, job.metrics, models=models, on_step=check)
    lines = [
        ScoredLine(**o.to_object(result.specs, job.explain), rejected=o.reject.reason if o.reject else None)
        for o in result.outcomes
    ]
    return ScoreResponse(results=lines, summary=result.summary(), signatures=dict(result.signatures))


class WaitingLine:
    """Jobs run one at a time, in order of arrival; those given up while waiting are skipped."""

    def __init__(self, most: int) -> None:
        self._most, self._waiting = most, 0
        self._turn = asyncio.Semaphore(1)

    @property
    def full(self) -> bool:
        return self._waiting > self._most  # one of them is running

    async def run(self, work: Callable[[], ScoreResponse]) -> ScoreResponse:
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(work)
        finally:
            self._waiting -= 1


def _forget(task: asyncio.Future[ScoreResponse]) -> None:
    """Nobody waits for an abandoned job: its error is not reported as unhandled."""
    if not task.cancelled():
        task.exception()


async def _hung_up(request: Request) -> None:
    """Returns when the client closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class BodyLimit:
    """Reads the body before the application sees it, counting bytes as they arrive."""

    def __init__(self, app: Any, max_bytes: int) -> None:
        self.app, self.max_bytes = app, max_bytes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
            if not announced.isdigit() or int(announced) > self.max_bytes:
                raise TooLarge
            body = await read_body(receive, self.max_bytes)
        except TooLarge:
            answer = _problem(413, f"the body is larger than {self.max_bytes} bytes: send fewer records at a time")
        except TooSlow:
            answer = _problem(408, "the body did not arrive in time")
        else:
            await self.app(scope, replay(body, receive), send)
            return
        answer.headers["connection"] = "close"
        await answer(scope, receive, send)


def _page(document: dict[str, Any]) -> str:
    """The OpenAPI document for people: each path with its summary, then the shapes of bodies."""
    parts = [f"<h1>{document['info']['title']}</h1><p>{document['info']['description']}</p>"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts.append(
                f"<h2><code>{method.upper()} {path}</code></h2><p>{escape(operation.get('description', ''))}</p>"
            )
    body = {"records": [{"id": "1", "answer": "a red fox", "references": ["the red fox"]}], "metrics": ["rouge-l"]}
    call = f"curl -H 'Content-Type: application/json' -d '{json.dumps(body)}' http://HOST:PORT/score"
    parts.append(f"<h2>An example</h2><pre>{escape(call)}</pre>")
    for name, shape in document["components"]["schemas"].items():
        parts.append(f"<details><summary>{name}</summary><pre>{escape(json.dumps(shape, indent=1))}</pre></details>")
    parts.append('<p>The whole document: <a href="openapi.json">openapi.json</a></p>')
    style = "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}pre{overflow:auto}"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{style}</style>'
    return (
        f'<!doctype html><html lang="en"><head><title>elench</title>{head}</head><body>{"".join(parts)}</body></html>'
    )


def _problem(code: int, words: str, retry: int = 0) -> JSONResponse:
    return JSONResponse({"error": words}, code, {"retry-after": str(retry)} if retry else None)
