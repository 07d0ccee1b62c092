"""uvicorn's HTTP protocol with bounds it lacks: on connections, and on the time and size of a request's head."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from bitscale.server.answers import Refused, error_answer
from bitscale.server.observed import PROTECTION

MOST_CONNECTIONS = 1_000
HEAD_SECONDS = 20.0
HEAD_BYTES = 64 << 10


class Protocol(HttpToolsProtocol):
    """A connection that is closed when a request's head takes too long, or is too large."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._waiting: asyncio.TimerHandle | None = None
        self._head = 0
        if len(self.connections) > MOST_CONNECTIONS:
            transport.close()
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._go_on()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        self._head += len(data) if self._waiting is not None else 0
        super().data_received(data)
        if self._waiting is not None and self._head > HEAD_BYTES:  # still no end of it
            self.transport.close()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._wait()

    def on_headers_complete(self) -> None:
        """Its head is complete."""
        self._go_on()
        if sum(len(name) + len(value) for name, value in self.headers) + len(self.url) > HEAD_BYTES:
            self.transport.close()
        else:
            super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the one shape of errors."""
        body = error_answer(Refused(400, "this is no HTTP request.", "BadRequest")).body
        head = [b"HTTP/1.1 400 Bad Request", b"content-type: application/json", b"content-length: %d" % len(body)]
        head += [b"connection: close", *(b"%b: %b" % one for one in PROTECTION)]
        self.transport.write(b"\r\n".join([*head, b"", bytes(body)]))
        self.transport.close()

    def _wait(self) -> None:
        self._go_on()
        self._waiting = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _go_on(self) -> None:
        self._head = 0
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
