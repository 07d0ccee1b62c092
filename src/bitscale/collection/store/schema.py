"""The tables of a collection, their format version, and how older formats become this one."""

from __future__ import annotations

import secrets
from pathlib import Path

import apsw
import numpy as np

from bitscale.collection.store.database import PAGE, Database
from bitscale.collection.store.log_check import summed
from bitscale.errors import CorruptFile, FileError, NewerFormat, cannot_read

APPLICATION = 0x62736331  # "bsc1": says whose file it is
FORMAT = 2
FORMATS = 256  # user_version holds the format and, times this, where the collection comes from
ORIGINS = 1 << 22
USER_VERSION = 60  # its place in a database file
DATABASE = "items.db"  # its name in the collection's folder

TABLES = """
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), generation INTEGER NOT NULL, seq INTEGER NOT NULL,
    changes INTEGER NOT NULL, next_id INTEGER NOT NULL);
CREATE TABLE manifest (generation INTEGER PRIMARY KEY, body TEXT NOT NULL, dead BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE log (seq INTEGER PRIMARY KEY, ids BLOB NOT NULL, codes BLOB);
CREATE TABLE items (id INTEGER PRIMARY KEY, path, content BLOB, size INTEGER NOT NULL, modified INTEGER NOT NULL,
    labels TEXT, metadata TEXT);
CREATE TABLE paths (key INTEGER PRIMARY KEY, id INTEGER NOT NULL);
"""
SINCE = {  # what each later format brought
    2: """
CREATE TABLE notes (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE skipped (path PRIMARY KEY, size INTEGER NOT NULL, modified INTEGER NOT NULL, reason TEXT NOT NULL)
    WITHOUT ROWID;
CREATE TABLE staged (batch INTEGER PRIMARY KEY, model TEXT NOT NULL, ids BLOB NOT NULL, codes BLOB NOT NULL);
ALTER TABLE state ADD COLUMN origin INTEGER NOT NULL DEFAULT 0;
""",
}


def create_tables(connection: apsw.Connection, format: int = FORMAT) -> None:
    """The tables of an empty collection, within the caller's transaction."""
    connection.execute(TABLES)
    for later in range(2, format + 1):
        connection.execute(SINCE[later])
    connection.execute("INSERT INTO state (one, generation, seq, changes, next_id) VALUES (1, 0, 0, 0, 0)")
    origin = secrets.randbelow(ORIGINS) if format >= 2 else 0
    if origin:
        connection.execute("UPDATE state SET origin = ?", (origin,))
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {origin * FORMATS + format}")


def format_of(connection: apsw.Connection, path: Path) -> int:
    """The format a database is in, if it is one of ours that can be read."""
    if connection.pragma("application_id") != APPLICATION:
        raise CorruptFile(f"{path} is no collection of bitscale, or is damaged. Restore it from a backup.")
    format = int(connection.pragma("user_version")) % FORMATS
    if format > FORMAT:
        raise NewerFormat(f"{path} has format {format}; this bitscale reads up to {FORMAT}. Upgrade bitscale.")
    if format < 1:
        raise CorruptFile(f"{path} has the impossible format {format}. Restore it from a backup.")
    return format


def bring_up_to_date(database: Database) -> None:
    """Migrate an older format, in one transaction; a reader asks for a writer to do it."""
    with database.reading() as connection:
        before = format_of(connection, database.path)
    if before == FORMAT:
        return
    if database.read_only:
        raise FileError(
            f"{database.path.parent} has the older format {before}. Open it for writing once, say by "
            f"`bitscale verify --migrate`, and it becomes format {FORMAT}."
        )
    with database.writing() as connection:
        before = format_of(connection, database.path)
        for later in range(before + 1, FORMAT + 1):
            connection.execute(SINCE[later])
        connection.execute(f"PRAGMA user_version = {int(connection.pragma('user_version')) - before + FORMAT}")


def check_origin(database: Database) -> None:
    """Refuse a log that belongs to another collection: SQLite would lay its pages over this one's.

    A random number of the collection stands in the database file's first page, and in the row of `state`, which every
    commit writes: so each log carries it too.
    """
    with database.reading() as connection:
        seen = connection.execute("SELECT origin FROM state").get
    written = _origin_in(database.path)
    if written is not None and seen != written:
        log = f"{database.path}-wal"
        raise CorruptFile(f"{log} belongs to another collection. Put the right one back, or restore a backup.")


def _origin_in(path: Path) -> int | None:
    """The number in a database file's first page; None while that page is being written anew, from a log of its own."""
    try:
        with path.open("rb") as file:
            raw = file.read(PAGE)
    except OSError as error:
        raise cannot_read(path, error) from error
    if len(raw) < PAGE or not raw.startswith(b"SQLite format 3"):  # zeros have a right checksum
        return None
    page = np.frombuffer(raw, "<u4").astype(np.uint32)
    if (summed(page[None, :-2], np.zeros((1, 2), np.uint32))[0] != page[-2:]).any():
        return None
    return int(page[USER_VERSION // 4 : USER_VERSION // 4 + 1].byteswap()[0]) // FORMATS
