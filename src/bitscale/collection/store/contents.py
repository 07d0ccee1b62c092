"""Contents: the items of a collection, read row by row, each call seeing one version of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.arrays import Int
from bitscale.collection.items import Item, Skipped, read_labels
from bitscale.collection.store import rows as store
from bitscale.collection.store.database import Database
from bitscale.collection.store.facets import Facets, read_facets
from bitscale.collection.store.seen import exif_column, kept_words, read_looks, read_sizes
from bitscale.collection.store.whole import whole
from bitscale.collection.where import EXIF, Where, condition, json_key
from bitscale.errors import InputError, UnknownItem
from bitscale.looks.look import Looks

PAGE = 1_000  # items read at a time
CODES_ONLY = "codes_only"  # the note of a collection that keeps nothing of files


class Contents:
    """The items of a collection, for reading."""

    path: Path
    _database: Database
    _interrupted = False

    def item(self, id: int) -> Item:
        """One item."""
        known = self.items_of([id])
        if id not in known:
            raise UnknownItem(f"there is no item {id} in {self.path.name}. It may have been removed.")
        return known[id]

    @whole
    def items_of(self, ids: Sequence[int]) -> dict[int, Item]:
        """Some items by id; those that are not there are left out."""
        with self._database.reading() as connection:
            return store.read_items(connection, ids)

    @whole
    def rows_of(self, ids: Sequence[int]) -> list[Any]:
        """The rows of some items as the database holds them, by id; those that are not there are left out."""
        with self._database.reading() as connection:
            return sorted(store.read_rows(connection, ids), key=itemgetter(0))

    def items(self) -> Iterator[Item]:
        """All items, by id."""
        after = -1
        while True:
            page = self.page(after, PAGE)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].id

    @whole
    def page(self, after: int, n: int, where: Where | None = None) -> list[Item]:
        """The next n items by id for which `where` holds, after an id; -1: from the first."""
        sql, values = ("1", ()) if where is None else condition(where)
        with self._database.reading() as connection:
            return store.iterate_items(connection, after, n, sql.replace(EXIF, exif_column(connection)), values)

    @whole
    def find(self, path: str | os.PathLike[str]) -> int | None:
        """The id of the item at a path, or None."""
        with self._database.reading() as connection:
            return store.find_path(connection, os.path.abspath(path))

    @whole
    def select(self, where: Where) -> Int:
        """The ids of items for which `where` holds, ascending: {"camera": 2, "label": "cat"}. See `where`."""
        sql, values = condition(where)
        with self._database.reading() as connection:
            sql = sql.replace(EXIF, exif_column(connection))
            rows = connection.execute(f"SELECT id FROM items WHERE {sql} ORDER BY id", values)
            return np.fromiter((id for (id,) in rows), np.int64)

    @whole
    def has_field(self, field: str) -> bool:
        """Whether any item has this in its metadata; looks at items until one has."""
        query = "SELECT EXISTS (SELECT 1 FROM items WHERE json_type(metadata, ?) IS NOT NULL)"
        with self._database.reading() as connection:
            return bool(connection.execute(query, (json_key(field),)).get)

    @whole
    def facets(self, most: int = 50) -> Facets:
        """Labels and metadata with the number of items that have them, up to `most` values of each."""
        with self._database.reading() as connection:
            return read_facets(connection, most)

    @whole
    def sample(self, n: int, seed: int = 0) -> Int:
        """The ids of up to n items in random order, the same for the same contents."""
        rng = np.random.default_rng(seed)
        with self._database.reading() as connection:
            lowest, highest = connection.execute("SELECT min(id), max(id) FROM items").get
            if lowest is None:
                return np.empty(0, np.int64)
            drawn = np.unique(rng.integers(lowest, highest + 1, 4 * n)) if highest - lowest > 4 * n else ()
            there = "SELECT id FROM items WHERE id = ?"
            rows = [row for draw in rng.permutation(drawn).tolist() for row in connection.execute(there, (draw,))]
            if len(rows) < n:  # few items, or wide gaps between their ids
                rows = connection.execute("SELECT id FROM items ORDER BY id").fetchall()
                rows = [rows[i] for i in rng.permutation(len(rows))[:n].tolist()]
        return np.array(_untyped(rows[:n]), np.int64).ravel()

    @whole
    def listing(self, root: str = "") -> Iterator[tuple[int, str, int, int, bytes | None]]:
        """Id, path, size, time of change and content of every item whose path is `root` or below it."""
        sql, values = store.below(root)
        query = f"SELECT id, path, size, modified, content FROM items WHERE {sql}"
        with self._database.reading() as connection:
            rows = connection.execute(query, values).fetchall()
        named: Iterator[Any] = ((id, os.fsdecode(path), *rest) for id, path, *rest in _untyped(rows))
        return (row for row in named if store.is_below(row[1], root))

    @whole
    def looks_of(self, ids: Sequence[int]) -> tuple[list[int], Looks]:
        """The looks of items as far as they are kept, and the ids they are of."""
        with self._database.reading() as connection:
            return read_looks(connection, ids)

    @whole
    def sizes(self) -> dict[int, tuple[int, int]]:
        """Width and height of every item of which a look is kept."""
        with self._database.reading() as connection:
            return read_sizes(connection)

    @whole
    def words_of(self, content: bytes) -> tuple[tuple[str, ...], dict[str, Any]] | None:
        """Labels and metadata that a removed picture of this content had, until `compact`."""
        with self._database.reading() as connection:
            words = kept_words(connection, content)
        return words and (read_labels(words[0]) if words[0] else (), json.loads(words[1]) if words[1] else {})

    @whole
    def skipped(self, root: str = "") -> list[Skipped]:
        """Files that could not be taken in, with the reason."""
        with self._database.reading() as connection:
            return store.read_skipped(connection, root)

    @whole
    def notes(self) -> dict[str, str]:
        """Small facts kept with the collection."""
        with self._database.reading() as connection:
            return dict(_untyped(connection.execute("SELECT key, value FROM notes").fetchall()))

    @property
    def codes_only(self) -> bool:
        """Whether nothing of a picture's file is kept: no path, no content hash, no size, no time of change."""
        return CODES_ONLY in self.notes()

    def require_files(self, what: str) -> None:
        """Refuse `what` where no paths are kept by which pictures could be read again."""
        if self.codes_only:
            raise InputError(
                f"{what} reads the pictures again, and {self.path.name} keeps codes only, no paths. Make a collection "
                "of the pictures themselves for that."
            )

    def _set_right(self) -> None:
        self._database.set_right()
        self._interrupted = False


def _untyped(rows: Any) -> Any:
    """Rows whose columns are known from the query."""
    return rows
