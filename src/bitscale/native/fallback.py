"""The same kernel in NumPy: slower, always there. It reads the same layout and gives the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.hamming import CostTerms, integer_distances
from bitscale.native.layout import I64, LANES, STEP, U8, U32, U64, Centres, Plan, Queries, Segment, Stats, flags_of

Float = NDArray[np.float64]


class NumpyView:
    """The items that live and are allowed; worked out on first use."""

    def __init__(
        self, segments: Sequence[Segment], alive: Sequence[U64 | None], allowed: Sequence[U64 | None] | None
    ) -> None:
        self._parts = list(zip(segments, alive, allowed or [None] * len(segments), strict=True))

    @cached_property
    def items(self) -> list[tuple[U8, I64]]:
        """Codes and ids, by segment."""
        living = []
        for segment, alive, allowed in self._parts:
            codes, ids = segment.items()
            keep = flags_of(alive, len(ids)) & flags_of(allowed, len(ids))
            living.append((codes[keep], ids[keep]))
        return living


class NumpyKernel:
    """Every search is the paper's linear scan by 8-bit tables; plans are ignored."""

    name = "numpy"
    plans_matter = False

    def sort(self, codes: U8, threads: int) -> tuple[U32, U32 | None, U8]:
        """Sort codes (n, n_bytes), equal ones once: (ordinals, item offsets or None, distinct codes)."""
        n = len(codes)
        order = np.lexsort(codes.T[::-1]).astype(np.uint32)
        ordered = codes[order]
        fresh = np.ones(n, np.bool_)
        fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        starts = np.flatnonzero(fresh)
        offsets = None if len(starts) == n else np.append(starts, n).astype(np.uint32)
        return order, offsets, ordered[starts]

    def table(self, distinct: U8, first_bit: int, width: int, threads: int) -> tuple[U32, U8, U32 | None]:
        """Lay out one table over sorted distinct codes: (offsets, blocks, positions or None for table 0)."""
        n, n_bytes = distinct.shape
        bits = np.unpackbits(distinct, axis=1)[:, first_bit : first_bit + width]
        keys = bits.astype(np.int64) @ (1 << np.arange(width - 1, -1, -1, dtype=np.int64))  # (n,)
        positions = np.argsort(keys, kind="stable").astype(np.uint32) if first_bit else None
        rows = distinct if positions is None else distinct[positions]
        blocks = np.zeros((-(-n // LANES) * LANES, n_bytes), np.uint8)
        blocks[:n] = rows
        offsets = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=1 << width))]).astype(np.uint32)
        return offsets, np.ascontiguousarray(blocks.reshape(-1, LANES, n_bytes).transpose(0, 2, 1)), positions

    def trim(self) -> None:
        """NumPy looks after its own memory."""

    def schedule(
        self, segment: Segment, n_tables: int, costs: NDArray[np.int32], bits: int, probe_codes: float, capacity: int
    ) -> tuple[NDArray[np.void], NDArray[np.float32], int]:
        """No probing here, so no schedule."""
        return np.empty(0, STEP), np.empty(0, np.float32), 0

    def forecast(self, costs: NDArray[np.int32], bits: int, share: float) -> int:
        """0: nothing is planned here."""
        return 0

    def centres(self, segment: Segment) -> None:
        """None: this kernel does not look for centres."""

    def radii(self, segment: Segment, centres: Centres, costs: NDArray[np.int32], bits: int) -> NDArray[np.int32]:
        """An empty array, as there are no centres."""
        return np.empty(0, np.int32)

    def view(
        self, segments: Sequence[Segment], alive: Sequence[U64 | None], allowed: Sequence[U64 | None] | None = None
    ) -> NumpyView:
        """Segments and bitmaps, ready for `search` and `lookup`."""
        return NumpyView(segments, alive, allowed)

    def plans(self, plans: Sequence[Plan]) -> None:
        """No plans: this kernel has no search to plan."""

    def cost_rows(self, costs: NDArray[np.int32], unit: Float) -> tuple[NDArray[np.int32], Float]:
        """Costs and units of `CostTerms`, ready for `search` and `lookup`."""
        return costs, unit

    def prepare(
        self, view: NumpyView, plans: None, costs: Any, bits: int, k: int, mode: str, threads: int
    ) -> Callable[[U8], tuple[I64, Float, Stats]]:
        """A search with everything fixed but the queries."""
        return lambda packed: self.search(view, plans, Queries(costs, packed, None, bits), k, mode, threads)

    def search(
        self, view: NumpyView, plans: None, queries: Queries, k: int, mode: str, threads: int
    ) -> tuple[I64, Float, Stats]:
        """The k first items by (distance, id) for each query."""
        n = len(queries.packed)
        ids, distances = np.full((n, k), -1, np.int64), np.full((n, k), np.inf)
        for i, (values, nearest) in enumerate(_ranked(view, queries, k)):
            ids[i, : len(nearest)] = nearest
            distances[i, : len(nearest)] = values
        return ids, distances, Stats()

    def lookup(
        self, view: NumpyView, plans: None, queries: Queries, radius: NDArray[np.int32], mode: str, threads: int
    ) -> tuple[I64, I64, Float, Stats]:
        """All items within an integer radius of each query: (offsets, ids, distances)."""
        rows = list(_ranked(view, queries, None, radius))
        offsets = np.cumsum([0, *(len(near) for _, near in rows)]).astype(np.int64)
        values = np.concatenate([np.empty(0), *(values for values, _ in rows)])
        ids = np.concatenate([np.empty(0, np.int64), *(near for _, near in rows)])
        return offsets, ids, values, Stats()


def _ranked(
    view: NumpyView, queries: Queries, k: int | None, radius: NDArray[np.int32] | None = None
) -> Iterator[tuple[Float, I64]]:
    """Distances and ids of each query's first k items, or of those within its radius, by (distance, id)."""
    costs, unit = queries.rows
    base = np.zeros(len(queries.packed)) if queries.base is None else queries.base
    terms = CostTerms(queries.packed, costs, unit, base)
    all_ids = np.concatenate([np.empty(0, np.int64), *(ids for _, ids in view.items)])
    for i in range(len(terms.packed)):
        summed = np.concatenate(
            [np.empty(0, np.int32), *(integer_distances(terms, i, codes) for codes, _ in view.items)]
        )
        rows = np.arange(len(summed))
        if radius is not None:
            rows = np.flatnonzero(summed <= radius[i])
        elif k is not None and k < len(summed):
            rows = np.flatnonzero(summed <= np.partition(summed, k - 1)[k - 1])
        order = rows[np.lexsort((all_ids[rows], summed[rows]))][:k]
        yield summed[order] * terms.unit[i % len(terms.unit)] + terms.base[i], all_ids[order]
