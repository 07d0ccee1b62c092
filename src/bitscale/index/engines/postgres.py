"""PostgreSQL (14 or later, nothing else needed): codes as bit(n) in a table, exact by SQL, changed in transactions.

A search takes two statements of one snapshot. The first bounds the k-th distance by any k codes near the query; the
second sums costs only where so few bits differ that the bound can be kept. Nothing outside can enter: h differing
bits cost at least the sum of the h smallest costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bitscale import hamming
from bitscale.errors import EngineError, NotInEngine
from bitscale.hamming import CostTerms
from bitscale.index.base import I64
from bitscale.index.engines.address import Address, parse_address
from bitscale.index.engines.postgres_copy import SIGNATURE, TRAILER, copy_rows
from bitscale.index.engines.postgres_sql import Masks, masks, radius_for, ranked, sampled
from bitscale.index.engines.remote import FORMAT, Among, Ask, Beside, Facts, Ranked, RemoteIndex, refuse_known

if TYPE_CHECKING:
    import psycopg

OLDEST = 140_000  # bit_count came with PostgreSQL 14
CONNECT_SECONDS = 10
COLLECTIONS = "bitscale_collections"
CREATE = f"""CREATE TABLE IF NOT EXISTS {COLLECTIONS} (
    name text PRIMARY KEY, format int NOT NULL, bit_weights float8[] NOT NULL, model text, origin text,
    next_id bigint NOT NULL DEFAULT 0, next_stamp bigint NOT NULL DEFAULT 0, cursor text)"""
GUESSED_FROM = 4  # times k codes are looked at for the first bound


class PostgresIndex(RemoteIndex):
    """Codes in a table of a PostgreSQL database."""

    def __init__(self, address: Address, facts: Facts, connection: psycopg.Connection[Any]) -> None:
        super().__init__(address, facts)
        self._connection = connection
        self.table = table_of(address)

    @classmethod
    def create(cls, address: str, facts: Facts) -> Self:
        """Make an empty index at an address; one that is there already is refused."""
        place = parse_address(address)
        connection = connect(place)
        with telling(place), connection.transaction():
            connection.execute(CREATE)
            row = (place.name, FORMAT, list(facts.bit_weights), facts.model, facts.origin)
            made = connection.execute(
                f"INSERT INTO {COLLECTIONS} (name, format, bit_weights, model, origin) VALUES (%s, %s, %s, %s, %s)"
                " ON CONFLICT DO NOTHING", row,
            )  # fmt: skip
            if not made.rowcount:
                connection.close()
                raise EngineError(f"{place} holds a collection already. Open it, or choose another name.")
            connection.execute(
                f"CREATE TABLE {table_of(place)} (id bigint PRIMARY KEY, stamp bigint NOT NULL,"
                f" code bit({len(facts.bit_weights)}) NOT NULL, digest bigint NOT NULL DEFAULT 0, item json)"
            )
        return cls(place, facts, connection)

    @classmethod
    def open(cls, address: str) -> Self:
        """Connect to an index that is there."""
        place = parse_address(address)
        connection = connect(place)
        with telling(place):
            there = connection.execute("SELECT to_regclass(%s)", (COLLECTIONS,)).fetchone()
            row = None
            if there and there[0]:
                asked = f"SELECT format, bit_weights, model, origin FROM {COLLECTIONS} WHERE name = %s"
                row = connection.execute(asked, (place.name,)).fetchone()
        if row is None:
            connection.close()
            raise NotInEngine(f"{place} holds no collection of bitscale. Make one with bitscale push.")
        if row[0] > FORMAT:
            connection.close()
            raise EngineError(f"{place} was written by a later bitscale (format {row[0]}). Upgrade bitscale to use it.")
        return cls(place, Facts(tuple(row[1]), row[2], row[3]), connection)

    def drop(self) -> None:
        """Remove the collection from the engine, items and all."""
        with self._transaction() as connection:
            connection.execute(f"DROP TABLE {self.table}")
            connection.execute(f"DELETE FROM {COLLECTIONS} WHERE name = %s", (self.address.name,))

    def close(self) -> None:
        """End the connection; what is stored stays."""
        self._connection.close()

    # ------------------------------------------------------------------ contents

    def __len__(self) -> int:
        return int(self._one(f"SELECT count(*) FROM {self.table}"))

    def ids(self) -> I64:
        """The ids of all items, ascending."""
        return self._column(f"SELECT id FROM {self.table} ORDER BY id")

    def _stamp(self) -> int:
        return int(self._one(f"SELECT next_stamp FROM {COLLECTIONS} WHERE name = %s", (self.address.name,)))

    def _known(self, ids: I64) -> I64:
        return self._column(f"SELECT id FROM {self.table} WHERE id = ANY(%s) ORDER BY id", (ids.tolist(),))

    def _packed(self, ids: I64) -> tuple[I64, NDArray[np.uint8]]:
        with self._snapshot() as connection:
            asked = f"SELECT id, code::text FROM {self.table} WHERE id = ANY(%s)"
            rows = connection.execute(asked, (ids.tolist(),)).fetchall()
        return np.array([id for id, _ in rows], np.int64), self._unpack([code for _, code in rows])

    def _insert(self, packed: NDArray[np.uint8], ids: I64 | None, beside: Beside | None = None) -> I64:
        with self._transaction() as connection:
            next_id, stamp = self._counters(connection)
            new = np.arange(next_id, next_id + len(packed), dtype=np.int64) if ids is None else ids
            if ids is not None:
                known = f"SELECT id FROM {self.table} WHERE id = ANY(%s) ORDER BY id"
                refuse_known(np.array([id for (id,) in connection.execute(known, (ids.tolist(),))], np.int64))
            columns = "id, stamp, code" if beside is None else "id, stamp, code, digest, item"
            with connection.cursor().copy(f"COPY {self.table} ({columns}) FROM STDIN (FORMAT binary)") as copy:
                copy.write(SIGNATURE + copy_rows(packed, new, stamp, self.n_bits, beside) + TRAILER)
            connection.execute(
                f"UPDATE {COLLECTIONS} SET next_id = greatest(next_id, %s), next_stamp = %s WHERE name = %s",
                (int(new.max()) + 1, stamp + 1, self.address.name),
            )
        return new

    def _counters(self, connection: psycopg.Connection[Any]) -> tuple[int, int]:
        """The next id and stamp; whoever else adds waits until this transaction ends."""
        asked = f"SELECT next_id, next_stamp FROM {COLLECTIONS} WHERE name = %s FOR UPDATE"
        row = connection.execute(asked, (self.address.name,)).fetchone()
        if row is None:
            raise EngineError(f"{self.address} was removed while it was open. Push the collection again.")
        return row[0], row[1]

    def _delete(self, ids: I64) -> int:
        with self._transaction() as connection:
            return connection.execute(f"DELETE FROM {self.table} WHERE id = ANY(%s)", (ids.tolist(),)).rowcount

    # ------------------------------------------------------------------ texts beside the codes

    def replace_texts(self, ids: I64, beside: Beside) -> None:
        """Keep other texts beside items that are there."""
        rows = zip(beside.digests.tolist(), beside.texts, ids.tolist(), strict=True)
        with self._transaction() as connection:
            connection.cursor().executemany(f"UPDATE {self.table} SET digest = %s, item = %s WHERE id = %s", rows)

    def texts(self, ids: I64) -> dict[int, str]:
        """The texts beside some items, by id."""
        with self._snapshot() as connection:
            asked = f"SELECT id, item::text FROM {self.table} WHERE id = ANY(%s)"
            return dict(connection.execute(asked, (ids.tolist(),)).fetchall())

    def digests(self) -> tuple[I64, I64]:
        """The ids of all items, ascending, and the digest of each one's text."""
        with self._snapshot() as connection:
            rows = connection.execute(f"SELECT id, digest FROM {self.table} ORDER BY id").fetchall()
        array = np.array(rows, np.int64).reshape(-1, 2)
        return array[:, 0].copy(), array[:, 1].copy()

    def note(self, cursor: str | None) -> None:
        """Keep a word on how far the collection was brought here."""
        with self._transaction() as connection:
            connection.execute(f"UPDATE {COLLECTIONS} SET cursor = %s WHERE name = %s", (cursor, self.address.name))

    def cursor(self) -> str | None:
        """The word kept last."""
        found = self._one(f"SELECT coalesce(cursor, '') FROM {COLLECTIONS} WHERE name = %s", (self.address.name,))
        return found or None

    def forget_removed(self) -> None:
        """Write the table anew without removed rows."""
        with telling(self.address):
            self._reconnect()
            self._connection.execute(f"VACUUM FULL {self.table}")

    # ------------------------------------------------------------------ search

    def _nearest(self, asked: list[Ask], k: int, among: Among | None) -> list[Ranked]:
        found = []
        with self._snapshot() as connection:
            for ask in asked:
                made = masks(ask)
                limit = self._bound(connection, ask, made, k, among)
                radius = None if limit is None else radius_for(made, limit)
                found.append(_ranked(connection.execute(*ranked(self.table, made, radius, among, None, k)).fetchall()))
        return found

    def _bound(
        self, connection: psycopg.Connection[Any], ask: Ask, made: Masks, k: int, among: Among | None
    ) -> int | None:
        """A sum that the k-th nearest does not exceed: that of the k-th among some codes near the query."""
        for whole in (False, True):
            rows = connection.execute(*sampled(self.table, made, among, GUESSED_FROM * k, whole)).fetchall()
            if len(rows) >= k:
                packed = self._unpack([code for (code,) in rows])
                terms = CostTerms(ask.signs[None], ask.costs[None], np.ones(1), np.zeros(1))
                return int(np.partition(hamming.integer_distances(terms, 0, packed), k - 1)[k - 1])
        return None  # fewer than k items in all

    def _within(self, asked: list[Ask], limits: list[int], among: Among | None) -> list[Ranked]:
        found = []
        with self._snapshot() as connection:
            for ask, limit in zip(asked, limits, strict=True):
                made = masks(ask)
                sql = ranked(self.table, made, radius_for(made, limit), among, limit, None)
                found.append(_ranked(connection.execute(*sql).fetchall()))
        return found

    # ------------------------------------------------------------------ the connection

    def _unpack(self, codes: list[str]) -> NDArray[np.uint8]:
        """Codes of 0 and 1 as packed bits."""
        bits = np.frombuffer("".join(codes).encode(), np.uint8).reshape(len(codes), self.n_bits) - ord("0")
        return np.packbits(bits, axis=1)

    def _one(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        with self._snapshot() as connection:
            row = connection.execute(sql, values).fetchone()
        if row is None:
            raise EngineError(f"{self.address} was removed while it was open. Push the collection again.")
        return row[0]

    def _column(self, sql: str, values: tuple[Any, ...] = ()) -> I64:
        with self._snapshot() as connection:
            return np.array([value for (value,) in connection.execute(sql, values)], np.int64)

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """Changes that are made together or not at all."""
        with telling(self.address):
            self._reconnect()
            with self._connection.transaction():
                yield self._connection

    @contextmanager
    def _snapshot(self) -> Iterator[psycopg.Connection[Any]]:
        """Reading of one state, whatever others do meanwhile."""
        with self._transaction() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection

    def _reconnect(self) -> None:
        if self._connection.closed and self._connection.broken:
            self._connection = connect(self.address)


def connect(address: Address) -> psycopg.Connection[Any]:
    """A connection; the password is the client library's to find."""
    place = {"host": address.socket or address.host, "port": address.port, "user": address.user}
    given = {key: value for key, value in place.items() if value}
    with telling(address):
        connection: psycopg.Connection[Any] = require_psycopg().connect(
            dbname=address.database or "postgres", autocommit=True, connect_timeout=CONNECT_SECONDS,
            application_name="bitscale", keepalives_idle=30, **given,
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
        text = " ".join(str(error).split()) or type(error).__name__
        raise EngineError(f"{address}: {text[:300].rstrip('.')}. {_cure(text, error.sqlstate)}") from None


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


def table_of(address: Address) -> str:
    """The table of a collection; its name was checked, so it needs no quotes."""
    return f"bitscale_items_{address.name}"


def _ranked(rows: list[tuple[int, int]]) -> Ranked:
    array = np.array(rows, np.int64).reshape(-1, 2)
    return Ranked(array[:, 0].copy(), array[:, 1].copy())
