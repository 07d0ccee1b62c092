"""Uploaded pictures: kept by content in the collection's own folder, and gone with their items.

    photos.bsc/uploads/9f/9f86d0...0a08.jpg     named by the SHA-256 of its bytes

A picture is written and synced first, its item is committed afterwards; when an item goes, the commit comes first. A
mark stands in the folder meanwhile: where a writer finds one, a crash may have left files that no item names, and it
removes them. Items keep absolute paths, as all do; when the collection's folder has another name by now, the next
writer, or a backup, sets them right.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import apsw

from bitscale.atomic import sync_folder, write_whole
from bitscale.collection.items import path_key, read_path, stored_path
from bitscale.collection.store.database import Database
from bitscale.collection.store.rows import below, count_change, find_path, is_below
from bitscale.errors import DataError, FileError

UPLOADS = "uploads"
PLACE = "uploads"  # the note that keeps where the folder was when items were last added
MARK = ".unfinished"
BLOCK = 1 << 20  # bytes copied at a time
ENDINGS = {"JPEG": ".jpg", "TIFF": ".tif", "HEIF": ".heic"}  # of formats whose name is not their ending


def place_of(folder: Path, content: bytes, format: str) -> Path:
    """Where a picture of this content is kept."""
    name = content.hex()
    return folder / UPLOADS / name[:2] / f"{name}{ENDINGS.get(format, '.' + format.lower())}"


def is_upload(folder: Path, path: str) -> bool:
    """Whether a picture is one that was uploaded into the collection in `folder`."""
    return path.startswith(f"{folder}{os.sep}{UPLOADS}{os.sep}")


@contextmanager
def marked(folder: Path) -> Iterator[None]:
    """A block that may leave a file without an item when it is cut short; a mark in the folder says so meanwhile."""
    mark = folder / UPLOADS / MARK
    with _told(folder):
        (folder / UPLOADS).mkdir(exist_ok=True)
        mark.touch()
    yield
    with _told(folder):
        mark.unlink(missing_ok=True)


def keep(source: str, place: Path, content: bytes) -> os.stat_result:
    """Copy a picture to where it is kept, on disk when this returns; refuse one that holds another content by now."""

    def copy(out: IO[bytes]) -> None:
        digest = hashlib.sha256()
        with open(source, "rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
                out.write(block)
        if digest.digest() != content:
            raise DataError(f"{source} has changed while it was taken in. Nothing was kept; upload it again.")

    with _told(place.parent.parent.parent):
        if not place.parent.is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
            sync_folder(place.parent.parent)
            sync_folder(place.parent.parent.parent)
        write_whole(place, copy)
        return place.stat()


def uploaded(connection: apsw.Connection, folder: Path, ids: list[int]) -> list[str]:
    """The files of the items among these that were uploaded."""
    if not (folder / UPLOADS).is_dir():
        return []
    paths = []
    for id in ids:
        rows: Any = connection.execute("SELECT path FROM items WHERE id = ?", (id,)).fetchall()
        paths += [path for row in rows if is_upload(folder, path := read_path(row[0]))]
    return paths


def discard(folder: Path, paths: list[str]) -> None:
    """Delete pictures whose items are gone."""
    with _told(folder):
        for path in paths:
            Path(path).unlink(missing_ok=True)
        for parent in {os.path.dirname(path) for path in paths}:
            sync_folder(Path(parent))


def tidy_uploads(folder: Path, database: Database, *, whole: bool = False) -> list[str]:
    """Remove files that no item names, where something was cut short, or (`whole`) in any case."""
    home = folder / UPLOADS
    if not ((home / MARK).exists() or (whole and home.is_dir())):
        return []
    removed = []
    with _told(folder):
        for place in (one for part in home.iterdir() if part.is_dir() for one in part.iterdir()):
            with database.reading() as connection:
                named = find_path(connection, str(place)) is not None
            if not named:
                place.unlink(missing_ok=True)
                removed.append(place.name)
        (home / MARK).unlink(missing_ok=True)
    return removed


def bring_home(database: Database, folder: Path) -> None:
    """Set the paths of uploaded pictures right, where the collection's folder has moved since they were written."""
    with database.reading() as connection:
        known: Any = connection.execute("SELECT value FROM notes WHERE key = ?", (PLACE,)).get
    if known is not None and known != str(folder):
        with database.writing() as connection:
            move_uploads(connection, known, str(folder))


def move_uploads(connection: apsw.Connection, before: str, after: str) -> int:
    """Rename the folder of uploaded pictures in the rows, within the caller's transaction; how many there were."""
    old, new = os.path.join(before, UPLOADS), os.path.join(after, UPLOADS)
    sql, values = below(old)
    rows: Any = connection.execute(f"SELECT id, path FROM items WHERE {sql}", values).fetchall()
    moved = [(id, path, new + path[len(old) :]) for id, stored in rows if is_below(path := read_path(stored), old)]
    for id, path, now in moved:
        connection.execute("DELETE FROM paths WHERE key = ? AND id = ?", (path_key(path), id))
        connection.execute("UPDATE items SET path = ? WHERE id = ?", (stored_path(now), id))
        connection.execute("INSERT INTO paths VALUES (?, ?)", (path_key(now), id))
    connection.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (PLACE, after))
    count_change(connection)
    return len(moved)


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """Turn errors of the file system into ones that name the cure."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"uploaded pictures in {folder} cannot be written or removed: {error.strerror}. Check the disk, its free "
            "space and the folder's permissions; the collection itself is sound."
        ) from error
