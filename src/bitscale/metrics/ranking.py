"""Ranking: what every metric is computed from, the sizes of groups of tied items and the ranks of the hits.

Items at one distance from a query are *tied*: any order among them is a correct ranking. A tie-aware metric
needs, for each query, only how many items and how many relevant items lie at each distinct distance; an
order-based one needs the ranks of the relevant items in one order. `rank` finds both with one sort of
integer keys (distance, shuffled id, relevance), a block of queries at a time, so nothing of size
n_queries x n_items is held: score a block, keep its values, go on (see `score`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.errors import InputError

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Ranking:
    """Rankings of some queries, ragged: query i owns groups `offsets[i] : offsets[i + 1]`, nearest first."""

    offsets: Int  # (n_queries + 1,)
    distances: NDArray[Any]  # (n_groups,)  the distance shared by a group
    counts: Int  # (n_groups,)  items in a group, at least 1
    relevant: Int  # (n_groups,)  relevant ones among them
    hits: Int  # (sum of n_relevant,)  1-based ranks of the relevant items, by (distance, shuffled id)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def query(self) -> Int:
        """The query each group belongs to: (n_groups,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def n_items(self) -> Int:
        """How many items each query ranks: (n_queries,)."""
        return self._total(self.counts)

    @cached_property
    def n_relevant(self) -> Int:
        """How many of them are relevant: (n_queries,)."""
        return self._total(self.relevant)

    @cached_property
    def before(self) -> Int:
        """Items nearer than a group, in its own query's ranking: (n_groups,)."""
        return self._before(self.counts)

    @cached_property
    def relevant_before(self) -> Int:
        """Relevant items nearer than a group: (n_groups,)."""
        return self._before(self.relevant)

    @cached_property
    def hit_query(self) -> Int:
        """The query each hit belongs to: (n_hits,)."""
        return np.repeat(np.arange(len(self)), self.n_relevant)

    def _total(self, values: Int) -> Int:
        ends = np.concatenate([[0], np.cumsum(values)])[self.offsets]
        return np.diff(ends)

    def _before(self, values: Int) -> Int:
        running = np.concatenate([[0], np.cumsum(values)])
        before: Int = running[:-1] - running[self.offsets[self.query]]
        return before


def rank(
    distances: NDArray[Any],
    relevant: Bool,
    *,
    left_out: Sequence[Int] | None = None,
    seed: int = 0,
) -> Ranking:
    """Rank every item for a block of queries. Integer distances are several times faster than real ones.

    `distances` (n_queries, n_items), smaller is nearer; `relevant` bool of the same shape; `left_out` one
    array of item numbers a query, which count neither as items nor as relevant. The order-based metrics
    break ties by id after one shuffle of the ids, drawn with `seed` and the same for every query.
    """
    distances, relevant = np.asarray(distances), np.asarray(relevant)
    _check(distances, relevant, left_out)
    n_items = distances.shape[1]
    levels, values = _levels(distances)  # (n_queries, n_items) int64 >= 0; what a level stands for
    outside = int(levels.max()) + 1  # the level of items left out: past every other
    relevant = relevant.copy() if left_out is not None else relevant
    for i, rows in enumerate(left_out or ()):
        levels[i, rows], relevant[i, rows] = outside, False
    shift = max(n_items - 1, 1).bit_length() + 1
    key_type: type[np.signedinteger[Any]] = np.int32 if outside < 1 << (31 - shift) else np.int64
    shuffled = np.random.default_rng(seed).permutation(n_items)  # (n_items,) place of each id in the shuffle
    keys: NDArray[Any] = levels.astype(key_type)
    keys <<= shift
    keys |= (shuffled << 1).astype(key_type)
    keys |= relevant
    keys.sort(axis=1)
    ordered = (keys & 1).astype(bool)  # (n_queries, n_items) relevance by rank
    keys >>= shift
    return _collect(keys, ordered, outside, values)


def _collect(levels: NDArray[Any], ordered: Bool, outside: int, values: NDArray[Any]) -> Ranking:
    """The ragged form of levels and relevance by rank, (n_queries, n_items) each."""
    n_queries, n_items = levels.shape
    first = np.ones_like(ordered)  # where a group begins
    np.not_equal(levels[:, 1:], levels[:, :-1], out=first[:, 1:])
    starts = np.flatnonzero(first)
    counts = np.diff(starts, append=first.size)
    flat_hits = np.flatnonzero(ordered)
    relevant = np.diff(np.searchsorted(flat_hits, starts), append=0)
    relevant[-1] += flat_hits.size
    level, query = levels.reshape(-1)[starts].astype(np.int64), starts // n_items
    kept = level != outside
    offsets = np.concatenate([[0], np.cumsum(np.bincount(query[kept], minlength=n_queries))])
    return Ranking(offsets, values[level[kept]], counts[kept], relevant[kept], flat_hits % n_items + 1)


def _levels(distances: NDArray[Any]) -> tuple[Int, NDArray[Any]]:
    """Distances as integers from 0 in the same order, and the distance each integer stands for."""
    if np.issubdtype(distances.dtype, np.integer):
        low, high = int(distances.min()), int(distances.max())
        if high - low < 1 << 24:
            return distances.astype(np.int64) - low, np.arange(low, high + 1)
    values, levels = np.unique(distances, return_inverse=True)
    return levels.reshape(distances.shape).astype(np.int64), values


def _check(distances: NDArray[Any], relevant: Bool, left_out: Sequence[Int] | None) -> None:
    if distances.ndim != 2 or distances.shape != relevant.shape or relevant.dtype != np.bool_:
        raise InputError(
            "distances and relevant must both be (n_queries, n_items), relevant of bool. "
            f"Got {distances.dtype} {distances.shape} and {relevant.dtype} {relevant.shape}."
        )
    if not distances.size:
        raise InputError(
            f"there is nothing to rank: {distances.shape[0]} queries and {distances.shape[1]} items. "
            "Give at least one of each."
        )
    if not np.issubdtype(distances.dtype, np.integer) and np.isnan(distances).any():
        raise InputError("distances must not be NaN. Use inf for items that are farther than all others.")
    if left_out is not None and len(left_out) != len(distances):
        raise InputError(f"left_out must hold one array a query ({len(distances)}). Got {len(left_out)}.")


def concatenate(rankings: Sequence[Ranking]) -> Ranking:
    """The rankings of several blocks of queries as one."""
    if not rankings:
        raise InputError("there is no ranking to put together: the query set is empty. Give some queries.")
    sizes = np.concatenate([np.diff(part.offsets) for part in rankings])
    return Ranking(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([part.distances for part in rankings]),
        np.concatenate([part.counts for part in rankings]),
        np.concatenate([part.relevant for part in rankings]),
        np.concatenate([part.hits for part in rankings]),
    )
