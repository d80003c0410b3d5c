"""Talks to an OpenAI-compatible server: several requests at once, retries with back-off, a rate limit, a budget.

The key comes from the environment variable ELENCH_API_KEY and goes into the Authorization header, nowhere else. It is
sent over https, or to this machine. Redirects are not followed: they could carry the key elsewhere.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from elench.errors import Unscored, UsageError
from elench.requests import Failure

KEY = "ELENCH_API_KEY"
LOCAL = ("127.0.0.1", "localhost", "::1")
RETRIED = (408, 409, 425, 429, 500, 502, 503, 504, 529)
"""Status codes after which the same request may succeed."""
LARGEST = 64 << 20
"""Bytes of an answer that are read; more is refused."""


class BudgetSpent(UsageError):
    """The budget of requests or money is used up; what was answered is kept."""


@dataclass(frozen=True)
class Limits:
    """How hard a server may be asked. Each has an environment variable, which the command line sets."""

    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 5
    per_minute: float = 0.0
    """Requests per minute; 0: as fast as the server answers."""
    max_requests: int = 0
    max_cost: float = 0.0
    """In the currency of the prices."""
    price_in: float = 0.0
    """Per million tokens read."""
    price_out: float = 0.0
    """Per million tokens written."""

    @classmethod
    def from_environment(cls) -> Limits:
        values: dict[str, Any] = {}
        for name, default in vars(cls()).items():
            text = os.environ.get(f"ELENCH_HTTP_{name.upper()}", "")
            try:
                values[name] = type(default)(text) if text else default
            except ValueError:
                raise UsageError(f"ELENCH_HTTP_{name.upper()}={text}: not a number") from None
        limits = cls(**values)
        if limits.max_cost and not (limits.price_in or limits.price_out):
            raise UsageError("--max-cost needs the prices per million tokens: --price IN/OUT")
        return limits


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


@dataclass
class Client:
    """One server."""

    base: str
    """Address up to and including /v1."""
    limits: Limits = field(default_factory=Limits.from_environment)
    requests: int = 0
    cost: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)
    next_start: float = 0.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{self.base}: not an address of a server; write http://HOST:PORT/v1#MODEL")
        if parts.username or parts.password or parts.query:
            raise UsageError(f"the address of {parts.hostname} holds a key or a query: put the key into {KEY}")
        self.host = parts.hostname
        self.key = os.environ.get(KEY, "")
        if self.key and parts.scheme == "http" and self.host not in LOCAL:
            raise UsageError(f"{KEY} is not sent over plain http to {self.host}: use https, or unset {KEY}")
        self.opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))

    def post_all(self, path: str, bodies: Sequence[dict[str, object]]) -> list[object]:
        """The decoded answers in order; a Failure with the reason in the place of one that could not be had."""

        def one(body: dict[str, Any]) -> Any:
            try:
                return self.post(path, body)
            except (Unscored, BudgetSpent) as reason:  # the answers that did come are kept before the run stops
                return Failure(reason)

        with ThreadPoolExecutor(max(1, min(self.limits.concurrency, len(bodies)))) as pool:
            return list(pool.map(one, bodies))

    def post(self, path: str, body: dict[str, object]) -> dict[str, object]:
        """One request, retried; Unscored when the server fails for good, UsageError when no request can succeed."""
        problem = ""
        for attempt in range(self.limits.retries + 1):
            self._wait_and_count()
            pause = min(60.0, 0.5 * 2**attempt) * random.uniform(0.5, 1.0)
            try:
                answer = self._send(path, body)
            except urllib.error.HTTPError as error:
                problem = f"status {error.code}"
                self._give_up_on(error)
                pause = _retry_after(error.headers.get("Retry-After", ""), pause)
            except (OSError, http.client.HTTPException) as error:
                reason = getattr(error, "reason", error)
                timed_out = isinstance(reason, TimeoutError)
                problem = f"no answer in {self.limits.timeout:g} s" if timed_out else f"{reason or 'connection lost'}"
            except ValueError as error:
                problem = f"not a JSON object ({str(error)[:60]})"
            else:
                self._pay(answer)
                return answer
            if attempt < self.limits.retries:
                time.sleep(pause)
        raise Unscored(f"{self.host} failed {self.limits.retries + 1} times: {problem}")

    def get(self, path: str) -> dict[str, Any] | None:
        """One question about the server itself; None where it has no answer to it."""
        try:
            return self._send(path, None)
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                self._give_up_on(error)
            return None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise UsageError(f"{self.base}: cannot reach the server ({reason}); is it running?") from None
        except ValueError:
            return None

    def _send(self, path: str, body: dict[str, object] | None) -> dict[str, object]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}{path}", data, headers)
        with self.opener.open(request, timeout=self.limits.timeout) as response:
            raw = response.read(LARGEST + 1)
            cut = response.length  # bytes that were announced and did not come
        if len(raw) > LARGEST:
            raise ValueError("larger than 64 MB")
        if cut:
            raise ValueError(f"the connection closed after {len(raw)} of {len(raw) + cut} bytes")
        try:
            answer = json.loads(raw)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(answer, dict):
            raise ValueError(type(answer).__name__)
        return answer

    def _give_up_on(self, error: urllib.error.HTTPError) -> None:
        """Errors that no retry mends: a refused key or an unknown model stops the run, a refused text only itself."""
        if error.code in RETRIED:
            return
        try:
            said = error.read(2000).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):
            said = ""
        said = " ".join((said.replace(self.key, "…") if self.key else said).split())[:160]
        if error.code in (401, 403):
            held = f"the key in {KEY} is refused" if self.key else f"it requires a key: set {KEY}"
            raise UsageError(f"{self.base}: {held} (status {error.code})") from None
        if error.code in (404, 405) or 300 <= error.code < 400:
            raise UsageError(f"{self.base}: status {error.code}: check address and model name ({said})") from None
        raise Unscored(f"{self.host} refused the request: status {error.code} {said}") from None

    def _wait_and_count(self) -> None:
        with self.lock:
            limits = self.limits
            if limits.max_requests and self.requests >= limits.max_requests:
                raise BudgetSpent(
                    f"--max-requests {limits.max_requests} is used up; answers are kept: raise it and run again with "
                    "--resume"
                )
            if limits.max_cost and self.cost >= limits.max_cost:
                raise BudgetSpent(
                    f"--max-cost {limits.max_cost:g} is used up ({self.cost:.4g} spent, {self.requests} requests); "
                    "answers are kept: raise it and run again with --resume"
                )
            self.requests += 1
            start = max(time.monotonic(), self.next_start)
            if limits.per_minute:
                self.next_start = start + 60.0 / limits.per_minute
        time.sleep(max(0.0, start - time.monotonic()))

    def _pay(self, answer: dict[str, object]) -> None:
        usage = answer.get("usage")
        if isinstance(usage, dict):
            read, written = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
            with self.lock:
                if isinstance(read, int):
                    self.cost += read * self.limits.price_in / 1e6
                if isinstance(written, int):
                    self.cost += written * self.limits.price_out / 1e6


def _retry_after(said: str, otherwise: float) -> float:
    """Seconds to wait: a number or an HTTP date, at most two minutes."""
    try:
        wait = float(said) if said.strip()[:1].isdigit() else parsedate_to_datetime(said).timestamp() - time.time()
    except (TypeError, ValueError, OverflowError):
        return otherwise
    return min(120.0, max(wait, 0.0)) if math.isfinite(wait) else otherwise
