"""Around everything: headers that protect browsers, counting, and a last word where something of ours failed."""

from __future__ import annotations

import logging
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bitscale.server.answers import error_answer, mistake
from bitscale.server.audit import Audit
from bitscale.server.metrics import Metrics

LOG = logging.getLogger("bitscale.server")
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PROTECTION = [  # as they go out
    (b"content-security-policy", PAGE_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
]


class Observed:
    """An ASGI application around the guard; it looks at no body."""

    def __init__(self, inner: ASGIApp, metrics: Metrics, audit: Audit) -> None:
        self._inner, self._metrics, self._audit = inner, metrics, audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        begun, whole, start, status = False, False, time.perf_counter(), 500

        async def protected(message: Message) -> None:
            nonlocal begun, whole, status
            if message["type"] == "http.response.start":
                begun, status = True, message["status"]
                there = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in PROTECTION if one[0] not in there)]
            await send(message)
            whole = message["type"] == "http.response.body" and not message.get("more_body", False)

        try:
            await self._inner(scope, receive, protected)
        except Exception:
            LOG.exception("a mistake in bitscale: %s %s", scope["method"], scope["path"])
            if begun and not whole:
                raise
            if not begun:
                answer: Any = error_answer(mistake())
                await answer(scope, receive, protected)
        finally:
            seconds = time.perf_counter() - start
            self._metrics.count(route_of(scope), scope["method"], status, seconds)
            self._audit.write(scope, status, seconds)


def route_of(scope: Scope) -> str:
    """The form of the route that answered: its path with names in the place of values."""
    return getattr(scope.get("route"), "path", "none")
