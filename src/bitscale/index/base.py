"""What every index promises, and the results it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale.codes import Codes, Relaxed, same_space
from bitscale.errors import InputError, ModelMismatch

I64 = NDArray[np.int64]
Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Hits:
    """The first k items for each query, by (distance, id); short rows end in id -1 and distance inf."""

    ids: I64  # (n_queries, k)
    distances: Float  # (n_queries, k)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, query: int) -> list[tuple[int, float]]:
        """One query's hits as (id, distance) pairs, without padding."""
        found = self.ids[query] >= 0
        return list(zip(self.ids[query][found].tolist(), self.distances[query][found].tolist(), strict=True))

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

    def check_same_space(self, codes: Codes | Relaxed) -> None:
        """Refuse codes whose distances to the stored ones would mean nothing."""
        if not isinstance(codes, Codes | Relaxed):
            raise InputError(
                f"expected Codes or Relaxed. Got {type(codes).__name__}; wrap packed bits with Codes.from_packed."
            )
        if codes.bit_weights is self.bit_weights and codes.model == self.model:
            return
        if codes.n_bits != self.n_bits:
            raise ModelMismatch(
                f"this index stores {self.n_bits}-bit codes. Got {codes.n_bits}-bit codes; "
                "encode with the index's model, and use bits= to search with fewer bits."
            )
        if not same_space(codes, self):
            if codes.model is not None and self.model is not None:
                raise ModelMismatch(
                    f"these codes come from model {codes.model!r}, the index holds codes of {self.model!r}. "
                    "Encode again with the index's model."
                )
            raise ModelMismatch(
                "these codes carry other bit weights than the index. Encode with the index's model, "
                "or build the codes with the index's bit_weights and pass weights= to rank by others."
            )


def check_k(k: int) -> int:
    """Return k as a plain int of at least 1."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer):
        raise InputError(f"k must be a whole number. Got {k!r}.")
    if k < 1:
        raise InputError(f"k must be at least 1. Got {k}.")
    return int(k)


def check_ids(ids: ArrayLike, n: int | None = None) -> I64:
    """Ids as int64 (n,), all >= 0."""
    array = np.asarray(ids)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim == 0:
        array = array[None]
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(f"ids must be one row of whole numbers. Got {array.dtype} of shape {array.shape}.")
    if n is not None and len(array) != n:
        raise InputError(f"give one id a code ({n}). Got {len(array)} ids.")
    if array.size and (array.min() < 0 or array.max() > np.iinfo(np.int64).max):
        raise InputError(f"ids must be between 0 and 2^63 - 1. Got {array.min() if array.min() < 0 else array.max()}.")
    return np.ascontiguousarray(array, np.int64)
