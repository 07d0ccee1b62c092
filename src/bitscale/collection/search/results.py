"""Results: for each query its matches, the items they are, and why; as data, in a notebook, or as a contact sheet.

What costs anything is done when asked for: a search that only takes ids and distances pays for nothing else. Nothing
here goes back to the collection: results hold the version they are of, and work after it is closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import ArrayLike

from bitscale.arrays import Bool, Float, Int
from bitscale.codes import Codes, Relaxed
from bitscale.collection.items import Item
from bitscale.collection.search.explain import HEAVY, Cutoff, Verdict, code_distances, differing
from bitscale.collection.search.grades import Grade, graded, look_copies
from bitscale.collection.search.order import Decided, Ordered
from bitscale.collection.search.queries import Encoded, Query
from bitscale.collection.search.shown import match_dict, section_of
from bitscale.collection.search.version import Version
from bitscale.collection.store.seen import Seen
from bitscale.views.sheet import Sheet

NOTEBOOK_PICTURES = 24
SAYS: dict[Verdict, str] = {
    "similar": "",
    "not similar": "nothing similar here",
    "cannot tell": "too few bits to tell similar from chance here",
}
NO_MATCH = "no item passes the filter"
WORDS = "the pictures nearest to these words; how near is near enough, codes cannot tell of words"
GRADES: tuple[Grade, ...] = ("copy", "same kind", "cannot tell", "unlike")  # the first that a match has
FINDS: dict[Grade, str] = {
    "copy": "this picture is here",
    "same kind": "something of its kind is here",
    "unlike": "nothing of its kind here",
    "cannot tell": "codes this short, or so few items, cannot tell one kind from another",
}


@dataclass(frozen=True)
class Match:
    """An item found, how far it is, and why."""

    id: int
    distance: float  # weighted; with `radius`, a number of bits
    share: float  # of the largest distance possible at these bits
    item: Item
    _row: Row = field(repr=False, compare=False)
    _place: int = field(repr=False, compare=False)

    @property
    def itself(self) -> bool:
        """Whether it is the very item searched for: by its id, or by its file."""
        query = self._row.query
        return query.id == self.id if query.id is not None else bool(query.path) and query.path == self.item.path

    @property
    def shown_distance(self) -> str:
        """The distance in words."""
        return f"{self.distance:.0f} bits" if self._row.counted else f"{self.distance:.2f}"

    @property
    def disagree(self) -> tuple[int, ...]:
        """Which of the heaviest bits differ: places among the first HEAVY, 0 the heaviest."""
        return tuple(np.flatnonzero(self._row.differ[self._place][:HEAVY]).tolist())

    @property
    def differing(self) -> int:
        """How many of the bits compared differ."""
        return int(np.count_nonzero(self._row.differ[self._place]))

    @property
    def verdict(self) -> Verdict:
        """Whether it is nearer than chance and the collection's own standard: see `explain`; of words nobody knows."""
        if self._row.query.text:
            return "cannot tell"
        return self._row.cutoff.verdict(float(self._row.code_distances[self._place]))

    @property
    def grade(self) -> Grade:
        """What it is to the query: a copy, of the same kind, unlike; or codes cannot tell. See `grades`."""
        if self._row.query.text:
            return "cannot tell"  # limits are those between pictures
        copy = True if self.itself else self._row.copies[self._place]
        return graded(float(self._row.code_distances[self._place]), self._row.kind_limit, copy)

    @property
    def decided(self) -> Decided:
        """What put it in its place: that it is the item itself, its distance, or what decided a tie. See `order`."""
        return self._row.decided[self._place]


class Row(Sequence[Match]):
    """The matches of one query, nearest first."""

    def __init__(self, results: Results, place: int) -> None:
        self._results, self._place = results, place
        self.query, self.counted = results.queries[place], results.counted
        self._facts = results.near(place)
        self._ids = [id for id, _, _, _ in self._facts]
        there = set(self._ids)
        told = zip(results.hits[place], results.decided[place], strict=True)
        self.decided = tuple(decided for (id, _), decided in told if id in there)

    @property
    def name(self) -> str:
        """What was searched for, to show."""
        return self.query.name

    @overload
    def __getitem__(self, which: int) -> Match: ...
    @overload
    def __getitem__(self, which: slice) -> list[Match]: ...
    def __getitem__(self, which: int | slice) -> Match | list[Match]:
        """Matches are made when asked for: a row that kept what refers to it would wait for the garbage collector."""
        if isinstance(which, slice):
            return [Match(*self._facts[i], self, i) for i in range(len(self))[which]]
        which = range(len(self))[which]
        return Match(*self._facts[which], self, which)

    def __iter__(self) -> Iterator[Match]:
        return (Match(*facts, self, i) for i, facts in enumerate(self._facts))

    def __len__(self) -> int:
        return len(self._facts)

    def __repr__(self) -> str:
        return f"Row({self.name!r}, {len(self)} matches)"

    @cached_property
    def differ(self) -> Bool:
        """Which of the bits compared differ, (matches, bits)."""
        codes = self._results.codes_of(self._ids)
        return differing(self._results.signs[self._place], codes)[:, : self._results.bits]

    @cached_property
    def code_distances(self) -> Float:
        """Weighted distances between codes, whatever kind of distance the search was by."""
        return code_distances(self.differ, self._results.signs.bit_weights, self._results.bits)

    @cached_property
    def cutoff(self) -> Cutoff:
        """How near counts as similar for this query."""
        query, bits = self._results.signs[self._place], self._results.bits
        signs = np.unpackbits(query.packed, axis=1, count=query.n_bits)[0, :bits].astype(np.bool_)
        return self._results.version.standard(bits).cutoff(signs)

    @cached_property
    def copies(self) -> list[bool | None]:
        """Whether each match is a copy of the query, seen by their looks; None where one of the two has none."""
        seen = self._results.seen
        own = self._results.seen_queries[self._place] if self._results.seen_queries else None
        query = own or (seen.get(self.query.id) if self.query.id is not None else None)
        return look_copies(query, [seen.get(id) for id in self._ids])

    @property
    def kind_limit(self) -> float | None:
        """The distance within which matches are of the query's kind; None where codes cannot tell."""
        return self._results.version.standard(self._results.bits).kind

    @property
    def grade(self) -> Grade:
        """The best grade of a match besides the item searched for."""
        grades = {match.grade for match in self if not match.itself}
        return next((one for one in GRADES if one in grades), "unlike")

    @property
    def verdict(self) -> Verdict:
        """Whether anything similar was found, besides the item searched for."""
        if self.cutoff.distance is None or self.query.text:
            return "cannot tell"
        others = (match for match in self if not match.itself)
        return "similar" if any(match.verdict == "similar" for match in others) else "not similar"

    @property
    def says(self) -> str:
        """The verdict in words; empty where something similar was found."""
        if not self._results.version.n_items:
            return "there is nothing in this collection yet"
        if self.query.text and self._results.matching != 0:
            return WORDS
        return NO_MATCH if self._results.matching == 0 else SAYS[self.verdict]

    @property
    def finds(self) -> str:
        """The best grade in words."""
        if not self._results.version.n_items or self._results.matching == 0:
            return self.says
        if self.query.text:
            return WORDS
        return FINDS[self.grade] if len(self) else FINDS["unlike"]

    @property
    def limit(self) -> str:
        """How near counts as similar, in words: of codes with their weights, whatever distances are shown."""
        return f"{'a weighted ' if self.counted else ''}distance {self.cutoff.distance:.2f}"

    def to_dict(self) -> dict[str, Any]:
        """This row as plain data: see `Results.to_dicts`."""
        return {
            "query": self.name,
            "bits": self._results.bits,
            "verdict": self.verdict,
            "grade": self.grade,
            "matching": self._results.matching,
            "cutoff": {
                "distance": self.cutoff.distance,
                "chance": self.cutoff.chance,
                "usual": self.cutoff.usual,
                "kind": self.kind_limit,
            },
            "matches": [match_dict(match) for match in self],
        }


class Results(Sequence[Row]):
    """The matches of every query: `results[0][0].item.path` is the nearest picture to the first."""

    def __init__(
        self,
        encoded: Encoded,
        found: Ordered,
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
        self.hits, self.decided = found.hits, found.decided
        self.items, self.version, self.bits, self.counted = items, version, bits, counted
        self.seen, self.seen_queries, self.matching = seen or {}, encoded.seen, matching
        self._weights = encoded.codes.bit_weights if weights is None else np.asarray(weights, np.float64)

    @cached_property
    def _rows(self) -> WeakValueDictionary[int, Row]:
        """Those in use: each refers to these results."""
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
        """What is near to a query: ids, distances, their shares of the largest distance, and items."""
        most, items = self.largest(query), self.items
        return [(id, d, min(d / most, 1.0) if most else 0.0, items[id]) for id, d in self.hits[query] if id in items]

    @property
    def names(self) -> list[str]:
        """What was searched for, to show."""
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
