"""Results of a search: for each query its matches, with the items they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bitscale.codes import Codes, Relaxed
from bitscale.collection.items import Item
from bitscale.index.base import Hits, Neighbours

if TYPE_CHECKING:
    from bitscale.collection.collection import Collection


@dataclass(frozen=True)
class Match:
    """An item found."""

    id: int
    distance: float
    item: Item


class Results:
    """The matches of every query."""

    def __init__(self, rows: list[list[Match]], hits: Hits | Neighbours) -> None:
        self.rows, self.hits = rows, hits

    @classmethod
    def build(
        cls,
        collection: Collection,
        queries: Codes | Relaxed,
        names: list[str],
        found: Hits | Neighbours,
        bits: int,
        items: dict[int, Item],
    ) -> Results:
        """Put item rows to what the index found."""
        return cls([[Match(id, d, items[id]) for id, d in row if id in items] for row in found], found)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, query: int) -> list[Match]:
        return self.rows[query]

    def __iter__(self) -> Iterator[list[Match]]:
        return iter(self.rows)
