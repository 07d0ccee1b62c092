"""Source: the interface through which a search reads a collection, be it in a folder or on an engine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bitscale.collection.items import Item
from bitscale.collection.search.explain import Standards
from bitscale.collection.search.version import Version
from bitscale.collection.store.seen import Seen
from bitscale.collection.where import Where
from bitscale.index.base import Index
from bitscale.index.engines.address import Address
from bitscale.pictures.pool import Pool


@dataclass(frozen=True, eq=False)
class Told:
    """Items that were found: their rows, their looks, and the version of the collection that all are of."""

    items: dict[int, Item]
    seen: dict[int, Seen]
    version: Version
    state: object  # where the collection stood when rows were read


class Source(Protocol):
    """A collection as a search sees it."""

    @property
    def place(self) -> Path | Address:
        """Where it is: a folder, or an address."""

    @property
    def index(self) -> Index:
        """The codes that are searched, as of the last `refresh`."""

    @property
    def known(self) -> object | None:
        """The answer of the last `refresh` while the index still shows that state; else None: ask again."""

    def refresh(self) -> object:
        """Come level with what was committed; equal to an earlier answer where nothing was."""

    def snapshot(self) -> Index:
        """The codes as they are now, to take those of items from."""

    def held(self) -> AbstractContextManager[object]:
        """A while in which one version is seen, whatever others do."""

    def narrowed(self, where: Where) -> tuple[object, int]:
        """A filter for the index, and how many items it lets through."""

    def at_path(self, path: str) -> int | None:
        """The item of a picture file."""

    def told(self, ids: list[int], standards: Standards, pool: Pool) -> Told:
        """The rows and looks of items that were found."""
