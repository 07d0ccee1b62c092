"""What PostgreSQL stores of an index: a table of codes, one of what is beside them, a row of facts; in transactions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import Codes
from bitscale.errors import EngineError, NotInEngine
from bitscale.index.base import I64, check_ids, refuse_known
from bitscale.index.engines.address import Address, parse_address
from bitscale.index.engines.forms import FORMAT, Among, Beside, Facts, Stored, other_format
from bitscale.index.engines.postgres_copy import code_rows, item_rows
from bitscale.index.engines.postgres_server import Connections, connect, require_psycopg, telling
from bitscale.index.engines.postgres_sql import among_sql
from bitscale.index.engines.remote import RemoteIndex

if TYPE_CHECKING:
    import psycopg

COLLECTIONS = "bitscale_collections"
CREATE = f"""CREATE TABLE IF NOT EXISTS {COLLECTIONS} (
    name text PRIMARY KEY, format int NOT NULL, bit_weights float8[] NOT NULL, model text, origin text,
    next_id bigint NOT NULL DEFAULT 0, next_stamp bigint NOT NULL DEFAULT 0, changes bigint NOT NULL DEFAULT 0,
    notes json NOT NULL DEFAULT '{{}}')"""


class PostgresItems(RemoteIndex):
    """Tables of a PostgreSQL database."""

    def __init__(self, address: Address, facts: Facts, connection: psycopg.Connection[Any]) -> None:
        super().__init__(address, facts)
        self._connections = Connections(address, connection)
        self.table, self.items = table_of(address), items_of(address)

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
                f" code bit({len(facts.bit_weights)}) NOT NULL)"
            )
            connection.execute(
                f"CREATE TABLE {items_of(place)} (id bigint PRIMARY KEY, digest bigint NOT NULL, item json NOT NULL,"
                " facts jsonb NOT NULL, look bytea)"
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
        if row[0] != FORMAT:
            connection.close()
            raise EngineError(f"{place} {other_format(row[0])}")
        return cls(place, Facts(tuple(row[1]), row[2], row[3]), connection)

    def drop(self) -> None:
        """Remove the collection from the engine, items and all."""
        with self._transaction() as connection:
            connection.execute(f"DROP TABLE {self.table}, {self.items}")
            connection.execute(f"DELETE FROM {COLLECTIONS} WHERE name = %s", (self.address.name,))

    def close(self) -> None:
        """End the connection; what is stored stays."""
        self._connections.close()

    # ------------------------------------------------------------------ contents

    def __len__(self) -> int:
        return int(self._one(f"SELECT count(*) FROM {self.table}"))

    def ids(self) -> I64:
        """The ids of all items, ascending."""
        return self._column(f"SELECT id FROM {self.table} ORDER BY id")

    def counted(self) -> tuple[int, int]:
        """The next id, and how many changes there were."""
        asked = f"SELECT next_id, changes FROM {COLLECTIONS} WHERE name = %s"
        next_id, changes = self._row(asked, (self.address.name,))
        return next_id, changes

    def _stamp(self) -> int:
        return int(self._one(f"SELECT next_stamp FROM {COLLECTIONS} WHERE name = %s", (self.address.name,)))

    def _known(self, ids: I64) -> I64:
        return self._column(f"SELECT id FROM {self.table} WHERE id = ANY(%s) ORDER BY id", (ids.tolist(),))

    def _packed(self, ids: I64) -> tuple[I64, NDArray[np.uint8]]:
        with self._snapshot() as connection:
            asked = f"SELECT id, code::text FROM {self.table} WHERE id = ANY(%s)"
            rows = connection.execute(asked, (ids.tolist(),)).fetchall()
        return np.array([id for id, _ in rows], np.int64), self._unpack([code for _, code in rows])

    def put(self, codes: Codes, ids: I64, beside: Beside) -> None:
        """Add codes under their ids, each with a text beside it; rows are made ready while another batch goes in."""
        self.check_codes(codes)
        rows = item_rows(check_ids(ids, len(codes)), beside)
        with self._adding:
            self._insert(codes.packed, ids, rows)

    def _insert(self, packed: NDArray[np.uint8], ids: I64 | None, beside: bytes | None = None) -> I64:
        psycopg, taken = require_psycopg(), False
        with self._transaction() as connection:
            next_id, stamp = self._counters(connection)
            new = np.arange(next_id, next_id + len(packed), dtype=np.int64) if ids is None else ids
            try:
                _copy(connection, self.table, code_rows(packed, new, stamp, self.n_bits))
                if beside is not None:
                    _copy(connection, self.items, beside)
            except psycopg.errors.UniqueViolation:
                taken = True
                raise psycopg.Rollback from None
            connection.execute(
                f"UPDATE {COLLECTIONS} SET next_id = greatest(next_id, %s), next_stamp = %s, changes = changes + 1"
                " WHERE name = %s", (int(new.max()) + 1, stamp + 1, self.address.name),
            )  # fmt: skip
        if taken:
            refuse_known(self._known(np.unique(new)))
            raise EngineError(f"{self.address} was changed by another meanwhile. Run the same command again.")
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
            self._count_change(connection)
            connection.execute(f"DELETE FROM {self.items} WHERE id = ANY(%s)", (ids.tolist(),))
            return connection.execute(f"DELETE FROM {self.table} WHERE id = ANY(%s)", (ids.tolist(),)).rowcount

    def _count_change(self, connection: psycopg.Connection[Any]) -> None:
        asked = f"UPDATE {COLLECTIONS} SET changes = changes + 1 WHERE name = %s"
        connection.execute(asked, (self.address.name,))

    # ------------------------------------------------------------------ what is beside the codes

    def replace_beside(self, ids: I64, beside: Beside) -> None:
        """Keep other texts beside items that are there."""
        with self._transaction() as connection:
            self._count_change(connection)
            there = f"SELECT id FROM {self.table} WHERE id = ANY(%s) ORDER BY id"
            known = {id for (id,) in connection.execute(there, (ids.tolist(),))}
            kept = np.array([id in known for id in ids.tolist()], np.bool_)
            connection.execute(f"DELETE FROM {self.items} WHERE id = ANY(%s)", (ids.tolist(),))
            _copy(connection, self.items, item_rows(ids[kept], beside.some(np.flatnonzero(kept))))

    def texts(self, ids: I64) -> dict[int, str]:
        """The texts beside some items, by id."""
        with self._snapshot() as connection:
            asked = f"SELECT id, item::text FROM {self.items} WHERE id = ANY(%s)"
            return dict(connection.execute(asked, (ids.tolist(),)).fetchall())

    def rows(self, ids: I64) -> dict[int, Stored]:
        """All that is stored of some items that are there, by id."""
        asked = f"SELECT id, code::text, item::text, look FROM {self.table} LEFT JOIN {self.items} USING (id)"
        with self._snapshot() as connection:
            rows = connection.execute(f"{asked} WHERE id = ANY(%s)", (ids.tolist(),)).fetchall()
        packed = self._unpack([row[1] for row in rows])
        return {row[0]: Stored(code, row[2], row[3]) for row, code in zip(rows, packed, strict=True)}

    def looks(self, ids: I64) -> dict[int, bytes]:
        """The looks beside some items that have one, by id."""
        with self._snapshot() as connection:
            asked = f"SELECT id, look FROM {self.items} WHERE id = ANY(%s) AND look IS NOT NULL"
            return dict(connection.execute(asked, (ids.tolist(),)).fetchall())

    def page(self, after: int, n: int, among: Among | None = None) -> list[tuple[int, str]]:
        """The ids and texts of the next n items after an id."""
        where, values = among_sql(among, self.items)
        with self._snapshot() as connection:
            asked = f"SELECT id, item::text FROM {self.items} WHERE id > %s AND {where} ORDER BY id LIMIT %s"
            return connection.execute(asked, [after, *values, n]).fetchall()

    def select(self, among: Among) -> I64:
        """The ids of items for which a condition holds, ascending."""
        sql, values = among.condition
        return self._column(f"SELECT id FROM {self.items} WHERE {sql} ORDER BY id", tuple(values))

    def count(self, among: Among) -> int:
        """How many items there are for which a condition holds."""
        sql, values = among.condition
        return int(self._one(f"SELECT count(*) FROM {self.items} WHERE {sql}", tuple(values)))

    def digests(self) -> tuple[I64, I64]:
        """The ids of all items, ascending, and the digest of what is beside each one."""
        with self._snapshot() as connection:
            asked = f"SELECT id, coalesce(digest, 0) FROM {self.table} LEFT JOIN {self.items} USING (id) ORDER BY id"
            rows = connection.execute(asked).fetchall()
        array = np.array(rows, np.int64).reshape(-1, 2)
        return array[:, 0].copy(), array[:, 1].copy()

    def note(self, notes: Mapping[str, str]) -> None:
        """Keep some words with the collection, besides those it has."""
        with self._transaction() as connection:
            self._counters(connection)
            known = f"SELECT notes FROM {COLLECTIONS} WHERE name = %s"
            ((before,),) = connection.execute(known, (self.address.name,)).fetchall()
            connection.execute(
                f"UPDATE {COLLECTIONS} SET notes = %s, changes = changes + 1 WHERE name = %s",
                (json.dumps({**before, **notes}), self.address.name),
            )

    def notes(self) -> dict[str, str]:
        """The words kept with the collection."""
        return dict(self._one(f"SELECT notes FROM {COLLECTIONS} WHERE name = %s", (self.address.name,)))

    def forget_removed(self) -> None:
        """Write the tables anew without removed rows."""
        with self._connections.one() as connection:
            for table in (self.table, self.items):
                connection.execute(f"VACUUM FULL {table}")

    # ------------------------------------------------------------------ the connection

    def _unpack(self, codes: list[str]) -> NDArray[np.uint8]:
        """Codes of 0 and 1 as packed bits."""
        bits = np.frombuffer("".join(codes).encode(), np.uint8).reshape(len(codes), self.n_bits) - ord("0")
        return np.packbits(bits, axis=1)

    def _one(self, sql: str, values: tuple[Any, ...] = ()) -> Any:
        return self._row(sql, values)[0]

    def _row(self, sql: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        with self._snapshot() as connection:
            row = connection.execute(sql, values).fetchone()
        if row is None:
            raise EngineError(f"{self.address} was removed while it was open. Push the collection again.")
        return tuple(row)

    def _column(self, sql: str, values: tuple[Any, ...] = ()) -> I64:
        with self._snapshot() as connection:
            return np.array([value for (value,) in connection.execute(sql, values)], np.int64)

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """Changes that are made together or not at all."""
        with self._connections.one() as connection, connection.transaction():
            yield connection

    @contextmanager
    def _snapshot(self) -> Iterator[psycopg.Connection[Any]]:
        """A transaction that reads one state of the tables, whatever others write meanwhile."""
        with self._transaction() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection


def _copy(connection: psycopg.Connection[Any], table: str, rows: bytes) -> None:
    """Add rows in COPY's binary form to a table."""
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT binary)") as copy:
        copy.write(rows)


def table_of(address: Address) -> str:
    """The table of a collection's codes; its name was checked, so it needs no quotes."""
    return f"bitscale_codes_{address.name}"


def items_of(address: Address) -> str:
    """The table of what is beside the codes, apart from them so that a search reads codes alone."""
    return f"bitscale_items_{address.name}"
