"""The rows of a collection: items, the log of changes to its codes, and the one row that says where all stands."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Int
from bitscale.collection.items import (
    COLUMNS,
    LARGEST,
    Item,
    Row,
    Skipped,
    item_of,
    path_key,
    read_path,
    stored_path,
)
from bitscale.collection.store.seen import exif_column, keep_words
from bitscale.errors import CorruptFile, InputError

U8 = NDArray[np.uint8]
AT_ONCE = 256  # items read by one statement
TEXTS = "texts"  # the note that counts changes to rows alone


class State(NamedTuple):
    """Where a collection stands; readers look at it before every search."""

    generation: int  # of the head manifest
    seq: int  # the last change in the log
    changes: int  # commits so far
    next_id: int


class Change(NamedTuple):
    """A line of the log: items added with their codes, or (codes None) removed."""

    seq: int
    ids: Int
    codes: U8 | None


def read_state(connection: apsw.Connection) -> State:
    """The one row of `state`: generation, last change, number of commits, and the next id."""
    row = connection.execute("SELECT generation, seq, changes, next_id FROM state").get
    if row is None:
        raise lost_state()
    return State(*row)


def lost_state() -> CorruptFile:
    """The error that the one row of `state`, which says where a collection stands, is missing."""
    return CorruptFile("the database has lost its state. Restore the collection from a backup.")


def write_state(connection: apsw.Connection, state: State) -> None:
    """Overwrite the one row of `state`, within the caller's transaction."""
    connection.execute("UPDATE state SET generation = ?, seq = ?, changes = ?, next_id = ?", state)


def count_change(connection: apsw.Connection) -> None:
    """Note a change that moves nothing else on, within the caller's transaction: every commit writes the state."""
    connection.execute("UPDATE state SET changes = changes + 1")


def count_texts(connection: apsw.Connection) -> None:
    """Count a change of texts, which the log of codes does not hold, within the caller's transaction."""
    connection.execute(
        "INSERT INTO notes VALUES (?, '1') ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1", (TEXTS,)
    )


# ---------------------------------------------------------------------- the log


def write_change(connection: apsw.Connection, seq: int, ids: Int, codes: U8 | None) -> None:
    """Add a line to the log, within the caller's transaction."""
    packed = None if codes is None else codes.tobytes()
    connection.execute("INSERT INTO log VALUES (?, ?, ?)", (seq, ids.astype("<i8").tobytes(), packed))


def read_changes(connection: apsw.Connection, after: int, n_bytes: int) -> Iterator[Change]:
    """The lines of the log after a change, in order."""
    for seq, ids, codes in connection.execute("SELECT seq, ids, codes FROM log WHERE seq > ? ORDER BY seq", (after,)):
        numbers = unpacked_ids(ids)
        yield Change(seq, numbers, None if codes is None else unpacked_codes(codes, len(numbers), n_bytes))


def unpacked_ids(blob: Any) -> Int:
    """Ids from the bytes they are stored as."""
    if len(blob) % 8:
        raise CorruptFile("ids are cut short in the log. Restore the collection from a backup.")
    return np.frombuffer(blob, "<i8").astype(np.int64)


def unpacked_codes(blob: Any, n: int, n_bytes: int) -> U8:
    """Codes (n, n_bytes) from the bytes they are stored as."""
    if len(blob) != n * n_bytes:
        raise CorruptFile("codes are cut short in the log. Restore the collection from a backup.")
    return np.frombuffer(blob, np.uint8).reshape(n, n_bytes)


# ---------------------------------------------------------------------- items


def insert_items(connection: apsw.Connection, rows: Sequence[Row], keys: Iterable[tuple[int, int]]) -> None:
    """Add rows and the (key, id) of their paths, within the caller's transaction."""
    connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    keys = sorted(keys)
    try:
        connection.executemany("INSERT INTO paths VALUES (?, ?)", keys)
    except apsw.ConstraintError:
        raise InputError(_already_there(connection, rows)) from None


def _already_there(connection: apsw.Connection, rows: Sequence[Row]) -> str:
    seen: set[str] = set()
    for row in rows:
        path = read_path(row[1])
        known = find_path(connection, path) if path else None
        if known is not None and known < rows[0][0]:
            return f"{path} is already in this collection, as item {known}. Remove it first, or update it."
        if path in seen:
            return f"{path} is given twice. Give every item a path of its own."
        seen.add(path)
    return "two paths share a key, which happens to one pair in 10^19. Rename one of them."


def replace_item(connection: apsw.Connection, row: Row) -> None:
    """Write an item's row anew, its path included, within the caller's transaction; its content stays what it is."""
    known: Any = connection.execute("SELECT path, content FROM items WHERE id = ?", (row[0],)).fetchall()
    if not known:
        raise InputError(f"there is no item {row[0]} in this collection.")
    [(before, content)] = known
    if None not in (content, row[2]) and content != row[2]:
        raise InputError(
            f"item {row[0]} cannot be given another content: its code belongs to the picture it has. Remove it, and "
            "add the new picture with a code of its own."
        )
    connection.execute(
        "UPDATE items SET path = ?, content = ?, size = ?, modified = ?, labels = ?, metadata = ? WHERE id = ?",
        (*row[1:], row[0]),
    )
    if before != row[1]:
        connection.execute("DELETE FROM paths WHERE id = ? AND key = ?", (row[0], path_key(read_path(before))))
        if row[1] is not None:
            try:
                connection.execute("INSERT INTO paths VALUES (?, ?)", (path_key(read_path(row[1])), row[0]))
            except apsw.ConstraintError:
                raise InputError(f"{read_path(row[1])} is already in this collection. Remove it first.") from None


def write_words(connection: apsw.Connection, id: int, labels: str | None, metadata: str | None) -> None:
    """Give an item other labels and metadata, within the caller's transaction."""
    connection.execute("UPDATE items SET labels = ?, metadata = ? WHERE id = ?", (labels, metadata, id))


def delete_items(connection: apsw.Connection, ids: Int) -> Int:
    """Delete some items, and that their files could not be read again, within the caller's transaction; returns the ids
    that were there. What their owner said of them is kept for the case that they come back."""
    gone, words = [], []
    query = "DELETE FROM items WHERE id = ? RETURNING path, content, labels, metadata"
    for id in ids.tolist():
        deleted: Any = connection.execute(query, (id,)).fetchall()
        for path, content, labels, metadata in deleted:
            gone.append(id)
            if content is not None and (labels is not None or metadata is not None):
                words.append((content, labels, metadata))
            if path is not None:
                connection.execute("DELETE FROM paths WHERE key = ? AND id = ?", (path_key(read_path(path)), id))
                connection.execute("DELETE FROM skipped WHERE path = ?", (path,))
    keep_words(connection, words)
    return np.array(gone, np.int64)


def find_path(connection: apsw.Connection, path: str) -> int | None:
    """The id of the item at a path."""
    query = "SELECT items.id, items.path FROM paths JOIN items USING (id) WHERE paths.key = ?"
    rows: Any = connection.execute(query, (path_key(path),)).fetchall()
    for id, stored in rows:
        if read_path(stored) == path:
            return int(id)
    return None


def read_items(connection: apsw.Connection, ids: Sequence[int], looked: bool | None = None) -> dict[int, Item]:
    """Some items by id; unknown ids are left out. `looked`: whether anything was seen of items, where that is known."""
    wanted = [int(id) for id in ids if 0 <= id <= LARGEST]
    known = {item.id: item for item in map(item_of, read_rows(connection, wanted, looked))}
    return {id: known[id] for id in wanted if id in known}


def read_rows(connection: apsw.Connection, wanted: Sequence[int], looked: bool | None = None) -> list[Any]:
    """The rows of some items with their EXIF, in any order; unknown ids are left out."""
    exif, rows = exif_column(connection, looked), []
    if len(wanted) > AT_ONCE and [*wanted] == [*range(wanted[0], wanted[0] + len(wanted))]:  # as a push asks
        query = f"SELECT {COLUMNS}, {exif} FROM items WHERE id BETWEEN ? AND ?"
        return connection.execute(query, (wanted[0], wanted[-1])).fetchall()
    for start in range(0, len(wanted), AT_ONCE):
        chunk = list(wanted[start : start + AT_ONCE])
        places = 1 << (len(chunk) - 1).bit_length()  # few lengths, so that the same statements are met again
        query = f"SELECT {COLUMNS}, {exif} FROM items WHERE id IN ({', '.join('?' * places)})"
        rows += connection.execute(query, chunk + chunk[-1:] * (places - len(chunk))).fetchall()
    return rows


def read_with_state(connection: apsw.Connection, ids: Sequence[int]) -> tuple[State, dict[int, Item]]:
    """Where the collection stands, and some items without their EXIF: one version, by one statement."""
    if len(ids) > AT_ONCE:
        raise ValueError(f"at most {AT_ONCE} items can be read by one statement")
    places = 1 << max(len(ids) - 1, 0).bit_length()
    query = (
        f"SELECT generation, seq, changes, next_id, {COLUMNS}, NULL FROM state "
        f"LEFT JOIN items ON items.id IN ({', '.join('?' * places)})"
    )
    rows: Any = connection.execute(query, [*ids, *(-1 for _ in range(places - len(ids)))]).fetchall()
    if not rows:
        raise lost_state()
    known = {row[4]: item_of(row[4:]) for row in rows if row[4] is not None}
    return State(*rows[0][:4]), {id: known[id] for id in ids if id in known}


def iterate_items(
    connection: apsw.Connection, after: int, n: int, sql: str = "1", values: tuple[Any, ...] = ()
) -> list[Item]:
    """The next `n` items by id for which a condition holds."""
    query = f"SELECT {COLUMNS}, {exif_column(connection)} FROM items WHERE id > ? AND ({sql}) ORDER BY id LIMIT ?"
    return [item_of(row) for row in connection.execute(query, (after, *values, n)).fetchall()]


def below(root: str, column: str = "path") -> tuple[str, tuple[str, ...]]:
    """The condition that a path is `root` or below it; paths that are no text always pass."""
    if not root:
        return f"{column} IS NOT NULL", ()
    if isinstance(stored_path(root), bytes):  # then no path below it is text
        return f"typeof({column}) = 'blob'", ()
    folder = root.rstrip(os.sep)
    condition = f"({column} = ? OR ({column} >= ? AND {column} < ?) OR typeof({column}) = 'blob')"
    return condition, (root, folder + os.sep, folder + chr(ord(os.sep) + 1))


def is_below(path: str, root: str) -> bool:
    """Whether a path is `root` or below it."""
    return not root or path == root or path.startswith(root.rstrip(os.sep) + os.sep)


# ---------------------------------------------------------------------- skipped files and notes


def write_skipped(connection: apsw.Connection, skip: Sequence[Skipped], unskip: Sequence[str]) -> None:
    """Remember and forget files that could not be taken in, within the caller's transaction."""
    connection.executemany("DELETE FROM skipped WHERE path = ?", [(stored_path(path),) for path in unskip])
    rows = [(stored_path(s.path), s.size, s.modified, s.reason.encode(errors="replace").decode()) for s in skip]
    connection.executemany("INSERT OR REPLACE INTO skipped VALUES (?, ?, ?, ?)", rows)


def read_skipped(connection: apsw.Connection, root: str) -> list[Skipped]:
    """Files below a folder that could not be taken in."""
    condition, values = below(root)
    query = f"SELECT path, size, modified, reason FROM skipped WHERE {condition}"
    rows: Any = connection.execute(query, values).fetchall()
    known = [Skipped(read_path(path), *rest) for path, *rest in rows]
    return sorted((one for one in known if is_below(one.path, root)), key=lambda one: one.path)
