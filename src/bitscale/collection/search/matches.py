"""The matches of one query: the items found, how far each is, and why; with verdict and grade, made when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from bitscale.arrays import Bool, Float
from bitscale.collection.items import Item
from bitscale.collection.search.explain import HEAVY, Cutoff, Verdict, code_distances, differing
from bitscale.collection.search.grades import Grade, graded, look_copies
from bitscale.collection.search.order import Decided
from bitscale.collection.search.shown import match_dict

if TYPE_CHECKING:
    from bitscale.collection.search.results import Results

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
        """Whether it is nearer than chance and the collection's own standard (see `explain`); unknown for words."""
        if self._row.query.text:
            return "cannot tell"
        return self._row.cutoff.verdict(float(self._row.code_distances[self._place]))

    @property
    def grade(self) -> Grade:
        """Whether it is a copy of the query, of the same kind, unlike it, or codes cannot tell. See `grades`."""
        if self._row.query.text:
            return "cannot tell"  # limits are those between pictures
        copy = True if self.itself else self._row.copies[self._place]
        return graded(float(self._row.code_distances[self._place]), self._row.kind_limit, copy)

    @property
    def decided(self) -> Decided:
        """Why it stands in its place: "itself", "distance", or what decided a tie. See `order`."""
        return self._row.decided[self._place]


class Row(Sequence[Match]):
    """The matches of one query, nearest first."""

    def __init__(self, results: Results, place: int) -> None:
        self._results, self._place = results, place
        self.query, self.counted = results.queries[place], results.counted
        self._near = results.near(place)
        self._ids = [id for id, _, _, _ in self._near]
        there = set(self._ids)
        decided_by_hit = zip(results.hits[place], results.decided[place], strict=True)
        self.decided = tuple(decided for (id, _), decided in decided_by_hit if id in there)

    @property
    def name(self) -> str:
        """The name of the query, to show."""
        return self.query.name

    @overload
    def __getitem__(self, which: int) -> Match: ...
    @overload
    def __getitem__(self, which: slice) -> list[Match]: ...
    def __getitem__(self, which: int | slice) -> Match | list[Match]:
        """Matches are made when asked for: a row that kept what refers to it would wait for the garbage collector."""
        if isinstance(which, slice):
            return [Match(*self._near[i], self, i) for i in range(len(self))[which]]
        which = range(len(self))[which]
        return Match(*self._near[which], self, which)

    def __iter__(self) -> Iterator[Match]:
        return (Match(*near, self, i) for i, near in enumerate(self._near))

    def __len__(self) -> int:
        return len(self._near)

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
        """In words, the best grade that any match of this row has."""
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
