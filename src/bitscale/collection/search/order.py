"""The order of results: the item searched for, then by distance, and ties by whatever else tells items apart.

Trained codes put many items at one distance, where an index goes by their ids. In a collection's results ties go by

    relaxed query   the distance before the query's bits were rounded, where the query is a picture
    full code       the distance by all bits stored, where only the first were compared
    id              at last

The whole group that ties with the k-th is fetched, up to TIES items more than k. The item searched for, where it is
among what is found, comes first and does not use up k. What put each row in its place is told with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, Protocol, overload

import numpy as np

from bitscale.arrays import Float, Int
from bitscale.codes import Codes, Relaxed
from bitscale.errors import InputError
from bitscale.index.base import Hits, Index, Neighbours

Decided = Literal["itself", "distance", "relaxed query", "full code", "id"]
BESIDES = 2  # items beyond k: one for the item itself, one to see whether the last of them ties
TIES = 256  # items beyond k that are fetched to put a tie in order
ROWS = 256  # queries whose ties are fetched at a time


class Overtaken(Exception):
    """Items found were removed before they could be put in order: search again."""


class Ask(Protocol):
    """How an index is searched for some of the queries."""

    def __call__(self, rows: Int, k: int) -> Hits:
        """The k nearest to the queries in these rows."""


@dataclass(frozen=True, eq=False)
class Ordered:
    """Hits in their final order, and for every query what decided each place."""

    hits: Hits | Neighbours
    decided: Sequence[tuple[Decided, ...]]


@dataclass(frozen=True, eq=False)
class Ranking:
    """How ties are decided: by relaxed queries, by full codes, or by ids."""

    index: Index
    codes: Codes  # of the queries
    relaxed: Relaxed | None  # of the queries, where they have one
    bits: int  # compared
    weights: Any = None  # other than the model's, where given

    @property
    def tells(self) -> bool:
        """Whether anything but ids can tell items at one distance apart."""
        return self.relaxed is not None or self.bits < self.index.n_bits or self.weights is not None

    def put_in_order(self, row: int, ids: Int, distances: Float, own: int | None) -> tuple[Int, Float, list[Decided]]:
        """One query's hits, the item searched for in front."""
        if bool((distances[1:] > distances[:-1]).all()) and (own is None or own not in ids[1:]):
            first: Decided = "itself" if own is not None and len(ids) and ids[0] == own else "distance"
            rest: list[Decided] = ["distance"] * (len(ids) - 1)
            return ids, distances, [first, *rest] if len(ids) else []
        is_own = ids == (-1 if own is None else own)
        others = distances[~is_own]  # ascending, as they all are
        tied = bool((others[1:] == others[:-1]).any())
        keys = self._keys(row, ids) if tied and self.tells else {}
        columns: list[Any] = [ids, *reversed(list(keys.values())), distances, ~is_own]
        order = np.lexsort(columns)
        decided = self._reasons(order, is_own, distances, keys)
        return ids[order], distances[order], decided

    def _keys(self, row: int, ids: Int) -> dict[Decided, Float]:
        """For items at one distance, the keys that put them in order."""
        try:
            items, weights = self.index.get(ids), self.index.bit_weights
        except InputError:  # removed since they were found
            raise Overtaken from None
        keys: dict[Decided, Float] = {}
        if self.relaxed is not None:
            value, signs = self.relaxed.values[row, : self.bits], items.signs()[:, : self.bits]
            apart = (weights[: self.bits] * (1 - value * signs) / 2).sum(axis=1)
            keys["relaxed query"] = np.round(apart, 12)
        if self.bits < self.index.n_bits or self.weights is not None:
            differ = np.unpackbits(self.codes.packed[row] ^ items.packed, axis=1, count=items.n_bits)
            keys["full code"] = np.round(differ @ weights, 12)
        return keys

    @staticmethod
    def _reasons(order: Int, is_own: Any, distances: Float, keys: dict[Decided, Float]) -> list[Decided]:
        """For every place, the key by which it differs from the neighbour it ties with; "distance" without a tie."""
        reasons: list[Decided] = []
        own, far, places = is_own.tolist(), distances.tolist(), order.tolist()
        columns = {name: key.tolist() for name, key in keys.items()}
        for place, at in enumerate(places):
            if own[at]:
                reasons.append("itself")
                continue
            beside = (*places[max(place - 1, 0) : place], *places[place + 1 : place + 2])
            ties = [other for other in beside if not own[other] and far[other] == far[at]]
            deciding: list[Decided] = [
                next((name for name, key in columns.items() if key[other] != key[at]), "id") for other in ties
            ]
            reasons.append(max(deciding, key=["relaxed query", "full code", "id"].index) if deciding else "distance")
        return reasons


def ordered_hits(ask: Ask, ranking: Ranking, n: int, k: int, own: list[int | None]) -> Ordered:
    """The k nearest of each of n queries, ties in order; the item searched for is one more."""
    every = np.arange(n)
    most = ranking.index.most_hits
    if most is not None and k + BESIDES > most:
        raise InputError(
            f"k can be up to {most - BESIDES:,} here, where {most:,} items a query are listed. Got k={k:,}; "
            "ask for all within a radius or a max_distance."
        )
    hits = ask(every, k + BESIDES)
    if not ranking.tells and all(one is None for one in own):
        return _as_found(hits, k)
    rows: list[tuple[Int, Float, list[Decided]]] = [
        (np.empty(0, np.int64), np.empty(0), []) for _ in range(n)
    ]  # filled below, ties last
    # where nothing tells a tie apart, the index has it in order already, but for the item searched for
    ties = [row for row in range(n) if (ranking.tells or own[row] is not None) and _ties_at_end(hits, row, k)]
    for row in sorted(set(range(n)) - set(ties)):
        rows[row] = _cut(*ranking.put_in_order(row, *_real(hits, row), own[row]), k)
    for start in range(0, len(ties), ROWS):
        open_rows = np.array(ties[start : start + ROWS])
        more = ask(open_rows, k + BESIDES + TIES if most is None else min(k + BESIDES + TIES, most))
        for place, row in enumerate(open_rows.tolist()):
            rows[row] = _cut(*ranking.put_in_order(row, *_real(more, place), own[row]), k)
    wide = max([k, *(len(ids) for ids, _, _ in rows)])
    ids, distances = np.full((n, wide), -1, np.int64), np.full((n, wide), np.inf)
    for row, (some_ids, some_distances, _) in enumerate(rows):
        ids[row, : len(some_ids)], distances[row, : len(some_ids)] = some_ids, some_distances
    return Ordered(replace(hits, ids=ids, distances=distances), tuple(tuple(reasons) for _, _, reasons in rows))


def _as_found(hits: Hits, k: int) -> Ordered:
    """Where ids alone tell ties apart, and no item is searched for: the order that the index gives."""
    first = Hits(hits.ids[:, :k], hits.distances[:, :k], hits.stats, hits.tied_beyond, hits.lacking)
    return Ordered(first, ByIds(hits, k))


class ByIds(Sequence[tuple[Decided, ...]]):
    """Why each of the first k places stands there ("distance" or "id"), where ids alone order ties; made on demand."""

    def __init__(self, hits: Hits, k: int) -> None:
        self._hits, self._k = hits, k

    def __len__(self) -> int:
        return len(self._hits)

    @overload
    def __getitem__(self, row: int) -> tuple[Decided, ...]: ...
    @overload
    def __getitem__(self, row: slice) -> list[tuple[Decided, ...]]: ...
    def __getitem__(self, row: int | slice) -> tuple[Decided, ...] | list[tuple[Decided, ...]]:
        if isinstance(row, slice):
            return [self[i] for i in range(len(self))[row]]
        distances = [distance for _, distance in self._hits[row]]
        ties = [False, *(a == b for a, b in pairwise(distances)), False]  # before and behind each place
        return tuple("id" if ties[at] or ties[at + 1] else "distance" for at in range(min(len(distances), self._k)))


def ordered_neighbours(neighbours: Neighbours, ranking: Ranking, own: list[int | None]) -> Ordered:
    """All within a radius or a distance, ties in order."""
    ids, distances, decided = neighbours.ids.copy(), neighbours.distances.copy(), []
    for row in range(len(neighbours)):
        part = slice(neighbours.offsets[row], neighbours.offsets[row + 1])
        ids[part], distances[part], ways = ranking.put_in_order(row, ids[part], distances[part], own[row])
        decided.append(tuple(ways))
    return Ordered(replace(neighbours, ids=ids, distances=distances), tuple(decided))


def _real(hits: Hits, row: int) -> tuple[Int, Float]:
    real = hits.ids[row] >= 0
    return hits.ids[row][real], hits.distances[row][real]


def _ties_at_end(hits: Hits, row: int, k: int) -> bool:
    """Whether items beyond those fetched may tie with one of the first k besides the item searched for."""
    ids, distances = hits.ids[row], hits.distances[row]
    return bool(ids[-1] >= 0 and distances[-1] == distances[min(k - 1, len(distances) - 1)])


def _cut(ids: Int, distances: Float, decided: list[Decided], k: int) -> tuple[Int, Float, list[Decided]]:
    """The first k, with the item searched for besides."""
    n = k + (decided[:1] == ["itself"])
    return ids[:n], distances[:n], decided[:n]
