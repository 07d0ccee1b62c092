"""Contents: the items of a collection, read row by row, each call seeing one version of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.collection import store
from bitscale.collection.database import Database
from bitscale.collection.items import Item, Skipped
from bitscale.errors import InputError

I64 = NDArray[np.int64]
PAGE = 1_000  # items read at a time


class Contents:
    """What a collection holds, for reading."""

    path: Path
    _database: Database

    def item(self, id: int) -> Item:
        """One item."""
        found = self.items_of([id])
        if id not in found:
            raise InputError(f"there is no item {id} in {self.path.name}. It may have been removed.")
        return found[id]

    def items_of(self, ids: Sequence[int]) -> dict[int, Item]:
        """Some items by id; those that are not there are left out."""
        with self._database.reading() as connection:
            return store.read_items(connection, ids)

    def items(self) -> Iterator[Item]:
        """All items, by id."""
        after = -1
        while True:
            with self._database.reading() as connection:
                page = store.iterate_items(connection, after, PAGE)
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].id

    def find(self, path: str | os.PathLike[str]) -> int | None:
        """The id of the item at a path, or None."""
        with self._database.reading() as connection:
            return store.find_path(connection, os.path.abspath(path))

    def select(self, where: Any) -> I64:
        """The ids of items for which `where` holds, ascending: {"camera": 2, "label": "cat"}. See `where`."""
        from bitscale.collection.where import condition

        sql, values = condition(where)
        with self._database.reading() as connection:
            rows = connection.execute(f"SELECT id FROM items WHERE {sql} ORDER BY id", values)
            return np.fromiter((id for (id,) in rows), np.int64)

    def listing(self, root: str = "") -> Iterator[tuple[int, str, int, int, bytes | None]]:
        """Id, path, size, time of change and content of every item whose path is `root` or below it."""
        sql, values = store.below(root)
        query = f"SELECT id, path, size, modified, content FROM items WHERE {sql}"
        with self._database.reading() as connection:
            rows = connection.execute(query, values).fetchall()
        named: Iterator[Any] = ((id, os.fsdecode(path), *rest) for id, path, *rest in _untyped(rows))
        return (row for row in named if store.is_below(row[1], root))

    def skipped(self, root: str = "") -> list[Skipped]:
        """Files that could not be taken in, with the reason."""
        with self._database.reading() as connection:
            return store.read_skipped(connection, root)

    def notes(self) -> dict[str, str]:
        """Small facts kept with the collection."""
        with self._database.reading() as connection:
            return dict(_untyped(connection.execute("SELECT key, value FROM notes").fetchall()))


def _untyped(rows: Any) -> Any:
    """Rows whose columns are known from the query."""
    return rows
