"""Looks and EXIF of items, which go with the item; and labels and metadata kept of removed pictures.

These tables are made by the first writer that needs them. Collections without them work as before, earlier versions
ignore them, and a trigger sees to it that whoever deletes an item deletes what was seen of it.

    seen    id -> width, height, EXIF (JSON) and look of the whole picture (`pictures.look`)
    words   content -> labels and metadata of a picture that was removed, until `compact`: they come back with it
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw

from bitscale.collection.where import EXIF
from bitscale.looks.look import Looks, looks_of
from bitscale.pictures.look import LOOK_BYTES

TABLES = """
CREATE TABLE IF NOT EXISTS seen (id INTEGER PRIMARY KEY, width INTEGER NOT NULL, height INTEGER NOT NULL, exif TEXT,
    look BLOB);
CREATE TRIGGER IF NOT EXISTS unseen AFTER DELETE ON items BEGIN DELETE FROM seen WHERE id = old.id; END;
CREATE TABLE IF NOT EXISTS words (content BLOB PRIMARY KEY, labels TEXT, metadata TEXT) WITHOUT ROWID;
"""
AT_ONCE = 256  # looks read with one statement
UNFINISHED_LOOKS = "looks"  # what unfinished work is called in which looks wait that no collection keeps


@dataclass(frozen=True)
class Seen:
    """Size, look and EXIF of a picture, taken while it was decoded."""

    width: int
    height: int
    look: bytes
    exif: Mapping[str, Any]


class SeenRow(NamedTuple):
    """A row of `seen`."""

    id: int
    width: int
    height: int
    exif: str | None
    look: bytes | None


def seen_row(id: int, seen: Seen) -> SeenRow:
    """Size, look and EXIF as a row; an empty look becomes NULL."""
    exif = json.dumps(dict(seen.exif), sort_keys=True) if seen.exif else None
    look = seen.look if len(seen.look) == LOOK_BYTES else None
    return SeenRow(id, seen.width, seen.height, exif, look)


def has_seen(connection: apsw.Connection) -> bool:
    """Whether the tables are there."""
    return bool(connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'seen'").get)


def exif_column(connection: apsw.Connection, looked: bool | None = None) -> str:
    """An item's EXIF in SQL, NULL where the table is missing; `looked`: whether it is there, where that is known."""
    return EXIF if (has_seen(connection) if looked is None else looked) else "NULL"


def write_seen(connection: apsw.Connection, rows: Sequence[SeenRow]) -> None:
    """Write rows of looks and EXIF, within the caller's transaction."""
    if rows:
        connection.execute(TABLES)
        connection.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?)", rows)


def read_looks(connection: apsw.Connection, ids: Iterable[int]) -> tuple[list[int], Looks]:
    """The looks of items as far as they are kept, and the ids they are of."""
    there: list[int] = []
    blobs: list[bytes] = []
    sizes: list[tuple[int, int]] = []
    wanted = list(ids) if has_seen(connection) else []
    for start in range(0, len(wanted), AT_ONCE):
        chunk = wanted[start : start + AT_ONCE]
        query = f"SELECT id, width, height, look FROM seen WHERE look IS NOT NULL AND id IN ({_places(chunk)})"
        rows: Any = connection.execute(query, chunk + chunk[-1:] * (_padded(len(chunk)) - len(chunk))).fetchall()
        for id, width, height, look in rows:
            there.append(id)
            blobs.append(look)
            sizes.append((width, height))
    return there, looks_of(blobs, sizes)


def _padded(n: int) -> int:
    """The next power of two: few lengths, so that the same statements are met again."""
    return 1 << (n - 1).bit_length()


def _places(some: Sequence[int]) -> str:
    return ", ".join("?" * _padded(len(some)))


def read_seen(connection: apsw.Connection, ids: Iterable[int]) -> dict[int, Seen]:
    """Sizes and looks of items, as far as they are kept; without EXIF, which stands with the item."""
    there, looks = read_looks(connection, ids)
    rows = zip(there, looks.width.tolist(), looks.height.tolist(), looks.raw, strict=True)
    return {id: Seen(width, height, raw.tobytes(), {}) for id, width, height, raw in rows}


def read_sizes(connection: apsw.Connection) -> dict[int, tuple[int, int]]:
    """Width and height of every item of which a look is kept."""
    if not has_seen(connection):
        return {}
    rows: Any = connection.execute("SELECT id, width, height FROM seen WHERE look IS NOT NULL")
    return {id: (width, height) for id, width, height in rows}


# ---------------------------------------------------------------------- words of removed pictures


def keep_words(connection: apsw.Connection, rows: Sequence[tuple[bytes, str | None, str | None]]) -> None:
    """Keep labels and metadata of removed pictures by their content, within the caller's transaction."""
    if rows:
        connection.execute(TABLES)
        connection.executemany("INSERT OR REPLACE INTO words VALUES (?, ?, ?)", rows)


def kept_words(connection: apsw.Connection, content: bytes) -> tuple[str | None, str | None] | None:
    """Labels and metadata, as they are stored, that a removed picture of this content had."""
    if not has_seen(connection):
        return None
    rows: Any = connection.execute("SELECT labels, metadata FROM words WHERE content = ?", (content,)).fetchall()
    return rows[0] if rows else None


def forget_words(connection: apsw.Connection) -> bool:
    """Drop all that is kept of removed pictures, within the caller's transaction; whether there was anything."""
    if not has_seen(connection):
        return False
    connection.execute("DELETE FROM words")
    gone = connection.changes()
    connection.execute("DELETE FROM seen WHERE id NOT IN (SELECT id FROM items)")
    return bool(gone + connection.changes())
