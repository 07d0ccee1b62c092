"""The compiled kernel, reached through its plain C functions."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import Structure, byref, c_char_p, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.errors import InputError
from bitscale.native.layout import I64, LANES, STEP, U8, U32, U64, Plan, Queries, Segment, Stats

Float = NDArray[np.float64]

STRATEGIES = {"auto": 0, "flat": 1, "probe": 2}
FILTERS = ("avx512", "avx2", "portable")


class _Table(Structure):
    _fields_ = (
        ("first_bit", c_uint32),
        ("width", c_uint32),
        ("offsets", c_void_p),
        ("blocks", c_void_p),
        ("positions", c_void_p),
    )


class _Segment(Structure):
    _fields_ = (
        ("n_codes", c_uint64),
        ("n_items", c_uint64),
        ("n_bytes", c_uint32),
        ("n_tables", c_uint32),
        ("tables", c_void_p),
        ("item_offsets", c_void_p),
        ("ordinals", c_void_p),
        ("ids", c_void_p),
        ("first_id", c_int64),
        ("alive", c_void_p),
        ("allowed", c_void_p),
    )


class _Plan(Structure):
    _fields_ = (
        ("steps", c_void_p),
        ("codes", c_void_p),
        ("n_steps", c_uint64),
        ("final_bound", c_int32),
        ("n_tables", c_uint32),
        ("expected_ns", c_double),
        ("probe_ns", c_double),
        ("code_ns", c_double),
        ("block_ns", c_double),
        ("block_batch_ns", c_double),
    )


class _Queries(Structure):
    _fields_ = (
        ("codes", c_void_p),
        ("costs", c_void_p),
        ("unit", c_void_p),
        ("base", c_void_p),
        ("n", c_uint64),
        ("cost_rows", c_uint64),
        ("n_bytes", c_uint32),
        ("n_bits", c_uint32),
        ("bits", c_uint32),
    )


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _maybe(array: NDArray[Any] | None) -> int | None:
    return None if array is None else _address(array)


def _tables(segment: Segment) -> Any:
    rows = (_Table * len(segment.tables))()
    for i, t in enumerate(segment.tables):
        rows[i] = _Table(t.first_bit, t.width, _address(t.offsets), _address(t.blocks), _maybe(t.positions))
    return rows


class View:
    """Segments with their bitmaps as the kernel sees them; keeps alive every array it points to."""

    def __init__(
        self, segments: Sequence[Segment], alive: Sequence[U64 | None], allowed: Sequence[U64 | None] | None
    ) -> None:
        self.tables = [_tables(segment) for segment in segments]
        self.keep = (tuple(segments), tuple(alive), allowed)
        self.n = len(segments)
        self.rows = (_Segment * self.n)()
        for i, s in enumerate(segments):
            filters = _maybe(alive[i]), None if allowed is None else _maybe(allowed[i])
            items = _maybe(s.item_offsets), _address(s.ordinals), _maybe(s.ids), s.first_id
            tables = len(s.tables), ctypes.addressof(self.tables[i])
            self.rows[i] = _Segment(s.n_codes, s.n_items, s.n_bytes, *tables, *items, *filters)


class Plans:
    """Plans of all segments as the kernel sees them."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.keep = tuple(plans)
        self.rows = (_Plan * len(plans))()
        for i, p in enumerate(plans):
            n_steps = 0 if p.steps is None else len(p.steps)
            self.rows[i] = _Plan(
                _maybe(p.steps), _maybe(p.codes), n_steps, p.final_bound, p.n_tables,
                p.expected_ns, p.probe_ns, p.code_ns, p.block_ns, p.block_batch_ns,
            )  # fmt: skip


class CostRows:
    """Costs, one row for all queries or a row for each, with their addresses looked up once."""

    def __init__(self, costs: NDArray[np.int32], unit: NDArray[np.float64]) -> None:
        costs, unit = np.ascontiguousarray(costs, np.int32), np.ascontiguousarray(unit, np.float64)
        if len(unit) != len(costs):
            raise AssertionError("one unit a row of costs")
        self.keep = (costs, unit)
        self.address, self.unit = _address(costs), _address(unit)
        self.rows, self.n_bits = costs.shape


class CompiledKernel:
    """Sorting, tables, schedules, search and lookup in C++. Every call releases the GIL."""

    plans_matter = True

    def __init__(self, path: Path, filter_name: str | None = None) -> None:
        lib = self._lib = ctypes.CDLL(str(path))
        lib.bitscale_filter.restype = c_char_p
        lib.bitscale_choose_filter.argtypes = [c_char_p]
        lib.bitscale_trim.restype = None
        lib.bitscale_forecast.argtypes = [c_void_p, c_uint32, c_double]
        lib.bitscale_forecast.restype = c_int32
        lib.bitscale_sort.argtypes = [c_void_p, c_uint64, c_uint32, c_uint32, c_void_p, c_void_p, c_void_p, c_void_p]
        lib.bitscale_table.argtypes = [c_void_p, c_uint64, *[c_uint32] * 4, c_void_p, c_void_p, c_void_p]
        ends = [c_void_p, c_void_p, c_void_p]
        costs: list[Any] = [c_void_p, c_uint32, c_double, c_uint64]
        lib.bitscale_schedule.argtypes = [c_void_p, c_uint32, c_uint64, *costs, c_void_p, *ends]
        lib.bitscale_search.argtypes = [c_void_p, c_void_p, c_uint32, c_void_p, c_uint64, c_uint32, c_uint32, *ends]
        lib.bitscale_lookup.argtypes = [c_void_p, c_void_p, c_uint32, c_void_p, c_void_p, c_uint32, c_uint32, *ends]
        lib.bitscale_lookup_take.argtypes = [c_void_p, *ends]
        lib.bitscale_lookup_take.restype = None
        if lib.bitscale_choose_filter(filter_name.encode() if filter_name else None):
            raise InputError(f"this machine cannot run the {filter_name} kernel. Leave BITSCALE_KERNEL unset.")

    @property
    def name(self) -> str:
        """Which filter runs: avx512, avx2 or portable."""
        return str(self._lib.bitscale_filter().decode())

    def sort(self, codes: U8, threads: int) -> tuple[U32, U32 | None, U8]:
        """Sort codes (n, n_bytes), equal ones once: (ordinals, item offsets or None, distinct codes)."""
        n, n_bytes = codes.shape
        ordinals, offsets, distinct = np.empty(n, np.uint32), np.empty(n + 1, np.uint32), np.empty_like(codes)
        count = c_uint64()
        _check(
            self._lib.bitscale_sort(
                _address(codes),
                n,
                n_bytes,
                threads,
                _address(ordinals),
                _address(offsets),
                _address(distinct),
                byref(count),
            )
        )
        n_codes = count.value
        return ordinals, (offsets[: n_codes + 1].copy() if n_codes < n else None), distinct[:n_codes]

    def table(self, distinct: U8, first_bit: int, width: int, threads: int) -> tuple[U32, U8, U32 | None]:
        """Lay out one table over sorted distinct codes: (offsets, blocks, positions or None for table 0)."""
        n, n_bytes = distinct.shape
        blocks = np.empty((-(-n // LANES), n_bytes, LANES), np.uint8)
        if n % LANES:
            blocks[-1] = 0
        offsets = np.empty((1 << width) + 1, np.uint32)
        positions = np.empty(n, np.uint32) if first_bit else None
        _check(
            self._lib.bitscale_table(
                _address(distinct),
                n,
                n_bytes,
                first_bit,
                width,
                threads,
                _address(offsets),
                _address(blocks),
                _maybe(positions),
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
                byref(_tables(segment)), n_tables, segment.n_codes, _address(costs), bits, probe_codes, capacity,
                _address(steps), _address(codes), byref(n_steps), byref(final),
            )
        )  # fmt: skip
        return steps[: n_steps.value].copy(), codes[: n_steps.value].copy(), final.value

    def forecast(self, costs: NDArray[np.int32], bits: int, share: float) -> int:
        """The integer distance below which `share` of random codes lie."""
        return int(self._lib.bitscale_forecast(_address(costs), bits, share))

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

    def search(
        self, view: View, plans: Plans, queries: Queries, k: int, strategy: str, threads: int
    ) -> tuple[I64, Float, Stats]:
        """The k first items by (distance, id) for each query."""
        found = np.empty((2, len(queries.packed), k), np.int64)  # ids, then distances: one allocation, one address
        address, stats = _address(found), Stats()
        how = STRATEGIES[strategy], threads, address, address + found.nbytes // 2, byref(stats)
        _check(self._lib.bitscale_search(view.rows, plans.rows, view.n, byref(_queries(queries)), k, *how))
        return found[0], found[1].view(np.float64), stats

    def lookup(
        self, view: View, plans: Plans, queries: Queries, radius: NDArray[np.int32], strategy: str, threads: int
    ) -> tuple[I64, I64, Float, Stats]:
        """All items within an integer radius of each query: (offsets, ids, distances)."""
        result, total, stats = c_void_p(), c_uint64(), Stats()
        how = _address(radius), STRATEGIES[strategy], threads, byref(result), byref(total), byref(stats)
        _check(self._lib.bitscale_lookup(view.rows, plans.rows, view.n, byref(_queries(queries)), *how))
        try:
            offsets = np.empty(len(queries.packed) + 1, np.int64)
            ids, distances = np.empty(total.value, np.int64), np.empty(total.value, np.float64)
        except MemoryError:
            self._lib.bitscale_lookup_take(result, None, None, None)
            raise
        self._lib.bitscale_lookup_take(result, _address(offsets), _address(ids), _address(distances))
        return offsets, ids, distances, stats


def _queries(queries: Queries) -> _Queries:
    costs, packed, base, bits = queries
    n, n_bytes = packed.shape
    places = _address(packed), costs.address, costs.unit, None if base is None else _address(base)
    return _Queries(*places, n, costs.rows, n_bytes, costs.n_bits, bits)


def _check(status: int) -> None:
    if status == 1:
        raise MemoryError("the search kernel ran out of memory; use a smaller batch, k or radius")
    if status:
        raise AssertionError("the search kernel refused its arguments: please report this with the call that led here")
