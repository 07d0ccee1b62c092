"""The compiled kernel, reached through its plain C functions."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.errors import InputError
from bitscale.native.layout import I64, LANES, STEP, U8, U32, U64, Centres, Plan, Queries, Segment, Stats, Table
from bitscale.native.structs import (
    CallStruct,
    CostRows,
    Plans,
    QueriesStruct,
    View,
    address,
    aligned,
    face_of,
    many,
    maybe_address,
)

Float = NDArray[np.float64]
INT, FLOAT = np.dtype(np.int64), np.dtype(np.float64)

MODES = {"auto": 0, "flat": 1, "probe": 2}
MAX_CENTRES = 255
STRAYS = 12  # one of so many codes may be copied to stand beside those of the same centre
FILTERS = ("avx512", "avx2", "portable")


class Prepared:
    """A search with everything fixed but the queries: what a lone query needs on its way is looked up once."""

    def __init__(self, lib: Any, call: CallStruct, keep: tuple[Any, ...]) -> None:
        self._run, self._at, self._keep = lib.bitscale_search, byref(call), (lib, call, *keep)
        self._k, self._n_bytes, self._row = call.k, call.queries.n_bytes, (1, call.k)
        self._room = many(c_int64, 2 * call.k)  # for the hits of one query: quicker than an array and its address

    def __call__(self, packed: U8, base: Float | None = None) -> tuple[I64, Float, Stats]:
        """The k first items by (distance, id) for each query."""
        if len(packed) != 1 or base is not None:
            return self._many(packed, base)
        codes, room, stats = packed.tobytes(), self._room(), Stats()
        if len(codes) != self._n_bytes:
            raise AssertionError("a query of another length")
        status = self._run(self._at, codes, None, 1, room, byref(stats))
        if status:
            _check(status)
        return np.ndarray(self._row, INT, room), np.ndarray(self._row, FLOAT, room, 8 * self._k), stats

    def _many(self, packed: U8, base: Float | None) -> tuple[I64, Float, Stats]:
        n = len(packed)
        if packed.shape != (n, self._n_bytes):
            raise AssertionError("queries of another length")
        hits, stats = np.empty((2, n, self._k), np.int64), Stats()  # ids, then distances
        places = address(packed), maybe_address(base), n, address(hits)
        _check(self._run(self._at, *places, byref(stats)))
        return hits[0], hits[1].view(np.float64), stats


class CompiledKernel:
    """Sorting, tables, schedules, search and lookup in C++. Every call releases the GIL."""

    plans_matter = True

    def __init__(self, path: Path, filter_name: str | None = None) -> None:
        lib = self._lib = ctypes.CDLL(str(path))
        lib.bitscale_filter.argtypes, lib.bitscale_filter.restype = [c_char_p], c_void_p
        lib.bitscale_filter_name.argtypes, lib.bitscale_filter_name.restype = [c_void_p], c_char_p
        lib.bitscale_trim.restype = None
        lib.bitscale_forecast.argtypes = [c_void_p, c_uint32, c_double]
        lib.bitscale_forecast.restype = c_int32
        lib.bitscale_sort.argtypes = [c_void_p, c_uint64, c_uint32, c_uint32, c_void_p, c_void_p, c_void_p, c_void_p]
        lib.bitscale_table.argtypes = [c_void_p, c_uint64, *[c_uint32] * 4, c_void_p, c_void_p, c_void_p]
        lib.bitscale_centres.argtypes = [c_void_p, c_uint64, c_uint32, *[c_void_p] * 3]
        lib.bitscale_crowds.argtypes = [c_void_p, c_uint64, c_uint32, c_void_p, c_uint32, c_uint64, *[c_void_p] * 5]
        lib.bitscale_radii.argtypes = [
            c_void_p,
            c_uint64,
            c_uint32,
            c_void_p,
            c_void_p,
            c_uint32,
            c_void_p,
            c_uint32,
            c_void_p,
        ]
        ends = [c_void_p, c_void_p, c_void_p]
        costs: list[Any] = [c_void_p, c_uint32, c_double, c_uint64]
        lib.bitscale_schedule.argtypes = [c_void_p, c_uint32, c_uint64, *costs, c_void_p, *ends]
        lib.bitscale_search.argtypes = [c_void_p, c_void_p, c_void_p, c_uint64, c_void_p, c_void_p]
        lib.bitscale_lookup.argtypes = [c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_uint32, c_uint32, *ends]
        lib.bitscale_lookup_take.argtypes = [c_void_p, *ends]
        lib.bitscale_lookup_take.restype = None
        self._filter = lib.bitscale_filter(filter_name.encode() if filter_name else None)
        if not self._filter:
            raise InputError(f"this machine cannot run the {filter_name} kernel. Leave BITSCALE_KERNEL unset.")

    @property
    def name(self) -> str:
        """Which filter runs: avx512, avx2 or portable."""
        return str(self._lib.bitscale_filter_name(self._filter).decode())

    def sort(self, codes: U8, threads: int) -> tuple[U32, U32 | None, U8]:
        """Sort codes (n, n_bytes), equal ones once: (ordinals, item offsets or None, distinct codes)."""
        n, n_bytes = codes.shape
        ordinals, offsets, distinct = np.empty(n, np.uint32), np.empty(n + 1, np.uint32), np.empty_like(codes)
        count = c_uint64()
        _check(
            self._lib.bitscale_sort(
                address(codes),
                n,
                n_bytes,
                threads,
                address(ordinals),
                address(offsets),
                address(distinct),
                byref(count),
            )
        )
        n_codes = count.value
        return ordinals, (offsets[: n_codes + 1].copy() if n_codes < n else None), distinct[:n_codes]

    def table(self, distinct: U8, first_bit: int, width: int, threads: int) -> tuple[U32, U8, U32 | None]:
        """Lay out one table over sorted distinct codes: (offsets, blocks, positions or None for table 0)."""
        n, n_bytes = distinct.shape
        blocks = aligned((-(-n // LANES), n_bytes, LANES))
        if n % LANES:
            blocks[-1] = 0
        offsets = np.empty((1 << width) + 1, np.uint32)
        positions = np.empty(n, np.uint32) if first_bit else None
        _check(
            self._lib.bitscale_table(
                address(distinct),
                n,
                n_bytes,
                first_bit,
                width,
                threads,
                address(offsets),
                address(blocks),
                maybe_address(positions),
            )
        )
        return offsets, blocks, positions

    def trim(self) -> None:
        """Give memory that building left behind back to the system."""
        self._lib.bitscale_trim()

    def schedule(
        self, segment: Segment, n_tables: int, costs: NDArray[np.int32], bits: int, probe_codes: float, capacity: int
    ) -> tuple[NDArray[np.void], NDArray[np.float32], int]:
        """Probe order for one row of costs: (steps, expected codes met, bound after the last step)."""
        steps, codes = np.empty(capacity, STEP), np.empty(capacity, np.float32)
        n_steps, final = c_uint64(), c_int32()
        _check(
            self._lib.bitscale_schedule(
                byref(face_of(segment)[0]), n_tables, segment.n_codes, address(costs), bits, probe_codes, capacity,
                address(steps), address(codes), byref(n_steps), byref(final),
            )
        )  # fmt: skip
        return steps[: n_steps.value].copy(), codes[: n_steps.value].copy(), final.value

    def forecast(self, costs: NDArray[np.int32], bits: int, share: float) -> int:
        """The integer distance below which `share` of random codes lie."""
        return int(self._lib.bitscale_forecast(address(costs), bits, share))

    def centres(self, segment: Segment) -> Centres | None:
        """Where the codes of a segment crowd, radii not yet known; None where they do not."""
        n, n_bytes = segment.n_codes, segment.n_bytes
        codes, homes, count = np.empty((MAX_CENTRES, n_bytes), np.uint8), np.empty(n, np.uint8), c_uint32()
        places = (address(array) for array in (codes, homes))
        _check(self._lib.bitscale_centres(byref(face_of(segment)[0]), n, n_bytes, *places, byref(count)))
        if not count.value:
            return None
        codes = codes[: count.value].copy()
        return Centres(codes, homes, *self._crowds(segment, homes, len(codes)), np.zeros(len(codes), np.int32))

    def _crowds(self, segment: Segment, homes: U8, n_centres: int) -> tuple[U32, U32, Table]:
        """Where each centre's codes are: (begins, blocks, strays) of `Centres`."""
        n, n_bytes = segment.n_codes, segment.n_bytes
        room = n // STRAYS
        begins, blocks = np.empty(n_centres + 2, np.uint32), np.empty(n, np.uint32)
        offsets, rows = np.empty(n_centres + 2, np.uint32), np.empty(room, np.uint32)
        copies = aligned((-(-room // LANES), n_bytes, LANES))  # what is not used of it never becomes memory
        codes = byref(face_of(segment)[0]), n, n_bytes, address(homes), n_centres
        places = (address(array) for array in (begins, blocks, offsets, copies, rows))
        _check(self._lib.bitscale_crowds(*codes, room, *places))
        strays = Table(0, 0, offsets, copies[: -(-int(offsets[-1]) // LANES)], rows[: offsets[-1]])
        return begins, blocks[: begins[-1]].copy(), strays

    def radii(self, segment: Segment, centres: Centres, costs: NDArray[np.int32], bits: int) -> NDArray[np.int32]:
        """How far the codes of each centre lie from it at most."""
        radii = np.empty(len(centres.codes), np.int32)
        places = address(centres.codes), address(centres.homes), len(radii), address(costs), bits, address(radii)
        _check(self._lib.bitscale_radii(byref(face_of(segment)[0]), segment.n_codes, segment.n_bytes, *places))
        return radii

    def view(
        self, segments: Sequence[Segment], alive: Sequence[U64 | None], allowed: Sequence[U64 | None] | None = None
    ) -> View:
        """Segments and bitmaps, ready for `search` and `lookup`."""
        return View(segments, alive, allowed)

    def plans(self, plans: Sequence[Plan]) -> Plans:
        """Plans, one a segment, ready for `search` and `lookup`."""
        return Plans(plans)

    def cost_rows(self, costs: NDArray[np.int32], unit: NDArray[np.float64]) -> CostRows:
        """Costs and units of `CostTerms`, ready for `search` and `lookup`."""
        return CostRows(costs, unit)

    def prepare(
        self, view: View, plans: Plans, costs: CostRows, bits: int, k: int, mode: str, threads: int
    ) -> Prepared:
        """A search with everything fixed but the queries."""
        n_bytes = (costs.n_bits + 7) // 8
        queries = QueriesStruct(
            self._filter, None, costs.address, costs.unit, None, 0, costs.rows, n_bytes, costs.n_bits, bits
        )
        places = ctypes.addressof(view.rows), ctypes.addressof(plans.rows)
        return Prepared(self._lib, CallStruct(*places, k, view.n, MODES[mode], threads, queries), (view, plans, costs))

    def search(
        self, view: View, plans: Plans, queries: Queries, k: int, mode: str, threads: int
    ) -> tuple[I64, Float, Stats]:
        """The k first items by (distance, id) for each query."""
        costs, packed, base, bits = queries
        return self.prepare(view, plans, costs, bits, k, mode, threads)(packed, base)

    def lookup(
        self, view: View, plans: Plans, queries: Queries, radius: NDArray[np.int32], mode: str, threads: int
    ) -> tuple[I64, I64, Float, Stats]:
        """All items within an integer radius of each query: (offsets, ids, distances)."""
        result, total, stats = c_void_p(), c_uint64(), Stats()
        how = address(radius), MODES[mode], threads, byref(result), byref(total), byref(stats)
        _check(self._lib.bitscale_lookup(view.rows, plans.rows, view.n, byref(self._queries(queries)), *how))
        try:
            offsets = np.empty(len(queries.packed) + 1, np.int64)
            ids, distances = np.empty(total.value, np.int64), np.empty(total.value, np.float64)
        except MemoryError:
            self._lib.bitscale_lookup_take(result, None, None, None)
            raise
        self._lib.bitscale_lookup_take(result, address(offsets), address(ids), address(distances))
        return offsets, ids, distances, stats

    def _queries(self, queries: Queries) -> QueriesStruct:
        costs, packed, base, bits = queries
        n, n_bytes = packed.shape
        places = address(packed), costs.address, costs.unit, None if base is None else address(base)
        return QueriesStruct(self._filter, *places, n, costs.rows, n_bytes, costs.n_bits, bits)


def _check(status: int) -> None:
    if status == 1:
        raise MemoryError("the search kernel ran out of memory; use a smaller batch, k or radius")
    if status:
        raise AssertionError("the search kernel refused its arguments: please report this with the call that led here")
