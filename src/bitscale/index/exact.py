"""ExactIndex: the embedded engine. Exact at every code length, sub-linear where codes allow it."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale import hamming
from bitscale.codes import Codes, Relaxed, check_bits
from bitscale.errors import InputError
from bitscale.index.base import I64, Float, Hits, Index, Neighbours, check_ids, check_k
from bitscale.index.file import Stored, read_index, write_index
from bitscale.index.plan import STRATEGIES, Strategy
from bitscale.index.selection import Selection
from bitscale.index.state import Builder, State, make_state
from bitscale.native import Kernel
from bitscale.native import kernel as default_kernel
from bitscale.native.layout import Queries, Stats


class Call(NamedTuple):
    """Queries as the kernel takes them, and what the planner must know of their costs."""

    queries: Queries
    costs: NDArray[np.int32]
    unit: Float
    name: str | None  # under which schedules for these costs are kept; None: the queries have their own


class ExactIndex(Index):
    """Exact search over codes in memory, or mapped from a file.

    Items live in immutable segments: equal codes are stored once, removed ones are marked and left out, small
    segments are merged as they come. `tables=False` keeps the codes alone (12 bytes a 64-bit code instead of 48)
    and searches by the prefix table or the flat scan. Searches may run while another thread adds or removes;
    each sees one consistent state.

    `strategy` is "auto"; "flat", "prefix" and "multi" force one way of searching, for measuring. The answer is
    the same. `kernel` is the machine's best, or one of `bitscale.native.choose`.
    """

    def __init__(
        self,
        codes: Codes,
        ids: ArrayLike | None = None,
        *,
        tables: bool = True,
        threads: int | None = None,
        kernel: Kernel | None = None,
    ) -> None:
        if not isinstance(codes, Codes):
            raise InputError(f"expected Codes. Got {type(codes).__name__}; wrap packed bits with Codes.from_packed.")
        self.bit_weights, self.n_bits, self.model = codes.bit_weights, codes.n_bits, codes.model
        self.strategy: Strategy = "auto"
        self.last_stats = Stats()
        self._set_up(tables, kernel or default_kernel())
        self.add(codes, ids, threads=threads)
        self._kernel.trim()

    def _set_up(self, tables: bool, kernel: Kernel) -> None:
        self._kernel, self._builder = kernel, Builder(kernel, self.n_bits, tables)
        self._snapped, self._unit = hamming.snap(self.bit_weights)
        self._rows: dict[tuple[str, int], tuple[NDArray[np.int32], Float, Any]] = {}  # by (name, bits)
        self._writing = threading.Lock()
        self._next_id = 0
        self._selections: weakref.WeakSet[Selection] = weakref.WeakSet()
        self._state: State | None = make_state([], self._builder)

    # ------------------------------------------------------------------ contents

    def __len__(self) -> int:
        return self._now().n_live

    def __repr__(self) -> str:
        return f"ExactIndex({len(self)} x {self.n_bits} bits, model={self.model!r}, kernel={self._kernel.name!r})"

    def add(self, codes: Codes, ids: ArrayLike | None = None, *, threads: int | None = None) -> I64:
        """Add codes and return their ids; without `ids` they are numbered on. `threads`: all cores when not said."""
        self.check_same_space(codes)
        with self._writing:
            state = self._now()
            new = self._numbered(len(codes)) if ids is None else check_ids(ids, len(codes))
            if len(new) == 0:
                return new
            order = None if (np.diff(new) > 0).all() else np.argsort(new, kind="stable")
            ascending = new if order is None else new[order]
            self._refuse_known(state, ascending)
            packed = codes.packed if order is None else codes.packed[order]
            self._state = state.with_items(packed, ascending, self._builder, threads or os.cpu_count() or 1)
            self._next_id = max(self._next_id, int(ascending[-1]) + 1)
        return new

    def remove(self, ids: ArrayLike) -> int:
        """Remove items and return how many there were; unknown ids are ignored."""
        gone = np.unique(check_ids(ids))
        with self._writing:
            state = self._now()
            after = state.without(gone, self._builder, os.cpu_count() or 1)
            for selection in list(self._selections):
                selection.forget(gone, after.change)
            self._state = after
        return state.n_live - after.n_live

    def prepare(self, ids: ArrayLike) -> Selection:
        """A filter for `where=` made once; it stays valid under add and remove (new items are outside it)."""
        with self._writing:
            state = self._now()
            known = np.unique(check_ids(ids))
            selection = Selection(known[state.living(known)], self)
            self._selections.add(selection)
            return selection

    def close(self) -> None:
        """Let go of memory and files; the index cannot be used afterwards."""
        with self._writing:
            self._state = None

    # ------------------------------------------------------------------ search

    def search(
        self,
        codes: Codes | Relaxed,
        k: int,
        *,
        bits: int | None = None,
        where: ArrayLike | Selection | None = None,
        weights: ArrayLike | None = None,
        threads: int = 1,
    ) -> Hits:
        """The k nearest items to each query, by (distance, id).

        bits     use the first `bits` bits only
        where    ids to search among, or `prepare(ids)`
        weights  other weights for this call, in stored bit order: (q,), or (n_queries, q)
        """
        state, k, threads = self._now(), check_k(k), check_threads(threads)
        self.check_same_space(codes)
        used = check_bits(bits, self.n_bits, "this index stores")
        call = self._call(codes, used, weights)
        view, n_live = self._view(state, where)
        plans = self._plans(state, call, k / max(n_live, 1))
        ids, distances, self.last_stats = self._kernel.search(view, plans, call.queries, k, self._mode(), threads)
        return Hits(ids, distances)

    def lookup(
        self,
        codes: Codes | Relaxed,
        radius: int | None = None,
        *,
        max_distance: float | None = None,
        bits: int | None = None,
        weights: ArrayLike | None = None,
        where: ArrayLike | Selection | None = None,
        threads: int = 1,
    ) -> Neighbours:
        """All items near each query, by (distance, id): hash lookup.

        Give one of `radius`, the number of differing bits (distances are counts, weights play no part), or
        `max_distance`, weighted (distances are weighted).
        """
        state, threads = self._now(), check_threads(threads)
        self.check_same_space(codes)
        used = check_bits(bits, self.n_bits, "this index stores")
        if (radius is None) == (max_distance is None):
            raise InputError("give exactly one of radius (differing bits) and max_distance (weighted).")
        if radius is not None:
            if weights is not None:
                raise InputError("radius counts differing bits, whatever they weigh. Use max_distance with weights.")
            call = self._call(codes.codes() if isinstance(codes, Relaxed) else codes, used, None, "count")
            limit = np.full(len(codes), check_radius(radius, used), np.int32)
        else:
            call = self._call(codes, used, weights)
            limit = integer_limits(call, len(codes), max_distance)
        view, _ = self._view(state, where)
        plans = self._plans(state, call, None)
        offsets, ids, distances, self.last_stats = self._kernel.lookup(
            view, plans, call.queries, limit, self._mode(), threads
        )
        return Neighbours(offsets, ids, distances)

    # ------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index, tables included, to one checksummed file; the file appears whole or not at all."""
        state = self._now()
        stored = Stored(self.bit_weights, self.model, self._next_id, self._builder.tables, state.segments, state.alive)
        write_index(Path(path), stored)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> ExactIndex:
        """Map a saved index into memory, every checksum verified."""
        stored = read_index(Path(path))
        index = cls.__new__(cls)
        index.bit_weights, index.model = stored.bit_weights, stored.model
        index.n_bits = len(stored.bit_weights)
        index.strategy, index.last_stats = "auto", Stats()
        index._set_up(stored.tables, default_kernel())
        index._next_id = stored.next_id
        live = [int(np.bitwise_count(b).sum()) if b is not None else s.n_items for s, b in stored.parts()]
        index._state = make_state([(*part, n) for part, n in zip(stored.parts(), live, strict=True)], index._builder)
        return index

    def describe(self) -> dict[str, Any]:
        """How the items are stored, for people."""
        segments = self._now().segments
        return {
            "segments": len(segments),
            "distinct_codes": sum(segment.n_codes for segment in segments),
            "tables": [[table.width for table in segment.tables] for segment in segments],
            "bytes": sum(array.nbytes for segment in segments for array in segment.arrays()),
            "kernel": self._kernel.name,
        }

    # ------------------------------------------------------------------ the engine room

    def _now(self) -> State:
        state = self._state
        if state is None:
            raise InputError("this index was closed. Open or build it again.")
        return state

    def _numbered(self, n: int) -> I64:
        if self._next_id + n > 1 << 63:
            raise InputError("there are no automatic ids left: one close to 2^63 was used. Give ids= yourself.")
        return np.arange(self._next_id, self._next_id + n, dtype=np.int64)

    def _refuse_known(self, state: State, ascending: I64) -> None:
        twice = ascending[1:][ascending[1:] == ascending[:-1]]
        if len(twice):
            raise InputError(f"id {twice[0]} is given twice. Give every code its own id.")
        if int(ascending[0]) >= self._next_id:
            return
        known = ascending[state.living(ascending)]
        if len(known):
            raise InputError(
                f"id {known[0]} is already in this index ({len(known)} such). Remove it first, or choose others."
            )

    def _call(self, queries: Codes | Relaxed, bits: int, weights: ArrayLike | None, name: str = "weights") -> Call:
        """What this call costs: rows kept from call to call where queries share them, else the queries' own."""
        if weights is not None or isinstance(queries, Relaxed):
            terms = hamming.cost_terms(queries, bits, self.bit_weights if weights is None else weights)
            rows = self._kernel.cost_rows(terms.costs, terms.unit)
            return Call(Queries(rows, terms.packed, terms.base, bits), terms.costs, terms.unit, None)
        kept = self._rows.get((name, bits))
        if kept is None:
            costs = self._snapped[None].copy() if name == "weights" else np.ones((1, self.n_bits), np.int32)
            costs[:, bits:] = 0
            unit = np.array([self._unit if name == "weights" else 1.0])
            kept = self._rows[name, bits] = costs, unit, self._kernel.cost_rows(costs, unit)
        costs, unit, rows = kept
        return Call(Queries(rows, queries.packed, None, bits), costs, unit, name)

    def _view(self, state: State, where: ArrayLike | Selection | None) -> tuple[Any, int]:
        """What the kernel may find, and how many items that is."""
        if where is None:
            return state.view, state.n_live
        selection = where if isinstance(where, Selection) else Selection(np.unique(check_ids(where)), self)
        if selection.index is not self:
            raise InputError("where= was prepared by another index. Call prepare on this one.")
        return selection.view(state, self._kernel)

    def _plans(self, state: State, call: Call, share: float | None) -> Any:
        bits = call.queries.bits
        key = (self.strategy, bits, call.name, share)
        plans = state.plans.get(key)
        if plans is None:
            if len(state.plans) > 256:
                state.plans.clear()
            rows = [planner.plan(self.strategy, call.costs[0], bits, share, call.name) for planner in state.planners]
            plans = state.plans[key] = self._kernel.plans(rows)
        return plans

    def _mode(self) -> str:
        if self.strategy not in STRATEGIES:
            raise InputError(f"strategy must be one of {', '.join(STRATEGIES)}. Got {self.strategy!r}.")
        return {"auto": "auto", "flat": "flat"}.get(self.strategy, "probe")


def check_threads(threads: int) -> int:
    """Return threads as a plain int of at least 1."""
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InputError(f"threads must be a whole number of at least 1. Got {threads!r}.")
    return min(int(threads), 256)


def check_radius(radius: int, bits: int) -> int:
    """Return a radius in bits as a plain int, not more than there are bits."""
    if isinstance(radius, bool) or not isinstance(radius, int | np.integer) or radius < 0:
        raise InputError(f"radius must be a whole number of bits, 0 or more. Got {radius!r}.")
    return min(int(radius), bits)


def integer_limits(call: Call, n: int, max_distance: float | None) -> NDArray[np.int32]:
    """The largest integer distance whose value is still at most `max_distance`, for each query; -1 where none is."""
    if max_distance is None or not max_distance >= 0:
        raise InputError(f"max_distance must be a number, 0 or more. Got {max_distance!r}.")
    base = np.zeros(n) if call.queries.base is None else call.queries.base
    room = np.minimum(np.floor((max_distance - base) / call.unit), hamming.TOTAL_BELOW)
    room += (room + 1) * call.unit + base <= max_distance  # the difference above may have been rounded
    room -= room * call.unit + base > max_distance
    return np.maximum(room, -1).astype(np.int32)
