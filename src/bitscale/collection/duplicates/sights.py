"""Sights: the looks of a collection's items, those it keeps and those of pictures read for the purpose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Protocol

import numpy as np

from bitscale.arrays import Int
from bitscale.collection.duplicates.kept_looks import kept_looks
from bitscale.collection.items import Item
from bitscale.collection.store.seen import Seen
from bitscale.index.base import Index
from bitscale.looks.look import Looks, looks_of

CHUNK = 2_000  # looks at a time
Progress = Callable[[str, int, int], None]


class Pictures(Protocol):
    """The part of a collection that the search for duplicates reads."""

    @property
    def path(self) -> object:
        """Where it is: a folder, or an address."""

    @property
    def index(self) -> Index:
        """The codes."""

    def __len__(self) -> int:
        """How many items there are."""

    def require_files(self, what: str) -> None:
        """Refuse `what` where no paths are kept."""

    def items_of(self, ids: Sequence[int]) -> dict[int, Item]:
        """Some items by id; those that are not there are left out."""

    def listing(self, root: str = "") -> Iterator[tuple[int, str, int, int, bytes | None]]:
        """Id, path, size, time of change and content of every item."""

    def looks_of(self, ids: Sequence[int]) -> tuple[list[int], Looks]:
        """The looks of items as far as they are kept, and the ids they are of."""

    def sizes(self) -> dict[int, tuple[int, int]]:
        """Width and height of every item of which a look is kept."""


class Sights:
    """The looks of some items by their ids; `unread` counts pictures that cannot be read or have changed."""

    def __init__(self, collection: Pictures, ids: Int, workers: int | None, tell: Progress) -> None:
        self._collection = collection
        self.sizes = collection.sizes()
        files = {id: (path, content) for id, path, _, _, content in collection.listing() if id not in self.sizes}
        missing = [id for id in ids.tolist() if id in files]
        self.read: dict[int, Seen] = {}  # what the collection does not keep
        self.unread = 0
        with closing(kept_looks([files[id] for id in missing], workers)) as seen:
            for done, (id, one) in enumerate(zip(missing, seen, strict=True), 1):
                if one is None:
                    self.unread += 1
                else:
                    self.read[id] = one
                    self.sizes[id] = one.width, one.height
                tell("looking at pictures", done, len(missing))

    def of(self, ids: Int) -> Looks:
        """The looks of items that have one, in the order of their ids."""
        wanted = [id for id in dict.fromkeys(ids.tolist()) if id not in self.read]
        there, looks = self._collection.looks_of(wanted)
        rows = {id: row for row, id in enumerate(there)}
        own = looks_of(
            [self.read[id].look for id in ids.tolist() if id in self.read],
            [self.sizes[id] for id in ids.tolist() if id in self.read],
        )
        places, more = [], len(there)
        for id in ids.tolist():
            if id in self.read:
                places.append(more)
                more += 1
            else:
                places.append(rows[id])
        joined = Looks(
            np.concatenate([looks.raw, own.raw]),
            np.concatenate([looks.width, own.width]),
            np.concatenate([looks.height, own.height]),
        )
        return joined[np.array(places, np.int64)]

    def chunks(self, ids: Int) -> Iterator[tuple[Int, Looks]]:
        """The ids that have a look, some at a time, and their looks."""
        there = ids[[id in self.sizes for id in ids.tolist()]] if len(ids) else ids
        for start in range(0, len(there), CHUNK):
            chunk = there[start : start + CHUNK]
            yield chunk, self.of(chunk)
