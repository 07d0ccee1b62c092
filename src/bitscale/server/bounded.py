"""Bounds on what arrives: a body of so many bytes, within so many seconds; more is refused without being read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bitscale.server.answers import Refused, error_answer
from bitscale.server.settings import Settings

MOST_JSON = 4 << 20  # bytes of a body that is no picture
MOST_SIGNING_IN = 4 << 10  # bytes that are read of somebody who has no key
PICTURES = ("/items", "/search/picture", "/marks")  # how paths end that take a picture


class Bounded:
    """An ASGI application behind the guard."""

    def __init__(self, inner: ASGIApp, settings: Settings) -> None:
        self._inner, self._settings = inner, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        most = self._most(scope["path"])
        try:
            check_length(scope["headers"], most)
        except Refused as refused:
            await error_answer(refused)(scope, receive, send)
            return
        await self._inner(scope, Body(receive, most, self._settings.seconds), send)

    def _most(self, path: str) -> int:
        """The bytes that a body may have."""
        if path == "/v1/session":
            return MOST_SIGNING_IN
        return self._settings.most_bytes if path.endswith(PICTURES) else MOST_JSON


class Body:
    """Passes a body on, block by block, while it keeps within its bounds."""

    def __init__(self, receive: Receive, most: int, seconds: float) -> None:
        self._receive, self._most, self._left = receive, most, most
        self._end: float | None = None
        self._seconds, self._whole = seconds, False

    async def __call__(self) -> Message:
        """The next block."""
        if self._whole:
            return await self._receive()  # waits for the client to go
        loop = asyncio.get_running_loop()
        self._end = self._end or loop.time() + self._seconds
        try:
            async with asyncio.timeout_at(self._end):
                message = await self._receive()
        except TimeoutError:
            raise Refused(408, f"the request did not arrive within {self._seconds:.0f} seconds.", "TooSlow") from None
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise too_large(self._most)
        self._whole = not message.get("more_body", False)
        return message


def check_length(headers: Iterable[tuple[bytes, bytes]], most: int) -> None:
    """Refuse a body that says itself that it is too large."""
    for name, value in headers:
        if name == b"content-length":
            with suppress(ValueError):
                if int(value) > most:
                    raise too_large(most)


def too_large(most: int) -> Refused:
    """A request that is larger than one may be; the connection ends, since the rest is not read."""
    return Refused(413, f"a request like this has at most {most:,} bytes.", "TooLarge", {"Connection": "close"})
