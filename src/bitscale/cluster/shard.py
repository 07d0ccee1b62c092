"""The shard that an actor holds: opened from its files, so that a killed actor comes back as it was.

A change is on disk before it is answered, and known by its number: asked for twice, it is done once.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.cluster import shard_files as files
from bitscale.codes import Codes, Relaxed
from bitscale.errors import ClusterError
from bitscale.index.base import I64, refuse_known
from bitscale.index.selection import Selection

MOST_FILTERS = 16  # prepared ones kept
Answer = tuple[I64, NDArray[np.float64]]


class Shard:
    """An `ExactIndex` and its files. Arguments and answers of its methods are plain arrays."""

    def __init__(self, folder: str, bit_weights: Any, model: str | None) -> None:
        self.folder = Path(folder)
        self.empty = files.empty_codes(bit_weights, model)
        self.filters: OrderedDict[str, Selection] = OrderedDict()
        known = files.changes(self.folder)
        if not known:
            raise ClusterError(f"{folder} holds no shard. Is the disk there on node {os.uname().nodename}?")
        self.manifest = files.read(self.folder, known[-1])
        self.index = files.load(self.folder, self.manifest, self.empty)

    def state(self) -> tuple[int, int, int]:
        """The change it stands at, the next automatic id it knows of, and how many items it holds."""
        return self.manifest.change, self.manifest.next_id, len(self.index)

    def process(self) -> int:
        """The id of the process that holds it."""
        return os.getpid()

    def stand_at(self, change: int) -> None:
        """Take back what came after a change."""
        if self.manifest.change > change:
            files.take_back(self.folder, change)
            self.manifest = files.read(self.folder, change)
            self.index = files.load(self.folder, self.manifest, self.empty)
            self.filters.clear()

    def add(self, change: int, packed: NDArray[np.uint8], ids: I64) -> None:
        """Keep new items."""
        if self._is_next(change):
            refuse_known(self.index.holding(ids))  # nothing is written that could not be opened again
            codes = Codes(packed, self.empty.bit_weights, self.empty.model)
            self.manifest = files.write_added(self.folder, self.manifest, change, codes, ids)
            self.index.add(codes, ids)

    def remove(self, change: int, ids: I64) -> None:
        """Let go of items."""
        if self._is_next(change):
            self.manifest = files.write_removed(self.folder, self.manifest, change, ids)
            self.index.remove(ids)

    def _is_next(self, change: int) -> bool:
        """Whether a change is still to be made; raises an error where one before it is missing."""
        if change == self.manifest.change:
            return False
        if change != self.manifest.change + 1:
            raise ClusterError(f"{self.folder} stands at change {self.manifest.change}; {change} cannot follow.")
        return True

    def ids(self) -> I64:
        """The ids of all items, ascending."""
        return self.index.ids()

    def holding(self, ids: I64) -> I64:
        """The ids among these that this shard holds."""
        return self.index.holding(ids)

    def get(self, ids: I64) -> NDArray[np.uint8]:
        """The codes of items that are here."""
        return self.index.get(ids).packed

    def search(self, query: tuple[str, NDArray[Any]], k: int, where: Any, how: dict[str, Any]) -> Answer:
        """Ids and distances of the k nearest items to each query."""
        hits = self.index.search(self._query(query), k, where=self._filter(where), **how)
        return hits.ids, hits.distances

    def lookup(self, query: tuple[str, NDArray[Any]], where: Any, how: dict[str, Any]) -> tuple[I64, Any, Any]:
        """Offsets, ids and distances of all items near each query."""
        near = self.index.lookup(self._query(query), where=self._filter(where), **how)
        return near.offsets, near.ids, near.distances

    def _query(self, query: tuple[str, NDArray[Any]]) -> Codes | Relaxed:
        kind, values = query
        if kind == "codes":
            return Codes(values, self.empty.bit_weights, self.empty.model)
        return Relaxed(values, self.empty.bit_weights, model=self.empty.model)

    def _filter(self, where: tuple[str | None, I64] | None) -> Any:
        """The filter of a name, prepared once; one without a name is used once."""
        if where is None:
            return None
        name, ids = where
        if name is None:
            return ids
        if name not in self.filters:
            self.filters[name] = self.index.prepare(ids)
            if len(self.filters) > MOST_FILTERS:
                self.filters.popitem(last=False)
        self.filters.move_to_end(name)
        return self.filters[name]
