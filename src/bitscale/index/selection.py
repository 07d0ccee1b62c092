"""A prepared filter: which items `where=` lets through, kept as bitmaps over stored positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bitscale.index.base import I64, Index
from bitscale.native import Kernel
from bitscale.native.layout import U64, Segment, bitmap_of, flags_of

if TYPE_CHECKING:
    from bitscale.index.state import State


class Selection:
    """Made by `ExactIndex.prepare(ids)`; stays valid while items come and go.

    Only items that were there when it was made can pass: an id removed and added again is a new item.
    """

    def __init__(self, ids: I64, index: Index) -> None:
        self.ids, self.index = ids, index
        self._left: dict[int, int] = {}  # id -> the change that removed it
        self._bitmaps: dict[Segment, U64] = {}
        self._last: tuple[State, Any, int] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def forget(self, removed: I64, change: int) -> None:
        """Items were removed; if their ids come back they are others."""
        for item in np.intersect1d(self.ids, removed, assume_unique=True).tolist():
            self._left.setdefault(item, change)

    def view(self, state: State, kernel: Kernel) -> tuple[Any, int]:
        """The state as the kernel may see it, and how many items that leaves."""
        last = self._last
        if last is not None and last[0] is state:
            return last[1], last[2]
        bitmaps = {segment: self._bitmap(segment, state.change) for segment in state.segments}
        count = 0
        for segment, alive in zip(state.segments, state.alive, strict=True):
            count += int((flags_of(bitmaps[segment], segment.n_items) & flags_of(alive, segment.n_items)).sum())
        view = kernel.view(state.segments, state.alive, [bitmaps[segment] for segment in state.segments])
        self._bitmaps, self._last = bitmaps, (state, view, count)
        return view, count

    def _bitmap(self, segment: Segment, change: int) -> U64:
        known = self._bitmaps.get(segment)
        if known is not None:
            return known
        left = np.array([item for item, when in list(self._left.items()) if when <= change], np.int64)
        ids = np.setdiff1d(self.ids, left, assume_unique=True) if len(left) else self.ids
        ordinals, here = segment.find(ids)
        return bitmap_of(ordinals[here], segment.n_items)
