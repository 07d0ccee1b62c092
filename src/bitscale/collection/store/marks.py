"""Marks: results that somebody called right or wrong for a query, kept until they are taken back or their items go.

The table is made with the first mark, in the same transaction; a collection that knows none has none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np

from bitscale.arrays import Float, Int
from bitscale.collection.store.rows import unpacked_ids
from bitscale.errors import CorruptFile

TABLE = """
CREATE TABLE IF NOT EXISTS marks (mark INTEGER PRIMARY KEY, model TEXT NOT NULL, made INTEGER NOT NULL, item INTEGER,
    relaxed BLOB NOT NULL, bits INTEGER NOT NULL, "right" BLOB NOT NULL, wrong BLOB NOT NULL, picture BLOB)
"""
COLUMNS = 'mark, model, made, item, relaxed, bits, "right", wrong, picture'


@dataclass(frozen=True, eq=False)
class Mark:
    """One query and which of its results were called right or wrong."""

    id: int
    model: str  # whose codes were searched
    made: int  # when, in nanoseconds since 1970
    item: int | None  # the query, where it is an item of the collection
    relaxed: Float  # the query before the sign, (q,)
    bits: int  # how many were compared
    right: tuple[int, ...]  # ids
    wrong: tuple[int, ...]
    picture: bytes | None = None  # the query's file, where somebody agreed to that


def insert(
    connection: apsw.Connection,
    model: str,
    item: int | None,
    relaxed: Float,
    bits: int,
    right: Sequence[int],
    wrong: Sequence[int],
    picture: bytes | None,
) -> int:
    """Keep a mark, within the caller's transaction; its number."""
    connection.execute(TABLE)
    row = (model, time.time_ns(), item, relaxed.astype("<f4").tobytes(), bits, _packed(right), _packed(wrong), picture)
    number = connection.execute("SELECT coalesce(max(mark), 0) + 1 FROM marks").get
    connection.execute(f"INSERT INTO marks ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (number, *row))
    return int(number)


def read(connection: apsw.Connection) -> list[Mark]:
    """All marks, oldest first."""
    if not _there(connection):
        return []
    rows: Any = connection.execute(f"SELECT {COLUMNS} FROM marks ORDER BY mark").fetchall()
    return [_mark_of(row) for row in rows]


def take_back(connection: apsw.Connection, mark: int) -> bool:
    """Forget a mark, within the caller's transaction; whether there was one."""
    if not _there(connection):
        return False
    connection.execute("DELETE FROM marks WHERE mark = ?", (mark,))
    return bool(connection.changes())


def forget_items(connection: apsw.Connection, ids: Int) -> None:
    """Forget marks on items that are removed, and marks whose query was one, within the caller's transaction."""
    if not len(ids) or not _there(connection):
        return
    gone = set(ids.tolist())
    for mark in read(connection):
        right, wrong = ([id for id in marked if id not in gone] for marked in (mark.right, mark.wrong))
        if mark.item in gone or not (right or wrong):
            connection.execute("DELETE FROM marks WHERE mark = ?", (mark.id,))
        elif len(right) + len(wrong) < len(mark.right) + len(mark.wrong):
            change = 'UPDATE marks SET "right" = ?, wrong = ? WHERE mark = ?'
            connection.execute(change, (_packed(right), _packed(wrong), mark.id))


def _there(connection: apsw.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'marks'").get)


def _packed(ids: Sequence[int]) -> bytes:
    return np.asarray(ids, "<i8").tobytes()


def _mark_of(row: Any) -> Mark:
    number, model, made, item, relaxed, bits, right, wrong, picture = row
    if len(relaxed) % 4:
        raise CorruptFile(f"mark {number} is cut short. Restore the collection from a backup.")
    values = np.frombuffer(relaxed, "<f4").astype(np.float64)
    right_ids, wrong_ids = (tuple(unpacked_ids(ids).tolist()) for ids in (right, wrong))
    return Mark(number, model, made, item, values, bits, right_ids, wrong_ids, picture)
