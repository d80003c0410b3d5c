"""The HTTP service behind `quaestor serve`: post records, get scores and evidence."""

from __future__ import annotations

import asyncio
import json
from html import escape
from typing import Any

from quaestor.errors import MissingExtra, QuaestorError
from quaestor.metrics import all_metrics
from quaestor.models.base import ModelSet
from quaestor.scoring import score

try:
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import HTMLResponse, JSONResponse
    from pydantic import BaseModel, ConfigDict, Field
except ImportError:
    raise MissingExtra("quaestor serve", "serve") from None

RECORDS = 1000
"""Most records in one request."""


class Job(BaseModel):
    """What is posted to /score."""

    model_config = ConfigDict(extra="forbid")
    records: list[dict[str, Any]] = Field(min_length=1, max_length=RECORDS, description="Records as in a JSONL file.")
    metrics: list[str] = Field(min_length=1, max_length=50, description="Metric specs such as rouge-l or bleu[n=2].")
    explain: bool = Field(False, description="Also return the evidence of every score.")


class Line(BaseModel):
    """The scores of one record."""

    id: str
    system: str | None = None
    scores: dict[str, float | None]
    unscored: dict[str, str]
    evidence: dict[str, Any] | None = None


class Answer(BaseModel):
    """What comes back."""

    results: list[Line]
    summary: dict[str, Any]
    signatures: dict[str, str]


class Problem(BaseModel):
    """What was wrong, in one line."""

    error: str


def make_app(models: ModelSet | None = None, max_bytes: int = 10_000_000, max_seconds: float = 120.0) -> FastAPI:
    """The application: one job is scored at a time, others wait; bodies and time are bounded."""
    models = models or ModelSet()
    about = "Scores of generated questions, answers and summaries."
    app = FastAPI(title="quaestor", description=about, docs_url=None, redoc_url=None)
    turn = asyncio.Semaphore(1)

    @app.middleware("http")
    async def bounded(request: Request, call_next: Any) -> Any:
        declared = request.headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > max_bytes:
            return _problem(413, f"the body is larger than {max_bytes} bytes: send fewer records at a time")
        if request.method == "POST" and "content-length" not in request.headers:
            return _problem(411, "say how long the body is: Content-Length")
        return await call_next(request)

    @app.exception_handler(QuaestorError)
    async def told(request: Request, error: QuaestorError) -> JSONResponse:
        return _problem(400, str(error))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:5]]
        return _problem(422, "; ".join(faults).encode("utf-8", "replace").decode())

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

    def work(job: Job) -> Answer:
        result = score(job.records, job.metrics, models=models)
        lines = [Line(**outcome.to_object(result.specs, job.explain)) for outcome in result.outcomes]
        return Answer(results=lines, summary=result.summary(), signatures=result.signatures)

    async def in_turn(job: Job) -> Answer:
        async with turn:
            return await asyncio.to_thread(work, job)

    refusals: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in (400, 411, 413, 422, 503)}

    @app.post("/score", responses=refusals)
    async def score_records(job: Job) -> Any:
        """Score records with one or more metrics."""
        running = asyncio.ensure_future(in_turn(job))  # shielded: a job that is too slow still ends before the next one
        try:
            return await asyncio.wait_for(asyncio.shield(running), max_seconds)
        except asyncio.TimeoutError:
            return _problem(503, f"not done within {max_seconds:g} seconds: send fewer records, or lighter metrics")

    return app


def _page(document: dict[str, Any]) -> str:
    """The OpenAPI document for people: each path with its summary, then the shapes of bodies."""
    parts = [f"<h1>{document['info']['title']}</h1><p>{document['info']['description']}</p>"]
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            parts.append(f"<h2><code>{method.upper()} {path}</code></h2><p>{escape(told.get('description', ''))}</p>")
    body = {"records": [{"id": "1", "answer": "a red fox", "references": ["the red fox"]}], "metrics": ["rouge-l"]}
    call = f"curl -H 'Content-Type: application/json' -d '{json.dumps(body)}' http://HOST:PORT/score"
    parts.append(f"<h2>An example</h2><pre>{escape(call)}</pre>")
    for name, shape in document["components"]["schemas"].items():
        parts.append(f"<details><summary>{name}</summary><pre>{escape(json.dumps(shape, indent=1))}</pre></details>")
    parts.append('<p>The whole document: <a href="openapi.json">openapi.json</a></p>')
    style = "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}pre{overflow:auto}"
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{style}</style>'
    return (
        f'<!doctype html><html lang="en"><head><title>quaestor</title>{head}</head><body>{"".join(parts)}</body></html>'
    )


def _problem(code: int, words: str) -> JSONResponse:
    return JSONResponse({"error": words}, code)
