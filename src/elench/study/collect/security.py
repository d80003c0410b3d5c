"""Keep raters apart and strangers out: signed links and forms, hidden worker ids, limits on size and rate, headers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import MutableHeaders

from elench.connections import TooLarge, TooSlow, read_body, replay

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MTURK = ("https://www.mturk.com", "https://workersandbox.mturk.com")
MTURK_FRAMES = "https://worker.mturk.com https://www.mturk.com https://workersandbox.mturk.com"
BODY_LIMIT = 64 * 1024


class Signer:
    """Makes and checks what only the server can make: everything is a keyed hash of its purpose and parts."""

    def __init__(self, key: str) -> None:
        self._key = bytes.fromhex(key)

    def mac(self, purpose: str, *parts: str) -> str:
        """128 bits, for use in links and forms. Parts are length-marked, so that none can flow into the next."""
        text = "".join(f"{len(part)}:{part}" for part in (purpose, *parts))
        digest = hmac.new(self._key, text.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")

    def matches(self, given: str, purpose: str, *parts: str) -> bool:
        return same(given, self.mac(purpose, *parts))

    def link(self, assignment: str) -> str:
        """The part of a rater's address that opens one task: cannot be guessed, and is not in the database."""
        return f"{assignment}.{self.mac('task', assignment)}"

    def assignment(self, link: str) -> str | None:
        """The assignment a link opens; None for a forged one."""
        name, _, mac = link.partition(".")
        return name if self.matches(mac, "task", name) else None

    def pseudonym(self, source: str, worker: str) -> str:
        """The pseudonym of a worker in the database and in exports; without the study's key it leads nowhere."""
        return "r" + hmac.new(self._key, f"worker:{source}:{worker}".encode(), hashlib.sha256).hexdigest()[:16]


def same(given: str, right: str) -> bool:
    """Compare secrets in constant time."""
    return hmac.compare_digest(given.encode(), right.encode())


class Limiter:
    """Token buckets: `burst` requests at once, `rate` per second in the long run, per name; forgets the idle."""

    def __init__(self, burst: float, rate: float, names: int = 20_000) -> None:
        self._burst, self._rate, self._names = burst, rate, names
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def has(self, name: str, now: float | None = None) -> bool:
        """Whether a request would be allowed, without counting one."""
        now = time.monotonic() if now is None else now
        left, then = self._buckets.get(name, (self._burst, now))
        return min(self._burst, left + (now - then) * self._rate) >= 1

    def allows(self, name: str, now: float | None = None) -> bool:
        now = time.monotonic() if now is None else now
        left, then = self._buckets.pop(name, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        allowed = left >= 1
        self._buckets[name] = (left - 1 if allowed else left, now)
        if len(self._buckets) > self._names:
            self._buckets.popitem(last=False)
        return allowed


async def refuse(send: Send, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    """A short plain answer."""
    head = [(b"content-type", b"text/plain; charset=utf-8"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": text.encode()})


class Guard:
    """Wraps the application: refuses floods and large bodies before anything is read, adds the headers to all answers.

    A visitor with a genuine task link is counted by that link, so that many raters may share one address; everybody
    else is counted by address.
    """

    def __init__(self, app: App, signer: Signer, rater: Limiter, stranger: Limiter) -> None:
        self.app, self.signer, self.rater, self.stranger = app, signer, rater, stranger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(MutableHeaders(scope=message), scope)
            await send(message)

        if not self._allowed(scope):
            await refuse(send_guarded, 429, "Too many requests: please wait a few seconds.", (b"retry-after", b"5"))
            return
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not length.isdigit() or int(length) > BODY_LIMIT:
            await refuse(send_guarded, 413, "The request is too large.", (b"connection", b"close"))
            return
        try:
            body = await read_body(receive, BODY_LIMIT) if scope["method"] == "POST" else b""
        except TooLarge:
            await refuse(send_guarded, 413, "The request is too large.", (b"connection", b"close"))
        except TooSlow:
            await refuse(send_guarded, 408, "The request did not arrive in time.", (b"connection", b"close"))
        else:
            await self.app(scope, replay(body, receive), send_guarded)

    def _allowed(self, scope: Scope) -> bool:
        parts = scope["path"].split("/")
        if len(parts) > 2 and parts[1] == "t" and (name := self.signer.assignment(parts[2])):
            return self.rater.allows(name)
        if parts[1:2] == ["static"]:
            return True
        return self.stranger.allows((scope.get("client") or ("?",))[0])


def _add_headers(headers: MutableHeaders, scope: Scope) -> None:
    framed = scope.get("state", {}).get("framed", False)  # shown inside MTurk's page
    frames, forms = (MTURK_FRAMES, f"'self' {' '.join(MTURK)}") if framed else ("'none'", "'self'")
    headers["content-security-policy"] = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        f"base-uri 'none'; form-action {forms}; frame-ancestors {frames}"
    )
    if not framed:
        headers["x-frame-options"] = "DENY"
    headers["x-content-type-options"] = "nosniff"
    headers["referrer-policy"] = "no-referrer"
    headers["cross-origin-opener-policy"] = "same-origin"
    headers["permissions-policy"] = "camera=(), microphone=(), geolocation=()"
    if not scope["path"].startswith("/static/"):
        headers["cache-control"] = "no-store"
