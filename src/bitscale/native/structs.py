"""Arrays as the compiled kernel sees them: the structures of `src`, and objects that keep alive what they point to."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from ctypes import Structure, c_double, c_int32, c_int64, c_uint32, c_uint64, c_void_p
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bitscale.native.layout import U64, Plan, Segment, Table

LINE = 64  # bytes of a line of the cache


class TableStruct(Structure):
    """`Table` of layout.hpp."""

    _fields_ = (
        ("first_bit", c_uint32),
        ("width", c_uint32),
        ("offsets", c_void_p),
        ("blocks", c_void_p),
        ("positions", c_void_p),
    )


class SegmentStruct(Structure):
    """`Segment` of layout.hpp."""

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


class PlanStruct(Structure):
    """`Plan` of search.hpp."""

    _fields_ = (
        ("steps", c_void_p),
        ("codes", c_void_p),
        ("n_steps", c_uint64),
        ("final_bound", c_int32),
        ("n_tables", c_uint32),
        ("expected_ns", c_double),
        ("probe_ns", c_double),
        ("code_ns", c_double),
        ("draw_ns", c_double),
        ("block_ns", c_double),
        ("block_batch_ns", c_double),
        ("centres", c_void_p),
    )


class CentresStruct(Structure):
    """`Centres` of centres.hpp."""

    _fields_ = (
        ("codes", c_void_p),
        ("radius", c_void_p),
        ("begins", c_void_p),
        ("blocks", c_void_p),
        ("strays", c_void_p),
        ("n", c_uint32),
    )


class QueriesStruct(Structure):
    """`Queries` of api.cpp."""

    _fields_ = (
        ("filter", c_void_p),
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


class CallStruct(Structure):
    """`Call` of api.cpp."""

    _fields_ = (
        ("segments", c_void_p),
        ("plans", c_void_p),
        ("k", c_uint64),
        ("n_segments", c_uint32),
        ("strategy", c_uint32),
        ("threads", c_uint32),
        ("queries", QueriesStruct),
    )


def address(array: NDArray[Any]) -> int:
    """Where an array's first element stands."""
    return int(array.__array_interface__["data"][0])


def aligned(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Bytes, not set, that begin with a line of the cache: a register read across two lines takes twice as long."""
    size = math.prod(shape)
    buffer = np.empty(size + LINE, np.uint8)
    begin = -address(buffer) % LINE
    return buffer[begin : begin + size].reshape(shape)


def maybe_address(array: NDArray[Any] | None) -> int | None:
    """The address of an array, if there is one."""
    return None if array is None else address(array)


@lru_cache(maxsize=1024)
def many(kind: Any, n: int) -> Any:
    """The type of n of a kind in a row; made once, since ctypes leaves such types to the garbage collector."""
    return kind * n


def place(array: Any, i: int) -> int:
    """The address of one of many."""
    return ctypes.addressof(array) + i * ctypes.sizeof(array[i])


def table_of(table: Table) -> TableStruct:
    """A table as the kernel sees it."""
    places = address(table.offsets), address(table.blocks), maybe_address(table.positions)
    return TableStruct(table.first_bit, table.width, *places)


_FACES: WeakKeyDictionary[Segment, tuple[Any, SegmentStruct]] = WeakKeyDictionary()


def face_of(segment: Segment) -> tuple[Any, SegmentStruct]:
    """The tables of a segment, one after another, and the segment without bitmaps; a segment stays in many states."""
    face = _FACES.get(segment)
    if face is None:
        tables = many(TableStruct, len(segment.tables))()
        for i, table in enumerate(segment.tables):
            tables[i] = table_of(table)
        items = maybe_address(segment.item_offsets), address(segment.ordinals), maybe_address(segment.ids)
        sizes = segment.n_codes, segment.n_items, segment.n_bytes, len(segment.tables)
        whole = SegmentStruct(*sizes, ctypes.addressof(tables), *items, segment.first_id)
        face = _FACES[segment] = tables, whole
    return face


class View:
    """Segments with their bitmaps as the kernel sees them; keeps alive every array it points to."""

    def __init__(
        self, segments: Sequence[Segment], alive: Sequence[U64 | None], allowed: Sequence[U64 | None] | None
    ) -> None:
        self.keep = (tuple(segments), tuple(alive), allowed, [face_of(segment)[0] for segment in segments])
        self.n = len(segments)
        self.rows = many(SegmentStruct, self.n)()
        for i, segment in enumerate(segments):
            self.rows[i] = face_of(segment)[1]
            self.rows[i].alive = maybe_address(alive[i])
            self.rows[i].allowed = None if allowed is None else maybe_address(allowed[i])


class Plans:
    """Plans of all segments as the kernel sees them."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.keep = tuple(plans)
        self.rows = many(PlanStruct, len(plans))()
        self.centres = many(CentresStruct, len(plans))()
        self.strays = many(TableStruct, len(plans))()
        for i, p in enumerate(plans):
            n_steps = 0 if p.steps is None else len(p.steps)
            around = None
            if (c := p.centres) is not None:
                self.strays[i] = table_of(c.strays)
                places = (address(array) for array in (c.codes, c.radius, c.begins, c.blocks))
                self.centres[i] = CentresStruct(*places, place(self.strays, i), len(c.codes))
                around = place(self.centres, i)
            self.rows[i] = PlanStruct(
                maybe_address(p.steps), maybe_address(p.codes), n_steps, p.final_bound, p.n_tables,
                p.expected_ns, p.probe_ns, p.code_ns, p.draw_ns, p.block_ns, p.block_batch_ns, around,
            )  # fmt: skip


class CostRows:
    """Costs, one row for all queries or a row for each, with their addresses looked up once."""

    def __init__(self, costs: NDArray[np.int32], unit: NDArray[np.float64]) -> None:
        costs, unit = np.ascontiguousarray(costs, np.int32), np.ascontiguousarray(unit, np.float64)
        if len(unit) != len(costs):
            raise AssertionError("one unit a row of costs")
        self.keep = (costs, unit)
        self.address, self.unit = address(costs), address(unit)
        self.rows, self.n_bits = costs.shape
