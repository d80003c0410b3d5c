"""The HTTP service behind `quaestor serve`: post records, get scores and evidence."""

from __future__ import annotations

import asyncio
from typing import Any

from quaestor.errors import MissingExtra, QuaestorError
from quaestor.metrics import all_metrics
from quaestor.models.base import ModelSet
from quaestor.scoring import score

try:
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import JSONResponse
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
    app = FastAPI(title="quaestor", description="Scores of generated questions, answers and summaries.")
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


def _problem(code: int, words: str) -> JSONResponse:
    return JSONResponse({"error": words}, code)
