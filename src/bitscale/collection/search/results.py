"""Results: for each query its matches, the items they are, and why; as data, in a notebook, or as a contact sheet.

What costs anything is done when asked for: a search that only takes ids and distances pays for nothing else. Nothing
here goes back to the collection: results hold the version they are of, and work after it is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike

from bitscale.arrays import Float, Int
from bitscale.codes import Codes, Relaxed
from bitscale.collection.items import Item
from bitscale.collection.search.matches import Row
from bitscale.collection.search.order import Ordered
from bitscale.collection.search.queries import Encoded, Query
from bitscale.collection.search.shown import section_of
from bitscale.collection.search.version import Version
from bitscale.collection.store.seen import Seen
from bitscale.views.sheet import Sheet

NOTEBOOK_PICTURES = 24


class Results(Sequence[Row]):
    """The matches of every query: `results[0][0].item.path` is the nearest picture to the first."""

    def __init__(
        self,
        encoded: Encoded,
        ordered: Ordered,
        items: dict[int, Item],
        version: Version,
        bits: int,
        *,
        counted: bool = False,
        weights: ArrayLike | None = None,
        seen: dict[int, Seen] | None = None,
        matching: int | None = None,
    ) -> None:
        """Put together what a search has found.

        items     those found and those searched for, by id
        version   the collection as it was searched
        bits      how many were compared
        counted   distances are numbers of bits, not weighted
        weights   distances are by these, not by the model's: (q,), or (queries, q); verdicts are by the model's
        seen      looks of items, by id
        matching  how many items the filter let through; None without one
        """
        self.codes, self.unread = encoded.codes, encoded.unread
        self.queries = tuple(with_path(query, items) for query in encoded.queries)
        self.hits, self.decided = ordered.hits, ordered.decided
        self.items, self.version, self.bits, self.counted = items, version, bits, counted
        self.seen, self.seen_queries, self.matching = seen or {}, encoded.seen, matching
        self._weights = encoded.codes.bit_weights if weights is None else np.asarray(weights, np.float64)

    @cached_property
    def _rows(self) -> WeakValueDictionary[int, Row]:
        """The rows that somebody still holds: each refers to these results."""
        return WeakValueDictionary()

    def largest(self, query: int) -> float:
        """The largest distance possible at these bits."""
        if self.counted:
            return float(self.bits)
        return (
            self._largest
            if self._weights.ndim == 1
            else float(self._weights[query % len(self._weights), : self.bits].sum())
        )

    @cached_property
    def _largest(self) -> float:
        return float(self._weights[: self.bits].sum())

    def near(self, query: int) -> list[tuple[int, float, float, Item]]:
        """The matches of a query as arrays: ids, distances, their shares of the largest distance, and items."""
        most, items = self.largest(query), self.items
        return [(id, d, min(d / most, 1.0) if most else 0.0, items[id]) for id, d in self.hits[query] if id in items]

    @property
    def names(self) -> list[str]:
        """The names of the queries, to show."""
        return [query.name for query in self.queries]

    @property
    def ids(self) -> Int:
        """Ids of the items found: (queries, k), or one more where one is the item searched for, -1 where there are
        fewer; in one row for a radius or distance."""
        return self.hits.ids

    @property
    def distances(self) -> Float:
        """The distance of each of `ids`, in the same form."""
        return self.hits.distances

    @overload
    def __getitem__(self, query: int) -> Row: ...
    @overload
    def __getitem__(self, query: slice) -> list[Row]: ...
    def __getitem__(self, query: int | slice) -> Row | list[Row]:
        if isinstance(query, slice):
            return [self[i] for i in range(len(self))[query]]
        query = range(len(self))[query]
        row = self._rows.get(query)
        if row is None:
            row = self._rows[query] = Row(self, query)
        return row

    def __iter__(self) -> Iterator[Row]:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return len(self.hits)

    def __repr__(self) -> str:
        return f"Results({len(self)} queries, {len(self.items)} items, {self.bits} bits)"

    @cached_property
    def signs(self) -> Codes:
        """The queries as codes."""
        return self.codes.codes() if isinstance(self.codes, Relaxed) else self.codes

    @cached_property
    def _item_codes(self) -> tuple[dict[int, int], Codes]:
        """The codes of all items, fetched once for all rows, and the place of each id among them."""
        ids = sorted(self.items)
        return {id: place for place, id in enumerate(ids)}, self.version.index.get(ids)

    def codes_of(self, ids: list[int]) -> Codes:
        """The codes of items found, as they were when searched."""
        places, codes = self._item_codes
        return codes[np.array([places[id] for id in ids], np.int64)]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Plain data, one table a query, the same that `bitscale search --json` prints; docs/cli.md describes it."""
        return [row.to_dict() for row in self]

    # ------------------------------------------------------------------ to look at

    def sheet(self, title: str = "") -> Sheet:
        """The results as a contact sheet."""
        sections = tuple(section_of(row) for row in self)
        note = f"{self.version.n_items:,} items, {self.bits} bits"
        return Sheet(title or f"Search in {self.version.path.name}", note, sections)

    def save_html(self, path: str | Path, title: str = "") -> None:
        """Write one self-contained HTML file: pictures, distances and verdicts."""
        self.sheet(title).save(Path(path), self.version.pool)

    def _repr_html_(self) -> str:
        return self.sheet().fragment(NOTEBOOK_PICTURES, self.version.pool)


def with_path(query: Query, items: dict[int, Item]) -> Query:
    """A query for an item with the path of its picture."""
    return query if query.id is None or query.id not in items else replace(query, path=items[query.id].path)
