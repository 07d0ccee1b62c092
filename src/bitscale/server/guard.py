"""The guard: the first that sees a request, and the only way in. It reads no byte of a body.

In this order: the Host must be ours (a name of somebody else's that leads here is DNS rebinding), a key or session must
be valid where one is needed, its role and scope must cover the request, a web site's script must not have sent it, and
there must not have been too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from bitscale.server.access import Need, need_of
from bitscale.server.addresses import AllowedHosts
from bitscale.server.answers import Refused, error_answer
from bitscale.server.cors import opened, preflight
from bitscale.server.identity import LOCAL, Identity
from bitscale.server.keys import KeyFile
from bitscale.server.rates import Rates
from bitscale.server.sessions import Sessions, token_of
from bitscale.server.settings import Settings

FORWARDED = (  # what proxies, tunnels and balancers say of those behind them
    "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-forwarded-server",
    "x-original-forwarded-for", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip",
    "x-envoy-external-address", "via",
)  # fmt: skip
NOBODY = Identity("nobody", "none", ())


class Guard:
    """An ASGI application around another: lets requests through, or answers them itself."""

    def __init__(self, inner: ASGIApp, settings: Settings, keys: KeyFile, sessions: Sessions) -> None:
        self._inner, self._settings, self._keys, self._sessions = inner, settings, keys, sessions
        self._hosts = AllowedHosts(settings.host, settings.allow_hosts)
        self.rates = Rates(settings.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
        elif scope["type"] == "http":
            allowed = self._settings.allow_origins
            if allowed:
                headers = Headers(scope=scope)
                send = opened(send, headers, allowed)
                answer = preflight(scope, headers, allowed) if headers.get("host") in self._hosts else None
                if answer is not None:
                    await answer(scope, receive, send)
                    return
            try:
                self._admit(scope)
            except Refused as refused:
                await self._refuse(refused, scope, receive, send)
            else:
                await self._inner(scope, receive, send)
        else:
            raise RuntimeError(f"the service speaks HTTP alone. Got {scope['type']}.")

    async def _refuse(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        to_page = refused.status == 401 and scope["method"] == "GET" and scope["path"] == "/"
        asked = scope["query_string"].decode("latin-1")
        way_in = f"/sign-in?next={quote('/?' + asked, safe='')}" if asked else "/sign-in"
        answer: Any = RedirectResponse(way_in, 303) if to_page else error_answer(refused)
        await answer(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        """Put down who is asking, or raise."""
        headers = first_of(scope["headers"])
        scope["bitscale.identity"] = NOBODY
        hosts = sum(name == b"host" for name, _ in scope["headers"])
        if hosts != 1 or headers["host"] not in self._hosts:
            raise Refused(403, "this service is not reached under that host name. See: --allow-host", "UnknownHost")
        need = need_of(scope["method"], scope["path"])
        scope["bitscale.need"] = need
        address = scope["client"][0] if scope.get("client") else "unknown"
        if need.role == "none":
            self.rates.check(address)
        else:
            who = self._who(headers, address)
            scope["bitscale.identity"] = who
            self.rates.check(who.name if who is not LOCAL else address)
            check_scope(who, need)
        self._check_origin(scope, headers, need)

    def _who(self, headers: Mapping[str, str], address: str) -> Identity:
        """Who asks: by a key, by a session, or as a user of this machine."""
        authorization = headers.get("authorization", "")
        if authorization or "x-api-key" in headers:
            secret = headers["x-api-key"] if "x-api-key" in headers else bearer(authorization)
            key = self._keys.find(secret)
            if key is None:
                self.rates.failed(address)
                raise no_key("the key is not valid: it is mistyped, or was revoked.")
            return key.identity
        token = token_of(headers.get("cookie", ""))
        opened_by = None if token is None else self._sessions.key_id(token)
        key = None if opened_by is None else self._keys.by_id(opened_by)
        if key is not None:
            return key.identity
        if self._settings.keys_required or any(name in headers for name in FORWARDED):
            raise no_key("a key is needed: Authorization: Bearer KEY. Make one with: bitscale keys make NAME")
        return LOCAL

    def _check_origin(self, scope: Scope, headers: Mapping[str, str], need: Need) -> None:
        """A page of another web site must not make its visitor's browser ask us."""
        ours = f"{scope['scheme']}://{headers['host']}".lower()
        origin = headers.get("origin")
        if origin is not None and origin in self._settings.allow_origins:
            return
        site = headers.get("sec-fetch-site", "none")
        followed = not need.changes and headers.get("sec-fetch-mode") == "navigate"  # a link that somebody clicked
        strange_origin = origin is not None and origin.lower() != ours and (need.changes or origin != "null")
        if strange_origin or (site not in ("same-origin", "none") and not followed):
            raise Refused(403, "another web site sent this request. See: --allow-origin", "ForeignOrigin")


def first_of(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The first value of each header; names come in small letters."""
    table: dict[str, str] = {}
    for name, value in headers:
        table.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    return table


def check_scope(who: Identity, need: Need) -> None:
    """Refuse what a key may not do."""
    if need.collection is not None and not who.may_see(need.collection):
        raise Refused(403, "this key is for other collections.", "OutOfScope")
    if need.role == "write" and who.role != "write":
        raise Refused(403, "this key only reads.", "ReadOnlyKey")


def bearer(header: str) -> str:
    """The key in an Authorization header."""
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def no_key(message: str) -> Refused:
    """The answer to a request without a valid key."""
    return Refused(401, message, "KeyNeeded", {"WWW-Authenticate": 'Bearer realm="bitscale"'})
