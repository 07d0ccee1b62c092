"""ExactIndex: the embedded engine. Exact at every code length, sub-linear where codes allow it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bitscale.codes import Codes, Relaxed, check_bits, check_same_space
from bitscale.errors import InputError
from bitscale.index.base import (
    Hits,
    Neighbours,
    check_ids,
    check_k,
    check_reach,
    check_segment_items,
    check_threads,
    refuse_other,
)
from bitscale.index.call import MODES, integer_limits
from bitscale.index.contents import MOST_ITEMS, Contents
from bitscale.index.file import read_index, write_index
from bitscale.index.large.build import build_file
from bitscale.index.large.how import How, Stages
from bitscale.index.large.incoming import Batch
from bitscale.index.large.needs import memory_of
from bitscale.index.planner import Strategy
from bitscale.index.segment import check_tables, living_items
from bitscale.index.selection import Selection
from bitscale.index.state import State, make_state
from bitscale.index.stored import Stored, disjoint
from bitscale.machine import cores
from bitscale.native import Kernel
from bitscale.native import kernel as default_kernel
from bitscale.native.layout import count_bits

ONCE_SHARE = 100  # a filter used once is copied out only up to a hundredth of a segment
WORTH_TRIMMING = 1 << 17  # items whose building leaves megabytes behind


class ExactIndex(Contents):
    """Exact search over codes in memory, or mapped from a file.

    Items live in immutable segments: equal codes are stored once, removed ones are marked and left out, small
    segments are merged as they come. `tables=False` keeps the codes alone, in about a quarter of the memory,
    and searches by the prefix table or the flat scan; `tables=2` chooses their number. Searches may run while
    another thread adds or removes; each sees one consistent state.

    `kernel` is the machine's best, or one of `bitscale.native.choose`.
    """

    def __init__(
        self,
        codes: Codes,
        ids: ArrayLike | None = None,
        *,
        tables: bool | int = True,
        threads: int | None = None,
        kernel: Kernel | None = None,
    ) -> None:
        if not isinstance(codes, Codes):
            raise InputError(f"expected Codes. Got {type(codes).__name__}; wrap packed bits with Codes.from_packed.")
        self.bit_weights, self.n_bits, self.model = codes.bit_weights, codes.n_bits, codes.model
        self._set_up(check_tables(tables), kernel or default_kernel())
        self.add(codes, ids, threads=threads)
        if len(codes) >= WORTH_TRIMMING:
            self._kernel.trim()

    def __copy__(self) -> ExactIndex:
        """The same state, which what comes and goes here does not reach; quicker than the general way of `copy`."""
        twin = ExactIndex.__new__(ExactIndex)
        twin.__dict__.update(self.__dict__)
        return twin

    def __repr__(self) -> str:
        return f"ExactIndex({len(self)} x {self.n_bits} bits, model={self.model!r}, kernel={self._kernel.name!r})"

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
        strategy: Strategy = "auto",
    ) -> Hits:
        """The k nearest items to each query, by (distance, id).

        bits     use the first `bits` bits only
        where    ids to search among, or `prepare(ids)`
        weights  other weights for this call, in stored bit order: (q,), or (n_queries, q)
        strategy "auto", or one way of searching, for measuring: "flat", "prefix", "multi"; the answer is the same
        """
        state = self._now() if where is None else self._narrowed(where)
        self.check_query(codes)
        if weights is None and type(codes) is Codes:
            return Hits(*self._calls.prepared(state, codes, k, bits, strategy, threads)(codes.packed))
        k, threads = check_k(k, len(codes)), check_threads(threads)
        call = self._calls.of(codes, check_bits(bits, self.n_bits, "this index stores"), weights)
        plans = self._calls.plans(state, call, k / max(state.n_live, 1), strategy)
        return Hits(*self._kernel.search(state.view, plans, call.queries, k, MODES[strategy], threads))

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
        strategy: Strategy = "auto",
    ) -> Neighbours:
        """All items near each query, by (distance, id): hash lookup.

        Give one of `radius`, the number of differing bits (distances are counts, weights play no part), or
        `max_distance`, weighted (distances are weighted).
        """
        state = self._now() if where is None else self._narrowed(where)
        self.check_query(codes)
        used, threads = check_bits(bits, self.n_bits, "this index stores"), check_threads(threads)
        reach = check_reach(radius, max_distance, weights, used)
        if isinstance(reach, int):
            call = self._calls.of(codes.codes() if isinstance(codes, Relaxed) else codes, used, None, "count")
            limit = np.full(len(codes), reach, np.int32)
        else:
            call = self._calls.of(codes, used, weights)
            limit = integer_limits(call, len(codes), reach)
        plans = self._calls.plans(state, call, None, strategy)
        neighbours = self._kernel.lookup(state.view, plans, call.queries, limit, MODES[strategy], threads)
        return Neighbours(*neighbours)

    # ------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index, tables included, to one checksummed file; the file appears whole or not at all."""
        state = self._now()
        stored = Stored(self.bit_weights, self.model, self._next_id, self._builder.tables, state.segments, state.alive)
        write_index(Path(path), stored)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, mmap: bool = True, kernel: Kernel | None = None) -> ExactIndex:
        """Map a saved index into memory, or read it (`mmap=False`); every checksum is verified.

        A mapped file must not be overwritten or cut short in place while in use; `save` replaces it safely.
        """
        stored = read_index(Path(path), mmap)
        index = cls.__new__(cls)
        index.bit_weights, index.model = stored.bit_weights, stored.model
        index.n_bits = len(stored.bit_weights)
        index._set_up(stored.tables, kernel or default_kernel())
        index._next_id = stored.next_id
        parts = [(s, alive, s.n_items if alive is None else count_bits(alive)) for s, alive in stored.parts()]
        index._state = make_state(parts, index._builder)
        return index

    @classmethod
    def build(
        cls,
        path: str | os.PathLike[str],
        batches: Codes | Iterable[Batch],
        *,
        memory: int | str | None = None,
        tables: bool | int = True,
        threads: int | None = None,
        segment_items: int = MOST_ITEMS,
        progress: Stages | None = None,
        kernel: Kernel | None = None,
    ) -> ExactIndex:
        """Build an index file of more codes than fit in memory, and map it.

        batches        `Codes` (of a mapped file, say), or an iterable of `Codes`, numbered on, or of pairs
                       (codes, ids), ids ascending throughout
        memory         what building may take at most: bytes, or a text like "8GB"; half of what is free when not said
        segment_items  items in one segment at most; one segment is searched fastest
        progress       called with what is being done, how many items are done, and of how many

        On disk it takes the index and, while it runs, half as much again beside `path`. The file appears whole or not
        at all; what a killed build leaves there is removed by the next.
        """
        workers = cores() if threads is None else check_threads(threads)
        most = check_segment_items(segment_items, MOST_ITEMS)
        how = How(kernel or default_kernel(), workers, check_tables(tables), memory_of(memory), most,
                  progress or (lambda *_: None))  # fmt: skip
        build_file(Path(path), batches, how)
        return cls.open(path, kernel=kernel)

    @classmethod
    def join(cls, parts: Sequence[ExactIndex]) -> ExactIndex:
        """One index over the items of several of one model; their segments are shared, not copied."""
        if not parts:
            raise InputError("join needs at least one index. Start an empty one with ExactIndex(codes[:0]).")
        first = parts[0]
        for part in parts[1:]:
            check_same_space(part, first, "the first index")
        index = cls.__new__(cls)
        index.bit_weights, index.model, index.n_bits = first.bit_weights, first.model, first.n_bits
        index._set_up(first._builder.tables, first._kernel)
        index._next_id = max(part._next_id for part in parts)
        states = [part._now() for part in parts]
        joined = [p for s in states for p in zip(s.segments, s.alive, s.live, strict=True)]
        if not disjoint([(segment, alive) for segment, alive, _ in joined]):
            raise InputError("an id stands in two of the indexes to join. Remove it from one of them.")
        planners = tuple(planner for state in states for planner in state.planners)
        index._state = make_state(joined, index._builder, planners=planners)
        return index

    def merged(self) -> ExactIndex:
        """The same items in one segment, without a trace of removed ones."""
        state = self._now()
        packed, ids = np.zeros((0, (self.n_bits + 7) // 8), np.uint8), np.empty(0, np.int64)
        if state.segments:
            packed, ids = living_items(state.segments, state.alive)
        whole = ExactIndex(
            Codes(packed, self.bit_weights, self.model), ids, tables=self._builder.tables, kernel=self._kernel
        )
        whole._next_id = self._next_id
        return whole

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

    def _narrowed(self, where: ArrayLike | Selection) -> State:
        """The state as `where` lets it be seen."""
        if not isinstance(where, Selection):
            where = Selection(np.unique(check_ids(where)), self, small_share=ONCE_SHARE)
        refuse_other(where.index, self)
        return where.narrow(self._now(), self._builder)
