"""Searching: codes, condition and item rows of one version, while a writer goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import Codes, Relaxed
from bitscale.collection import store
from bitscale.collection.database import Database
from bitscale.collection.items import Item
from bitscale.collection.serving import Serving
from bitscale.errors import FileError
from bitscale.index.base import Hits, Index, Neighbours

HASTY = 3  # searches tried beside a writer before one that holds on to a version
TRIES = 6

Found = tuple[Hits | Neighbours, dict[int, Item], Callable[[list[int]], Codes], int]


class Searcher:
    """Looks again where something was committed between index and rows, and in the end holds on to one version."""

    def __init__(self, database: Database, serving: Serving, select: Callable[[Any], NDArray[np.int64]]) -> None:
        self._database, self._serving, self._select = database, serving, select
        self._filters: dict[Any, object] = {}  # the last one prepared

    def search(
        self,
        codes: Codes | Relaxed,
        k: int,
        bits: int | None,
        where: Any,
        radius: int | None,
        max_distance: float | None,
    ) -> Found:
        """What is found, the items it is, what fetches their codes, and how many bits those have."""

        def ask(index: Index, among: Any) -> Hits | Neighbours:
            if radius is None and max_distance is None:
                return index.search(codes, k, bits=bits, where=among)
            return index.lookup(codes, radius, max_distance=max_distance, bits=bits, where=among)

        for attempt in range(TRIES):
            try:
                found, consistent = self._once(ask, where, hold=attempt >= HASTY)
            except FileError:  # files of the version held on to may be gone already
                if attempt < HASTY or attempt == TRIES - 1:
                    raise
                continue
            if consistent:
                break
        return found

    def _once(self, ask: Callable[[Index, Any], Hits | Neighbours], where: Any, *, hold: bool) -> tuple[Found, bool]:
        """What is found, and whether codes, condition and rows are of one version; `hold` sees to that."""
        if hold:
            self._serving.refresh()  # the bulk of it; within the version held it may be too late for its files
        with self._database.reading() if hold else contextlib.nullcontext():
            state = self._serving.refresh()
            index = self._serving.index
            found = ask(index, None if where is None else self._among(where, index))
            fetch = self._serving.reader()
            ids = np.unique(found.ids[found.ids >= 0]).tolist()
            with self._database.reading() as connection:
                items, now = store.read_items(connection, ids), store.read_state(connection)
        return (found, items, fetch, index.n_bits), now == state

    def _among(self, where: Any, index: Index) -> object:
        """The filter for `where`, kept until the next commit."""
        key = repr(where), self._serving.state
        if key not in self._filters:
            self._filters = {key: index.prepare(self._select(where))}
        return self._filters[key]
