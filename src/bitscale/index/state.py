"""The contents of an index at one moment, and how one state follows from another. Nothing here is changed in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitscale.index.base import I64
from bitscale.index.planner import SegmentPlanner
from bitscale.index.segment import build_segment, living_items
from bitscale.native import Kernel
from bitscale.native.layout import U8, U64, Segment, Stats, bits_set, without_bits

Value = TypeVar("Value")
Prepared = Callable[[U8], tuple[I64, NDArray[np.float64], Stats]]  # a search with everything fixed but the queries
MOST_KEPT = 256  # plans, and prepared searches, of one state


@dataclass(frozen=True)
class Builder:
    """How segments are made: the same for all of one index."""

    kernel: Kernel
    n_bits: int
    tables: bool | int  # as `key_widths` takes it

    def segment(self, codes: U8, ids: I64, threads: int) -> Segment:
        """A segment of codes under ascending ids."""
        return build_segment(codes, ids, self.n_bits, self.kernel, tables=self.tables, threads=threads)


@dataclass(frozen=True, eq=False)
class State:
    """One consistent state: searches take it once and are not disturbed by later changes."""

    segments: tuple[Segment, ...]
    alive: tuple[U64 | None, ...]  # bitmaps over ordinals; None: all
    live: tuple[int, ...]  # living items of each segment
    change: int  # how many changes led here
    planners: tuple[SegmentPlanner, ...]
    view: Any  # the kernel's
    plans: dict[tuple[object, ...], Any] = field(default_factory=dict)
    prepared: dict[tuple[object, ...], Prepared] = field(default_factory=dict)  # by what was asked

    def plan(self, key: tuple[object, ...], plans: Any) -> Any:
        """Keep plans for the next call like this one."""
        return _kept(self.plans, key, plans)

    def keep(self, key: tuple[object, ...], prepared: Prepared) -> Prepared:
        """Keep a prepared search for the next call like this one."""
        return _kept(self.prepared, key, prepared)

    @property
    def n_live(self) -> int:
        """How many items can be found."""
        return sum(self.live)

    def living(self, ids: I64) -> NDArray[np.bool_]:
        """Which of `ids` can be found: there, and not removed."""
        living = np.zeros(len(ids), np.bool_)
        for segment, bitmap in zip(self.segments, self.alive, strict=True):
            ordinals, here = segment.find(ids)
            here[here] = bits_set(bitmap, ordinals[here])
            living |= here
        return living

    def with_items(self, codes: U8, ids: I64, builder: Builder, threads: int) -> State:
        """The state with new items under ascending ids, none of which is known."""
        fresh = builder.segment(codes, ids, threads)
        parts = [*zip(self.segments, self.alive, self.live, strict=True), (fresh, None, fresh.n_items)]
        return self._next(_merge_newest(parts, builder, threads), builder)

    def without(self, ids: I64, builder: Builder, threads: int) -> State:
        """The state without these items; itself when there are none of them."""
        parts: list[Part] = []
        for segment, bitmap, live in zip(self.segments, self.alive, self.live, strict=True):
            ordinals, here = segment.find(ids)
            gone = ordinals[here][bits_set(bitmap, ordinals[here])]
            left = live - len(gone)
            if not left:
                continue
            if 2 * left < segment.n_items:  # mostly dead: write it anew
                living = living_items([segment], [without_bits(bitmap, gone, segment.n_items)])
                segment, bitmap, gone = builder.segment(*living, threads), None, gone[:0]
            parts.append((segment, without_bits(bitmap, gone, segment.n_items) if len(gone) else bitmap, left))
        if sum(live for _, _, live in parts) == self.n_live:
            return self
        return self._next(_merge_newest(parts, builder, threads), builder)

    def _next(self, parts: list[Part], builder: Builder) -> State:
        return make_state(parts, builder, self.change + 1, self.planners)


Part = tuple[Segment, U64 | None, int]  # a segment, its living items, their number


def _kept(store: dict[tuple[object, ...], Value], key: tuple[object, ...], value: Value) -> Value:
    """Put a value into a store that forgets everything when it grows too large."""
    if len(store) >= MOST_KEPT:
        store.clear()
    store[key] = value
    return value


def make_state(
    parts: list[Part],
    builder: Builder,
    change: int = 0,
    planners: tuple[SegmentPlanner, ...] = (),
    allowed: list[U64 | None] | None = None,
) -> State:
    """A state of these parts; planners of segments that stay are kept, with all they have measured.

    `allowed`: bitmaps of the items that may be found; those of `parts` then say how many that leaves.
    """
    known = {planner.segment: planner for planner in planners}
    segments, alive, live = (tuple(column) for column in zip(*parts, strict=True)) if parts else ((), (), ())
    planned = tuple(known.get(segment) or SegmentPlanner(segment, builder.kernel) for segment in segments)
    return State(segments, alive, live, change, planned, builder.kernel.view(segments, alive, allowed))


def _merge_newest(parts: list[Part], builder: Builder, threads: int) -> list[Part]:
    """Merge the newest segments while the one before is less than twice their size: so there are few of them."""
    at, size = len(parts), 0
    while at and (not size or parts[at - 1][2] < 2 * size):
        at -= 1
        size += parts[at][2]
    if len(parts) - at < 2:
        return parts
    segments, alive, _ = zip(*parts[at:], strict=True)
    merged = builder.segment(*living_items(segments, alive), threads)
    return [*parts[:at], (merged, None, merged.n_items)]
