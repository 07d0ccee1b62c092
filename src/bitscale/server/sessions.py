"""Sessions: a key traded for a cookie, so that a browser can load pictures; they end with the service, or their key."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from http.cookies import CookieError, SimpleCookie

COOKIE = "bitscale_session"
SECONDS = 12 * 3600
MOST = 10_000  # sessions; the oldest end first


class Sessions:
    """Which cookie stands for which key, in memory alone."""

    def __init__(self) -> None:
        self._open: OrderedDict[bytes, tuple[str, float]] = OrderedDict()  # hash of the token: key's id, end

    def begin(self, key_id: str) -> str:
        """A new session's token."""
        token = secrets.token_urlsafe(32)
        self._open[_hash(token)] = key_id, time.monotonic() + SECONDS
        while len(self._open) > MOST:
            self._open.popitem(last=False)
        return token

    def key_id(self, token: str) -> str | None:
        """The key a session was begun with, unless it has ended."""
        name, end = self._open.get(_hash(token), ("", 0.0))
        return name if time.monotonic() < end else None

    def end(self, token: str) -> None:
        """Sign out."""
        self._open.pop(_hash(token), None)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def token_of(cookies: str) -> str | None:
    """The session's token in a Cookie header."""
    if COOKIE not in cookies:
        return None
    try:
        morsel = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return None
    return morsel.value if morsel else None


def cookie(token: str, *, secure: bool, seconds: int = SECONDS) -> str:
    """The Set-Cookie header; `seconds` 0 takes the cookie back."""
    safe = "; Secure" if secure else ""
    return f"{COOKIE}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{safe}"
