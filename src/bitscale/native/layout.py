"""The segment layout as arrays: what `src/layout.hpp` says in C++, said in NumPy.

Codes stand in blocks of 32, one byte plane after another; equal codes are stored once. Table 0 is the
codes themselves in sorted order, further tables are copies in the bucket order of other key bits.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LANES = 32

U8 = NDArray[np.uint8]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
EVERYTHING = 1 << 28  # kEverything: a bound no distance reaches
STEP = np.dtype([("probe", np.uint32), ("bound", np.int32)])


@dataclass(frozen=True, eq=False)
class Table:
    """Buckets by the bits [first_bit, first_bit + width)."""

    first_bit: int
    width: int
    offsets: U32  # (2^width + 1,)
    blocks: U8  # (n_blocks, n_bytes, 32)
    positions: U32 | None  # (n_codes,) row -> row in table 0; None for table 0 itself


@dataclass(frozen=True, eq=False)
class Segment:
    """Distinct codes and the items that carry them. Never changed once made.

    An item's *ordinal* is its rank by id; bitmaps of living and of allowed items are over ordinals.
    """

    n_codes: int
    n_bytes: int
    tables: tuple[Table, ...]
    item_offsets: U32 | None  # (n_codes + 1,) into ordinals; None when every code has one item
    ordinals: U32  # (n_items,) in code order, ascending within a code
    ids: I64 | None  # (n_items,) by ordinal, ascending; None: first_id + ordinal
    first_id: int

    @property
    def n_items(self) -> int:
        """How many items, dead ones included."""
        return len(self.ordinals)

    @property
    def last_id(self) -> int:
        """The largest id, dead ones included."""
        return int(self.ids[-1]) if self.ids is not None else self.first_id + self.n_items - 1

    @property
    def lowest_id(self) -> int:
        """The smallest id, dead ones included."""
        return self.first_id if self.ids is None else int(self.ids[0])

    @cached_property
    def rows(self) -> U32:
        """The row of each item's code by ordinal, (n_items,): made on first use."""
        rows = np.empty(self.n_items, np.uint32)
        in_order = np.arange(self.n_codes, dtype=np.uint32)
        rows[self.ordinals] = in_order if self.item_offsets is None else np.repeat(in_order, np.diff(self.item_offsets))
        return rows

    def codes(self) -> U8:
        """The distinct codes, (n_codes, n_bytes), in sorted order."""
        return self.tables[0].blocks.transpose(0, 2, 1).reshape(-1, self.n_bytes)[: self.n_codes]

    def some_codes(self, rows: NDArray[Any]) -> U8:
        """The distinct codes at `rows` of the sorted order."""
        return np.ascontiguousarray(self.tables[0].blocks[rows // LANES, :, rows % LANES])

    def all_ids(self) -> I64:
        """Ids by ordinal, ascending."""
        if self.ids is not None:
            return self.ids
        return np.arange(self.first_id, self.first_id + self.n_items, dtype=np.int64)

    def ids_of(self, ordinals: I64) -> I64:
        """Ids of some items."""
        return ordinals + self.first_id if self.ids is None else self.ids[ordinals]

    def items(self) -> tuple[U8, I64]:
        """Codes and ids of all items, ordered by id."""
        codes = self.codes()
        if self.item_offsets is not None:
            codes = np.repeat(codes, np.diff(self.item_offsets), axis=0)
        by_ordinal = np.empty_like(codes)
        by_ordinal[self.ordinals] = codes
        return by_ordinal, self.all_ids()

    def find(self, ids: I64) -> tuple[I64, NDArray[np.bool_]]:
        """Ordinals of `ids`, and which of them are here at all (the other ordinals mean nothing)."""
        if self.ids is None:
            ordinals = ids - self.first_id
            return ordinals, (ordinals >= 0) & (ordinals < self.n_items)
        ordinals = np.searchsorted(self.ids, ids)
        here = ordinals < self.n_items
        here[here] = self.ids[ordinals[here]] == ids[here]
        return ordinals, here

    def arrays(self) -> list[NDArray[Any]]:
        """Every array it is made of."""
        parts: list[NDArray[Any] | None] = [self.item_offsets, self.ordinals, self.ids]
        for table in self.tables:
            parts += [table.offsets, table.blocks, table.positions]
        return [part for part in parts if part is not None]


class Centres(NamedTuple):
    """Where codes crowd: see `src/centres.hpp`. The radii hold for one row of costs."""

    codes: U8  # (n, n_bytes)
    homes: U8  # (n_codes,) the centre of each row of table 0; 255: none
    begins: U32  # (n + 2,) into blocks
    blocks: U32  # each centre's blocks with more than a few of its codes, then those with codes of none
    strays: Table  # copies of the other codes; a bucket a centre, the last of codes of none
    radius: NDArray[np.int32]  # (n,)


class Plan(NamedTuple):
    """The planner's orders to a kernel for one segment: see `Plan` in `src/search.hpp`. Times in nanoseconds."""

    steps: NDArray[np.void] | None = None  # (n_steps,) STEP; None: every query draws its own
    codes: NDArray[np.float32] | None = None  # (n_steps,) expected codes met so far
    final_bound: int = 0
    n_tables: int = 0  # 0: flat scan only
    expected_ns: float = 0.0
    probe_ns: float = 0.0
    code_ns: float = 0.0
    draw_ns: float = 0.0
    block_ns: float = 10.0
    block_batch_ns: float = 10.0
    centres: Centres | None = None


class Queries(NamedTuple):
    """Queries as a kernel takes them: `hamming.CostTerms`, the costs in the kernel's own form, and `bits`."""

    rows: Any  # from the kernel's cost_rows
    packed: U8  # (n, n_bytes)
    base: NDArray[np.float64] | None  # (n,); None: 0
    bits: int


class Stats(ctypes.Structure):
    """Counts and times of one call, from which the planner measures costs."""

    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("steps", "codes", "blocks", "flat_queries", "probe_ns", "flat_ns")
    )
    steps: int  # buckets probed
    codes: int  # codes in them
    blocks: int  # blocks of 32 codes filtered by flat scans
    flat_queries: int  # queries, times segments, that took a flat scan
    probe_ns: int
    flat_ns: int


def count_bits(bitmap: U64) -> int:
    """How many bits are set."""
    return int(np.bitwise_count(bitmap).sum())


def bitmap_of(ordinals: I64, n: int) -> U64:
    """A bitmap over `n` ordinals with the given ones set; bits past `n` are 0."""
    flags = np.zeros(-(-n // 64) * 64, np.uint8)
    flags[ordinals] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)


def all_bits(n: int) -> U64:
    """A bitmap over `n` ordinals with all of them set; bits past `n` are 0."""
    bitmap = np.full(-(-n // 64), ~np.uint64(0))
    if n % 64:
        bitmap[-1] = (1 << n % 64) - 1
    return bitmap


def bits_set(bitmap: U64 | None, ordinals: I64) -> NDArray[np.bool_]:
    """Whether the bit of each ordinal is set; no bitmap means all are."""
    if bitmap is None:
        return np.ones(len(ordinals), np.bool_)
    words: U64 = bitmap[ordinals >> 6] >> (ordinals & 63).astype(np.uint64)
    return (words & np.uint64(1)).astype(np.bool_)


def without_bits(bitmap: U64 | None, ordinals: I64, n: int) -> U64:
    """A copy of a bitmap over `n` ordinals with some bits cleared."""
    copy = all_bits(n) if bitmap is None else bitmap.copy()
    np.bitwise_and.at(copy, ordinals >> 6, ~(np.uint64(1) << (ordinals & 63).astype(np.uint64)))
    return copy


def flags_of(bitmap: U64 | None, n: int) -> NDArray[np.bool_]:
    """A bitmap as (n,) bool; no bitmap means all."""
    if bitmap is None:
        return np.ones(n, np.bool_)
    return np.unpackbits(bitmap.view(np.uint8), bitorder="little", count=n).view(np.bool_)
