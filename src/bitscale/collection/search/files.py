"""A folder as a source of searches: rows from its database, codes from its segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from bitscale.arrays import Int
from bitscale.collection.search.explain import Standards
from bitscale.collection.search.source import Told
from bitscale.collection.search.version import Version
from bitscale.collection.segments.serving import UNKNOWN, Serving
from bitscale.collection.store import rows as store
from bitscale.collection.store.database import Database
from bitscale.collection.store.seen import has_seen, read_seen
from bitscale.collection.where import Where
from bitscale.index.base import Index

MOST_LOOKS = 5_000  # items found whose looks are read, so that copies can be told


class Files:
    """The files of an open collection."""

    def __init__(self, database: Database, serving: Serving, select: Callable[[Any], Int]) -> None:
        self._database, self._serving, self._select = database, serving, select
        self._looked: tuple[store.State | None, bool] = (None, False)  # a version, and whether looks are kept in it

    @property
    def place(self) -> Path:
        """The collection's folder."""
        return self._serving.folder

    @property
    def index(self) -> Index:
        """The codes, level with the last refresh."""
        return self._serving.index

    @property
    def known(self) -> store.State | None:
        """Where the index stands, be it level with the last commit or not; None where it has to be loaded."""
        state = self._serving.state
        return None if state == UNKNOWN else state

    def refresh(self) -> store.State:
        """Come level with the last commit."""
        return self._serving.refresh()

    def snapshot(self) -> Index:
        """The codes as they are now, whatever comes and goes afterwards."""
        self._serving.refresh()
        return self._serving.snapshot()

    @contextmanager
    def held(self) -> Iterator[None]:
        """One version of the database."""
        self._serving.refresh()  # the bulk of it; within the version held it may be too late for its files
        with self._database.reading():
            yield

    def narrowed(self, where: Where) -> tuple[object, int]:
        """The items for which a condition holds, as a filter."""
        ids = self._select(where)
        return self._serving.index.prepare(ids), len(ids)

    def at_path(self, path: str) -> int | None:
        """The item of a picture file."""
        return self._database.at_once(lambda connection: store.find_path(connection, path))

    def told(self, ids: list[int], standards: Standards, pool: Any) -> Told:
        """Rows and looks of items, and the version they are of."""
        index, state = self._serving.snapshot(), self._serving.state
        next_id = state.next_id
        version = Version(self.place, index, len(index), lambda bits: standards.of(index, next_id, bits), pool)
        if self._looked == (state, False) and len(ids) <= store.AT_ONCE:  # nothing seen of items: no more to tell
            now, items = self._database.at_once(lambda connection: store.read_with_state(connection, ids))
            return Told(items, {}, version, now)  # of a later version: then the codes are not of it either
        with self._database.reading() as connection:
            now = store.read_state(connection)
            looked = self._looks_kept(connection, now)
            items = store.read_items(connection, ids, looked)
            return Told(items, read_seen(connection, ids[:MOST_LOOKS]) if looked else {}, version, now)

    def _looks_kept(self, connection: apsw.Connection, state: store.State) -> bool:
        """Whether anything was ever seen of items; looked up once a version."""
        if self._looked[0] != state:
            self._looked = state, has_seen(connection)
        return self._looked[1]
