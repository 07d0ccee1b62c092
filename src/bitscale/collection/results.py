"""Results: for each query its matches, the items they are, and why; as data, in a notebook, or as a contact sheet.

What costs anything is done when asked for: a search that only takes ids and distances pays for nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from bitscale.codes import Codes, Relaxed
from bitscale.collection.explain import HEAVY, Cutoff, Verdict, code_distances, differing, standard
from bitscale.collection.items import Item
from bitscale.index.base import Hits, Neighbours
from bitscale.report.sheet import Kind, Section, Sheet, Tile

if TYPE_CHECKING:
    from bitscale.collection.collection import Collection

NOTEBOOK_PICTURES = 24
SAYS: dict[Verdict, str] = {
    "similar": "",
    "not similar": "nothing similar here",
    "cannot tell": "too few bits to tell similar from chance here",
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
        return self._row.name == f"item {self.id}" or self._row.whole_name == self.item.path

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
        """Whether it is nearer than chance and the collection's own standard: see `explain`."""
        return self._row.cutoff.verdict(float(self._row.code_distances[self._place]))


class Row(Sequence[Match]):
    """The matches of one query, nearest first."""

    def __init__(self, results: Results, query: int) -> None:
        self._results, self._query = results, query
        self.name, self.counted = results.names[query], results.counted
        most, items = results.largest, results.items
        found = [(id, distance) for id, distance in results.hits[query] if id in items]
        self._ids = [id for id, _ in found]
        self._matches = [
            Match(id, d, min(d / most, 1.0) if most else 0.0, items[id], self, i) for i, (id, d) in enumerate(found)
        ]

    @overload
    def __getitem__(self, which: int) -> Match: ...
    @overload
    def __getitem__(self, which: slice) -> list[Match]: ...
    def __getitem__(self, which: int | slice) -> Match | list[Match]:
        return self._matches[which]

    def __len__(self) -> int:
        return len(self._matches)

    def __repr__(self) -> str:
        return f"Row({self.name!r}, {len(self)} matches)"

    @cached_property
    def differ(self) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
        """Which of the bits compared differ, (matches, bits)."""
        codes = self._results.codes_of(self._ids)
        return differing(self._results.signs[self._query], codes)[:, : self._results.bits]

    @cached_property
    def code_distances(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Weighted distances between codes, whatever kind of distance the search was by."""
        return code_distances(self.differ, self._results.signs.bit_weights, self._results.bits)

    @cached_property
    def cutoff(self) -> Cutoff:
        """How near counts as similar for this query."""
        query, collection = self._results.signs[self._query], self._results.collection
        if query.model not in (None, collection.model):  # changed since the search
            return Cutoff(None, None)
        signs = np.unpackbits(query.packed, axis=1, count=query.n_bits)[0, : self._results.bits].astype(np.bool_)
        return standard(collection, self._results.bits).cutoff(signs)

    @cached_property
    def whole_name(self) -> str:
        """The name as the absolute path it may be."""
        return os.path.abspath(self.name)

    @property
    def query_path(self) -> str:
        """The picture searched for, where there is one: a file, or that of an item."""
        if os.path.isfile(self.name):
            return self.whole_name
        kind, _, id = self.name.partition(" ")
        item = self._results.collection.items_of([int(id)]).get(int(id)) if kind == "item" and id.isdecimal() else None
        return item.path if item else ""

    @property
    def verdict(self) -> Verdict:
        """Whether anything similar was found, besides the item searched for."""
        if self.cutoff.distance is None:
            return "cannot tell"
        others = (match for match in self if not match.itself)
        return "similar" if any(match.verdict == "similar" for match in others) else "not similar"

    @property
    def says(self) -> str:
        """The verdict in words; empty where something similar was found."""
        return SAYS[self.verdict] if len(self._results.collection) else "there is nothing in this collection yet"

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
            "cutoff": {
                "distance": self.cutoff.distance,
                "chance": self.cutoff.chance,
                "usual": self.cutoff.usual,
            },
            "matches": [match_facts(match) for match in self],
        }


class Results(Sequence[Row]):
    """The matches of every query: `results[0][0].item.path` is the nearest picture to the first."""

    def __init__(
        self,
        collection: Collection,
        queries: Codes | Relaxed,
        names: list[str],
        hits: Hits | Neighbours,
        bits: int,
        fetch: Callable[[list[int]], Codes],
    ) -> None:
        self.collection, self.queries, self.hits, self.bits = collection, queries, hits, bits
        self.names = names or [f"query {i}" for i in range(len(queries))]
        self.items: dict[int, Item] = {}
        self.largest = 0.0
        self.counted = False  # distances are numbers of bits
        self._rows: dict[int, Row] = {}
        self._fetch = fetch
        self._codes: tuple[dict[int, int], Codes] | None = None

    @classmethod
    def build(
        cls,
        collection: Collection,
        queries: Codes | Relaxed,
        names: list[str],
        found: Hits | Neighbours,
        bits: int,
        items: dict[int, Item],
        fetch: Callable[[list[int]], Codes],
        *,
        counted: bool = False,
    ) -> Results:
        """Put item rows to what the index found; `counted`: its distances are numbers of bits, not weighted."""
        results = cls(collection, queries, names, found, bits, fetch)
        results.items, results.counted = items, counted
        results.largest = float(bits if counted else queries.bit_weights[:bits].sum())
        return results

    @overload
    def __getitem__(self, query: int) -> Row: ...
    @overload
    def __getitem__(self, query: slice) -> list[Row]: ...
    def __getitem__(self, query: int | slice) -> Row | list[Row]:
        if isinstance(query, slice):
            return [self[i] for i in range(len(self))[query]]
        query = range(len(self))[query]
        if query not in self._rows:
            self._rows[query] = Row(self, query)
        return self._rows[query]

    def __iter__(self) -> Iterator[Row]:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return len(self.hits)

    def __repr__(self) -> str:
        return f"Results({len(self)} queries, {len(self.items)} items, {self.bits} bits)"

    @cached_property
    def signs(self) -> Codes:
        """The queries as codes."""
        return self.queries.codes() if isinstance(self.queries, Relaxed) else self.queries

    def codes_of(self, ids: list[int]) -> Codes:
        """The codes of items found, as they were when searched, fetched once for all rows."""
        if self._codes is None:
            wanted = sorted(self.items)
            self._codes = {id: i for i, id in enumerate(wanted)}, self._fetch(wanted)
        places, codes = self._codes
        return codes[np.array([places[id] for id in ids], np.int64)]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Plain data, one table a query, the same that `bitscale search --json` prints; docs/cli.md describes it."""
        return [row.to_dict() for row in self]

    # ------------------------------------------------------------------ to look at

    def sheet(self, title: str = "") -> Sheet:
        """The results as a contact sheet."""
        sections = tuple(section_of(row, self.collection) for row in self)
        note = f"{len(self.collection):,} items, {self.bits} bits"
        return Sheet(title or f"Search in {self.collection.path.name}", note, sections)

    def save_html(self, path: str | Path, title: str = "") -> None:
        """Write one self-contained HTML file: pictures, distances and verdicts."""
        self.sheet(title).save(Path(path))

    def _repr_html_(self) -> str:
        return self.sheet().fragment(NOTEBOOK_PICTURES)


def match_facts(match: Match) -> dict[str, Any]:
    """One match as plain data."""
    item = match.item
    return {
        "id": match.id,
        "path": item.path,
        "distance": match.distance,
        "share": match.share,
        "verdict": match.verdict,
        "itself": match.itself,
        "differing_bits": match.differing,
        "disagree": list(match.disagree),
        "labels": list(item.labels),
        "metadata": dict(item.metadata),
        "size": item.size,
        "modified": item.modified,
    }


def section_of(row: Row, collection: Collection) -> Section:
    """One query of a contact sheet: the query itself where it is a picture, then its matches."""
    verdict = row.verdict
    note = row.says or f"similar up to {row.limit}"
    if verdict == "not similar":
        note += f" (it would have to be within {row.limit})"
    tiles = [Tile(row.query_path, row.name, "query", kind="query")] if row.query_path else []
    return Section(row.name, note, tuple(tiles + [tile_of(match) for match in row]), muted=verdict != "similar")


def tile_of(match: Match) -> Tile:
    """One match of a contact sheet."""
    bits = match._row.differ.shape[1]
    facts = (
        f"{match.share:.1%} of the maximum",
        f"{match.differing} of {bits} bits differ",
        *((", ".join(match.item.labels),) if match.item.labels else ()),
    )
    agree = tuple(bit not in match.disagree for bit in range(min(HEAVY, bits)))
    kind: Kind = "itself" if match.itself else match.verdict
    return Tile(match.item.path, f"item {match.id}", match.shown_distance, kind, facts, agree)
