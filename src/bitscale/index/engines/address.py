"""Addresses of collections in engines: postgresql://user@host:5432/database?collection=photos, milvus://host/photos.

An address never holds a password: command lines are kept in histories. PostgreSQL's is read by its own library
(PGPASSWORD, ~/.pgpass), that of Milvus from MILVUS_TOKEN ("user:password", or a token).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from bitscale.errors import InputError

SCHEMES = {"postgresql": "postgresql", "postgres": "postgresql", "milvus": "milvus"}
PORTS = {"postgresql": None, "milvus": 19530}  # libpq knows its own
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
DEFAULT_NAME = "photos"
PASSWORD_CURES = {
    "postgresql": "set PGPASSWORD, or write it into ~/.pgpass",
    "milvus": 'set MILVUS_TOKEN to "user:password" or a token',
}


@dataclass(frozen=True)
class Address:
    """Where a collection is: engine, host, and the collection's name there."""

    scheme: str
    name: str
    host: str = ""
    port: int | None = None
    user: str = ""
    database: str = ""
    socket: str = ""  # of PostgreSQL: the folder its socket is in

    def __str__(self) -> str:
        """The address as it can be typed; there is no password in it."""
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        place = f"{user}{host}{f':{self.port}' if self.port else ''}"
        if self.scheme == "milvus":
            return f"milvus://{place}/{self.name}"
        socket = f"&host={quote(self.socket, safe='/')}" if self.socket else ""
        return f"postgresql://{place}/{quote(self.database, safe='')}?collection={self.name}{socket}"


def is_address(text: object) -> bool:
    """Whether a text names an engine rather than a folder."""
    return isinstance(text, str) and text.partition("://")[0] in SCHEMES and "://" in text


def parse_address(text: str) -> Address:
    """An address as it is typed, checked."""
    try:
        parts = urlsplit(text)
    except ValueError:  # not repeated: it may hold a password
        raise InputError("between the brackets of an address stands an IPv6 address, and nothing else.") from None
    scheme = SCHEMES.get(parts.scheme)
    if scheme is None:
        raise InputError(
            f"an engine's address begins with postgresql:// or milvus://. Got {parts.scheme or 'no scheme'}://."
        )
    if parts.password is not None:
        raise InputError(f"an address must not hold a password, since histories keep it: {PASSWORD_CURES[scheme]}.")
    try:
        host, port = parts.hostname or "", parts.port or PORTS[scheme]
    except ValueError:
        raise InputError("the port of an address is a number up to 65535.") from None
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    path = unquote(parts.path.strip("/"))
    if scheme == "milvus":
        _refuse_others(given, ())
        return Address(scheme, _name(path or DEFAULT_NAME), host or "127.0.0.1", port, unquote(parts.username or ""))
    _refuse_others(given, ("collection", "host"))
    name = _name(given.get("collection", DEFAULT_NAME))
    return Address(scheme, name, host, port, unquote(parts.username or ""), path, given.get("host", ""))


def _refuse_others(given: dict[str, str], known: tuple[str, ...]) -> None:
    for key in given:
        if key not in known:
            allowed = f"only {' and '.join(known)} may follow the ?" if known else "nothing may follow a ?"
            raise InputError(f"{key!r} cannot be part of this address: {allowed}.")


def _name(name: str) -> str:
    if not NAME.fullmatch(name):
        raise InputError(
            f"a collection's name in an engine has up to 40 small letters, digits and _, a letter first. Got {name!r}."
        )
    return name
