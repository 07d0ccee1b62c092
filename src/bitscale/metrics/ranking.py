"""Ranking: what every metric is computed from, the sizes of groups of tied items and the ranks of the hits.

Items at one distance from a query are *tied*: any order among them is a correct ranking. A tie-aware metric
needs, for each query, only where each group of tied items begins, how many items it has and how many are
relevant (groups without any relevant one need not be kept); an order-based one needs the ranks of the
relevant items in one order. `rank` finds both with one sort of integer keys (distance, shuffled id,
relevance), a block of queries at a time, so nothing of size n_queries x n_items is held: score a block,
keep its values, go on (see `score`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Bool, Int
from bitscale.errors import InputError


@dataclass(frozen=True)
class Ranking:
    """Rankings of some queries, ragged: query i owns groups `offsets[i] : offsets[i + 1]`, nearest first.

    A group is all items at one distance; those without a relevant item are left away.
    """

    n_items: Int  # (n_queries,)  items ranked for each query
    offsets: Int  # (n_queries + 1,)
    before: Int  # (n_groups,)  items of the same query that are nearer than the group
    counts: Int  # (n_groups,)  items in the group
    relevant: Int  # (n_groups,)  relevant ones among them, at least 1
    hits: Int  # (sum of n_relevant,)  1-based ranks of the relevant items, by (distance, shuffled id)

    def __len__(self) -> int:
        return len(self.n_items)

    @cached_property
    def query(self) -> Int:
        """The query each group belongs to: (n_groups,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def n_relevant(self) -> Int:
        """How many relevant items each query has: (n_queries,)."""
        return np.diff(self._running[self.offsets])

    @cached_property
    def relevant_before(self) -> Int:
        """Relevant items nearer than a group: (n_groups,)."""
        before: Int = self._running[:-1] - self._running[self.offsets[self.query]]
        return before

    @cached_property
    def hit_query(self) -> Int:
        """The query each hit belongs to: (n_hits,)."""
        return np.repeat(np.arange(len(self)), self.n_relevant)

    @cached_property
    def _running(self) -> Int:
        return np.concatenate([[0], np.cumsum(self.relevant)])


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
    levels = _levels(distances)  # (n_queries, n_items) integers from 0
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
    return _collect(keys, ordered, outside)


def _collect(levels: NDArray[Any], ordered: Bool, outside: int) -> Ranking:
    """The ragged form of levels and relevance by rank, (n_queries, n_items) each."""
    n_queries, n_items = levels.shape
    first = np.ones_like(ordered)  # where a group begins
    np.not_equal(levels[:, 1:], levels[:, :-1], out=first[:, 1:])
    starts = np.flatnonzero(first)  # (all groups + 1,) places in the flattened block
    starts = np.append(starts, first.size)
    flat_hits = np.flatnonzero(ordered)
    group = np.cumsum(first, dtype=np.int32)[flat_hits] - 1  # of each hit, ascending
    new = np.flatnonzero(np.diff(group, prepend=-1))  # the first hit of each group that has one
    with_hits = group[new]
    query = starts[with_hits] // n_items
    return Ranking(
        n_items=np.count_nonzero(levels != outside, axis=1).astype(np.int64),
        offsets=np.concatenate([[0], np.cumsum(np.bincount(query, minlength=n_queries))]),
        before=starts[with_hits] - query * n_items,
        counts=starts[with_hits + 1] - starts[with_hits],
        relevant=np.diff(new, append=flat_hits.size),
        hits=flat_hits - np.repeat(query * n_items, np.diff(new, append=flat_hits.size)) + 1,
    )


def _levels(distances: NDArray[Any]) -> Int:
    """Distances as integers from 0 in the same order."""
    if np.issubdtype(distances.dtype, np.integer):
        low, high = int(distances.min()), int(distances.max())
        if high - low < 1 << 30:
            return distances.astype(np.int64) - low
    levels = np.unique(distances, return_inverse=True)[1]
    return levels.reshape(distances.shape).astype(np.int64)


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
        n_items=np.concatenate([part.n_items for part in rankings]),
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        before=np.concatenate([part.before for part in rankings]),
        counts=np.concatenate([part.counts for part in rankings]),
        relevant=np.concatenate([part.relevant for part in rankings]),
        hits=np.concatenate([part.hits for part in rankings]),
    )
