"""The tables of a collection, their format version, and how older formats become this one."""

from __future__ import annotations

from pathlib import Path

import apsw

from bitscale.collection.database import Database
from bitscale.errors import CorruptFile, FileError, NewerFormat

APPLICATION = 0x62736331  # "bsc1": says whose file it is
FORMAT = 2
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
""",
}


def create_tables(connection: apsw.Connection, format: int = FORMAT) -> None:
    """The tables of an empty collection, within the caller's transaction."""
    connection.execute(TABLES)
    for later in range(2, format + 1):
        connection.execute(SINCE[later])
    connection.execute("INSERT INTO state VALUES (1, 0, 0, 0, 0)")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {format}")


def format_of(connection: apsw.Connection, path: Path) -> int:
    """The format a database is in, if it is one of ours that can be read."""
    if connection.pragma("application_id") != APPLICATION:
        raise CorruptFile(f"{path} is no collection of bitscale, or is damaged. Restore it from a backup.")
    found = int(connection.pragma("user_version"))
    if found > FORMAT:
        raise NewerFormat(f"{path} has format {found}; this bitscale reads up to {FORMAT}. Upgrade bitscale.")
    if found < 1:
        raise CorruptFile(f"{path} has the impossible format {found}. Restore it from a backup.")
    return found


def bring_up_to_date(database: Database) -> None:
    """Migrate an older format, in one transaction; a reader asks for a writer to do it."""
    with database.reading() as connection:
        found = format_of(connection, database.path)
    if found == FORMAT:
        return
    if database.read_only:
        raise FileError(
            f"{database.path.parent} has the older format {found}. Open it for writing once, say by "
            f"`bitscale verify --migrate`, and it becomes format {FORMAT}."
        )
    with database.writing() as connection:
        for later in range(format_of(connection, database.path) + 1, FORMAT + 1):
            connection.execute(SINCE[later])
        connection.execute(f"PRAGMA user_version = {FORMAT}")
