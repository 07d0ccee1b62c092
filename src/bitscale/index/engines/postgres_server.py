"""The way to a PostgreSQL server: connecting, connections kept for the next call, errors that name the address."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bitscale.errors import EngineError
from bitscale.index.engines.address import Address

if TYPE_CHECKING:
    import psycopg

OLDEST = 140_000  # bit_count came with PostgreSQL 14
CONNECT_SECONDS = 10


class Connections:
    """Connections to one database: each is used by one thread at a time, and kept for the next that asks."""

    def __init__(self, address: Address, first: psycopg.Connection[Any]) -> None:
        self._address, self._idle = address, [first]
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection that works; one that was cut is not kept."""
        with telling(self._address):
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or connection.closed:
                connection = connect(self._address)
            try:
                yield connection
            finally:
                if not connection.closed:
                    with self._lock:
                        self._idle.append(connection)

    def close(self) -> None:
        """End the connections; what is stored stays."""
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle = []


def connect(address: Address) -> psycopg.Connection[Any]:
    """A connection; the password is the client library's to find."""
    place = {"host": address.socket or address.host, "port": address.port, "user": address.user}
    known = {key: value for key, value in place.items() if value}
    with telling(address):
        connection: psycopg.Connection[Any] = require_psycopg().connect(
            dbname=address.database or "postgres", autocommit=True, connect_timeout=CONNECT_SECONDS,
            application_name="bitscale", keepalives_idle=30, client_encoding="utf8", **known,
        )  # fmt: skip
    version = connection.info.server_version
    if version < OLDEST:
        connection.close()
        raise EngineError(f"{address} is PostgreSQL {version // 10_000}; 14 or later is needed. Upgrade the server.")
    return connection


def require_psycopg() -> Any:
    """The client library, or how to get it."""
    try:
        import psycopg
    except ImportError:
        raise EngineError("postgresql:// needs psycopg. Install it: pip install 'psycopg[binary]'") from None
    return psycopg


@contextmanager
def telling(address: Address) -> Iterator[None]:
    """Say of every error of the engine where it came from and what helps."""
    psycopg = require_psycopg()
    try:
        yield
    except psycopg.Error as error:
        text = " ".join(str(error).split()).split(" Is the server running")[0] or type(error).__name__
        raise EngineError(f"{address}: {text[:300].rstrip('.?')}. {_cure(text, error.sqlstate)}") from None


def _cure(text: str, state: str | None) -> str:
    if "password" in text or "no password supplied" in text or (state or "").startswith("28"):
        return "Set PGPASSWORD or ~/.pgpass, and look at the user's name in the address."
    if "does not exist" in text and "database" in text:
        return "Create the database first (createdb), or name another in the address."
    if state is None or state.startswith(("08", "57")):
        return "Is the server running there, and reachable? Once it is, run the same command again."
    if state.startswith("53"):
        return "The server is out of room or connections: free some, and run the same command again."
    if state == "42501":
        return "Grant the user the rights to create and use tables there."
    return "Nothing was changed."
