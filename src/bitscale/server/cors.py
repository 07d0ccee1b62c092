"""CORS: what a browser must hear so that scripts of web sites named by `--allow-origin` may call; nobody else may."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Scope, Send

METHODS = "GET, POST, DELETE"
HEADERS = "Authorization, X-API-Key, Content-Type"


def preflight(scope: Scope, headers: Headers, allowed: tuple[str, ...]) -> Response | None:
    """The answer to a browser that asks whether a script may call; None where it is no such question."""
    asks = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
    if not asks or headers.get("origin") not in allowed:
        return None
    permissions = {"Access-Control-Allow-Methods": METHODS, "Access-Control-Allow-Headers": HEADERS}
    return Response(status_code=204, headers={**permissions, "Access-Control-Max-Age": "600"})


def opened(send: Send, headers: Headers, allowed: tuple[str, ...]) -> Send:
    """Sends answers that a script of an allowed web site may read."""
    origin = headers.get("origin")
    if origin not in allowed:
        return send
    own = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]

    async def passed(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *own]
        await send(message)

    return passed
