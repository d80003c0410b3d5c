"""Limits that every server of elench applies: bodies counted as they arrive, and no half-open connection kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from elench.errors import MissingExtra

try:
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:
    raise MissingExtra("elench serve", "serve") from None

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
HEADER_SECONDS = 20.0
"""How long a client may take to send the head of a request."""
BODY_SECONDS = 30.0
"""How long a client may pause while sending a body, and how long a body may take that comes slower than SLOWEST."""
SLOWEST = 2000.0
"""Bytes per second; a client that drips its body keeps a connection for nothing."""


class TooLarge(Exception):
    """More bytes arrived than are allowed, whatever the headers announced."""


class TooSlow(Exception):
    """The client stopped sending in the middle of a body."""


async def read_body(receive: Receive, limit: int, pause: float = BODY_SECONDS) -> bytes:
    """The whole body of a request. Bytes are counted as they arrive: Content-Length is only the client's word."""
    parts: list[bytes] = []
    size = 0
    clock = asyncio.get_running_loop().time
    begun = clock()
    while True:
        left = begun + pause + size / SLOWEST - clock()
        try:
            message = await asyncio.wait_for(receive(), min(pause, left))
        except asyncio.TimeoutError:
            raise TooSlow from None
        if message["type"] == "http.disconnect":
            raise TooSlow
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise TooLarge
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that hands out a body already read, then waits for the disconnect."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class TimedProtocol(H11Protocol):
    """uvicorn's protocol, which also drops clients that connect and then send no complete request head."""

    header_seconds = HEADER_SECONDS

    # asyncio hands a stream transport
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_timer: asyncio.TimerHandle | None = None
        self._expect_head()

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(self.header_seconds, self._drop)

    def _drop(self) -> None:
        idle = self.cycle is None or self.cycle.response_complete
        if idle and not self.transport.is_closing():
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self._head_timer is None:
            self._expect_head()  # a further request on a kept-alive connection began
        if self.cycle is not before and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
        super().connection_lost(exc)
