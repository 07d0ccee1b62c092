"""The same kernel in NumPy: slower, always there. It reads the same layout and gives the same answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bitscale.hamming import CostTerms, integer_distances
from bitscale.native.layout import I64, LANES, STEP, U8, U32, U64, Plan, Queries, Segment, Stats, flags_of

Float = NDArray[np.float64]
NumpyView = list[tuple[U8, I64]]  # per segment: codes and ids of the items that may be found


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
        """No planning here either."""
        return 0

    def view(
        self, segments: Sequence[Segment], alive: Sequence[U64 | None], allowed: Sequence[U64 | None] | None = None
    ) -> NumpyView:
        """Codes and ids of the items that live and are allowed."""
        view = []
        for i, segment in enumerate(segments):
            codes, ids = segment.items()
            keep = flags_of(alive[i], len(ids)) & flags_of(None if allowed is None else allowed[i], len(ids))
            view.append((codes[keep], ids[keep]))
        return view

    def plans(self, plans: Sequence[Plan]) -> None:
        """Nothing to plan."""

    def cost_rows(self, costs: NDArray[np.int32], unit: Float) -> tuple[NDArray[np.int32], Float]:
        """Costs and units of `CostTerms`, ready for `search` and `lookup`."""
        return costs, unit

    def search(
        self, view: NumpyView, plans: None, queries: Queries, k: int, strategy: str, threads: int
    ) -> tuple[I64, Float, Stats]:
        """The k first items by (distance, id) for each query."""
        n = len(queries.packed)
        ids, distances = np.full((n, k), -1, np.int64), np.full((n, k), np.inf)
        for i, (values, found) in enumerate(_ranked(view, queries, k)):
            ids[i, : len(found)] = found
            distances[i, : len(found)] = values
        return ids, distances, Stats()

    def lookup(
        self, view: NumpyView, plans: None, queries: Queries, radius: NDArray[np.int32], strategy: str, threads: int
    ) -> tuple[I64, I64, Float, Stats]:
        """All items within an integer radius of each query: (offsets, ids, distances)."""
        rows = list(_ranked(view, queries, None, radius))
        offsets = np.cumsum([0, *(len(found) for _, found in rows)]).astype(np.int64)
        values = np.concatenate([np.empty(0), *(values for values, _ in rows)])
        ids = np.concatenate([np.empty(0, np.int64), *(found for _, found in rows)])
        return offsets, ids, values, Stats()


def _ranked(
    view: NumpyView, queries: Queries, k: int | None, radius: NDArray[np.int32] | None = None
) -> Iterator[tuple[Float, I64]]:
    """Distances and ids of each query's first k items, or of those within its radius, by (distance, id)."""
    costs, unit = queries.rows
    base = np.zeros(len(queries.packed)) if queries.base is None else queries.base
    terms = CostTerms(queries.packed, costs, unit, base)
    all_ids = np.concatenate([np.empty(0, np.int64), *(ids for _, ids in view)])
    for i in range(len(terms.packed)):
        summed = np.concatenate([np.empty(0, np.int32), *(integer_distances(terms, i, codes) for codes, _ in view)])
        rows = np.arange(len(summed))
        if radius is not None:
            rows = np.flatnonzero(summed <= radius[i])
        elif k is not None and k < len(summed):
            rows = np.flatnonzero(summed <= np.partition(summed, k - 1)[k - 1])
        order = rows[np.lexsort((all_ids[rows], summed[rows]))][:k]
        yield summed[order] * terms.unit[i % len(terms.unit)] + terms.base[i], all_ids[order]
