"""The interface of every index, and its results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale.codes import Codes, Relaxed, check_same_space
from bitscale.errors import InputError
from bitscale.native.layout import Stats

I64 = NDArray[np.int64]
Float = NDArray[np.float64]

QUERIES = (Codes, Relaxed)
MOST_HITS = 1 << 28  # in one result: 4 GB


@dataclass(frozen=True, eq=False)
class Hits:
    """The first k items for each query, by (distance, id); short rows end in id -1 and distance inf."""

    ids: I64  # (n_queries, k)
    distances: Float  # (n_queries, k)
    stats: Stats | None = None  # what the search did, where the engine tells
    tied_beyond: NDArray[np.bool_] | None = None  # (n_queries,)  more items tie with the last than the engine lists
    lacking: tuple[str, ...] = ()  # parts of the index that did not answer, where the caller allowed that

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, query: int) -> list[tuple[int, float]]: ...
    @overload
    def __getitem__(self, query: slice) -> Hits: ...
    def __getitem__(self, query: int | slice) -> list[tuple[int, float]] | Hits:
        """One query's hits as (id, distance) pairs, without padding; or the hits of some queries."""
        if isinstance(query, slice):
            beyond = None if self.tied_beyond is None else self.tied_beyond[query]
            return Hits(self.ids[query], self.distances[query], tied_beyond=beyond, lacking=self.lacking)
        query = range(len(self))[query]
        ids, distances = self.ids[query].tolist(), self.distances[query].tolist()
        n = ids.index(-1) if ids and ids[-1] < 0 else len(ids)
        return list(zip(ids[:n], distances[:n], strict=True))

    def __iter__(self) -> Iterator[list[tuple[int, float]]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Hits({self.ids.shape[0]} queries x k={self.ids.shape[1]})"


@dataclass(frozen=True, eq=False)
class Neighbours:
    """All items within a radius of each query, by (distance, id): rows of different lengths, end to end."""

    offsets: I64  # (n_queries + 1,)
    ids: I64
    distances: Float
    stats: Stats | None = None
    lacking: tuple[str, ...] = ()  # as in Hits

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, query: int) -> list[tuple[int, float]]:
        """One query's neighbours as (id, distance) pairs."""
        query = range(len(self))[query]
        row = slice(self.offsets[query], self.offsets[query + 1])
        return list(zip(self.ids[row].tolist(), self.distances[row].tolist(), strict=True))

    def __iter__(self) -> Iterator[list[tuple[int, float]]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Neighbours({len(self)} queries, {len(self.ids)} items)"


class Index(ABC):
    """Codes under ids, searched by weighted Hamming distance over their first `bits` bits.

    Results are sorted by (distance, id). Ids are int64 >= 0, never renumbered; automatic ids are never
    reused; a removed id may be added again. The index's own weights count, unless `weights=` overrides them.
    """

    bit_weights: Float
    n_bits: int
    model: str | None
    most_hits: int | None = None  # that it lists for one query; None: as many as there are
    _compared: tuple[Float, str | None] | None = None  # weights, which are never changed, and model of the last queries

    @abstractmethod
    def __len__(self) -> int:
        """How many items can be found."""

    @abstractmethod
    def add(self, codes: Codes, ids: ArrayLike | None = None) -> I64:
        """Add codes and return their ids; without `ids` they are numbered on."""

    @abstractmethod
    def remove(self, ids: ArrayLike) -> int:
        """Remove items and return how many there were; unknown ids are ignored."""

    @abstractmethod
    def get(self, ids: ArrayLike) -> Codes:
        """The codes of some items, in the order asked for."""

    @abstractmethod
    def ids(self) -> I64:
        """The ids of all items, ascending."""

    @abstractmethod
    def holding(self, ids: ArrayLike) -> I64:
        """Those of `ids` that can be found here."""

    def __contains__(self, item: object) -> bool:
        return isinstance(item, int | np.integer) and int(item) >= 0 and len(self.holding([int(item)])) > 0

    @abstractmethod
    def prepare(self, ids: ArrayLike) -> object:
        """A filter for `where=` made once; it stays valid under add and remove (new items are outside it)."""

    @abstractmethod
    def search(
        self,
        codes: Codes | Relaxed,
        k: int,
        *,
        bits: int | None = None,
        where: Any = None,
        weights: ArrayLike | None = None,
    ) -> Hits:
        """The k nearest items to each query."""

    @abstractmethod
    def lookup(
        self,
        codes: Codes | Relaxed,
        radius: int | None = None,
        *,
        max_distance: float | None = None,
        bits: int | None = None,
        weights: ArrayLike | None = None,
        where: Any = None,
    ) -> Neighbours:
        """All items within `radius` differing bits, or within a weighted `max_distance`, of each query."""

    @abstractmethod
    def close(self) -> None:
        """Let go of memory and files."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check_query(self, codes: Codes | Relaxed) -> None:
        """Refuse what cannot be compared with the stored codes."""
        if not isinstance(codes, QUERIES):
            raise InputError(
                f"expected Codes or Relaxed. Got {type(codes).__name__}; wrap packed bits with Codes.from_packed."
            )
        weights, model = self._compared or (self.bit_weights, self.model)
        if codes.bit_weights is not weights or codes.model != model:
            check_same_space(codes, self, "this index")
            self._compared = codes.bit_weights, codes.model

    def check_codes(self, codes: Codes) -> None:
        """Refuse what cannot be stored beside the stored codes."""
        if not isinstance(codes, Codes):
            hint = (
                "take .codes() of relaxed values"
                if isinstance(codes, Relaxed)
                else "wrap packed bits with Codes.from_packed"
            )
            raise InputError(f"expected Codes. Got {type(codes).__name__}; {hint}.")
        check_same_space(codes, self, "this index")


def check_k(k: int, n_queries: int) -> int:
    """Return k as a plain int of at least 1, such that a result fits into memory."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputError(f"k must be a whole number. Got {k!r}.")
    if k < 1:
        raise InputError(f"k must be at least 1. Got {k}.")
    if k * n_queries > MOST_HITS:
        raise InputError(
            f"k times the number of queries must stay below {MOST_HITS:,}. Got {k} x {n_queries}; "
            "search fewer queries at a time, or use lookup for all items within a distance."
        )
    return int(k)


def check_threads(threads: int) -> int:
    """Return threads as a plain int of at least 1."""
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InputError(f"threads must be a whole number of at least 1. Got {threads!r}.")
    return min(int(threads), 256)


def check_segment_items(items: int, most: int) -> int:
    """Return a segment's size as a plain int, at least 1 and not more than `most`."""
    if isinstance(items, bool) or not isinstance(items, int | np.integer) or items < 1:
        raise InputError(f"segment_items must be a whole number of at least 1. Got {items!r}.")
    return min(int(items), most)


def check_radius(radius: int, bits: int) -> int:
    """Return a radius in bits as a plain int, not more than there are bits."""
    if isinstance(radius, bool) or not isinstance(radius, int | np.integer) or radius < 0:
        raise InputError(f"radius must be a whole number of bits, 0 or more. Got {radius!r}.")
    return min(int(radius), bits)


def check_distance(distance: float) -> float:
    """Return a weighted distance as a plain float, 0 or more."""
    try:
        value = float(distance)
    except (TypeError, ValueError):
        value = float("nan")
    if not value >= 0:
        raise InputError(f"max_distance must be a number, 0 or more. Got {distance!r}.")
    return value


def check_reach(radius: int | None, max_distance: float | None, weights: ArrayLike | None, bits: int) -> int | float:
    """The one of the two ways to say how far a lookup reaches, checked: an int counts bits, a float is weighted."""
    if (radius is None) == (max_distance is None):
        raise InputError("give exactly one of radius (differing bits) and max_distance (weighted).")
    if max_distance is not None:
        return check_distance(max_distance)
    assert radius is not None
    if weights is not None:
        raise InputError("radius counts differing bits, whatever they weigh. Use max_distance with weights.")
    return check_radius(radius, bits)


def check_ids(ids: ArrayLike, n: int | None = None) -> I64:
    """Ids as int64 (n,), all >= 0."""
    array = np.asarray(ids)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim == 0:
        array = array[None]
    if array.dtype == np.bool_:
        raise InputError("ids must be numbers, not flags. Turn a mask into ids with np.flatnonzero(mask).")
    if array.dtype == object and all(isinstance(id, int) for id in array.flat):
        raise InputError(f"ids must be between 0 and 2^63 - 1. Got {max(array.flat, key=abs)}.")
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"ids must be one row of whole numbers. Got {array.dtype} of shape {array.shape}.")
    if n is not None and len(array) != n:
        raise InputError(f"give one id a code ({n}). Got {len(array)} ids.")
    if array.size and (array.min() < 0 or array.max() > np.iinfo(np.int64).max):
        raise InputError(f"ids must be between 0 and 2^63 - 1. Got {array.min() if array.min() < 0 else array.max()}.")
    return np.ascontiguousarray(array, np.int64)


def refuse_twice(ascending: I64) -> None:
    """Raise an error where an id is given more than once."""
    twice = ascending[1:][ascending[1:] == ascending[:-1]]
    if len(twice):
        raise InputError(f"id {twice[0]} is given twice. Give every code its own id.")


def refuse_known(known: I64) -> None:
    """Raise an error where ids to be added are there already."""
    if len(known):
        raise InputError(
            f"id {known[0]} is already in this index ({len(known)} such). Remove it first, or choose others."
        )


def refuse_missing(missing: I64) -> None:
    """Raise an error where ids asked for are not there."""
    if len(missing):
        raise InputError(f"id {missing[0]} is not in this index ({len(missing)} such).")


def refuse_other(made_by: object, index: Index) -> None:
    """Raise an error where a filter was made by another index than the one that is searched."""
    if made_by is not index:
        raise InputError("where= was prepared by another index. Call prepare on this one.")
