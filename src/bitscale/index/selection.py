"""A filter for `where=`: which items may be found, worked out once for each segment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bitscale.index.base import I64, Index
from bitscale.index.state import Builder, Part, State, make_state
from bitscale.native.layout import U64, Segment, bitmap_of, bits_set, count_bits

SMALL_SHARE = 10  # up to a tenth of a segment is copied out and searched alone
PREPARED_SHARE = 4  # of a filter that is kept, up to a quarter, with tables of its own; more is a bitmap over it


class Extract(NamedTuple):
    """A few items of a segment as a segment of their own, and their ordinals in the other."""

    segment: Segment
    ordinals: I64


class Selection:
    """Made by `ExactIndex.prepare(ids)`; stays valid while items come and go.

    Only items that were there when it was made can pass: an id removed and added again is a new item.
    """

    def __init__(self, ids: I64, index: Index, small_share: int = PREPARED_SHARE) -> None:
        self.ids, self.index, self._small_share = ids, index, small_share
        self._left: dict[int, int] = {}  # id -> the change that removed it
        self._kept: dict[Segment, Extract | U64] = {}
        self._last: tuple[State, State] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def forget(self, removed: I64, change: int) -> None:
        """Take removed items out of the filter: ids that are added again later are other items."""
        for item in np.intersect1d(self.ids, removed, assume_unique=True).tolist():
            self._left.setdefault(item, change)

    def drop(self) -> None:
        """Let go of the bitmaps worked out so far."""
        self._kept, self._last = {}, None

    def narrow(self, state: State, builder: Builder) -> State:
        """The state as if it held nothing but the selected items."""
        last = self._last
        if last is not None and last[0] is state:
            return last[1]
        selections, parts, allowed = {}, [], []
        for segment, alive in zip(state.segments, state.alive, strict=True):
            selected = self._kept.get(segment)
            if selected is None:
                selected = self._find(segment, state.change, builder)
            selections[segment] = selected
            part = _part(segment, alive, selected)
            if part[2]:
                parts.append(part)
                allowed.append(None if isinstance(selected, Extract) else selected)
        planners = (*state.planners, *(last[1].planners if last else ()))
        narrowed = make_state(parts, builder, state.change, planners, allowed)
        self._kept, self._last = selections, (state, narrowed)
        return narrowed

    def _find(self, segment: Segment, change: int, builder: Builder) -> Extract | U64:
        left = np.array([item for item, when in list(self._left.items()) if when <= change], np.int64)
        ids = np.setdiff1d(self.ids, left, assume_unique=True) if len(left) else self.ids
        ordinals, here = segment.find(ids)
        ordinals = ordinals[here]
        if len(ordinals) * self._small_share > segment.n_items:
            return bitmap_of(ordinals, segment.n_items)
        codes = segment.some_codes(segment.rows[ordinals])
        few = len(ordinals) * SMALL_SHARE <= segment.n_items  # these are scanned
        own = Builder(builder.kernel, builder.n_bits, tables=False if few else builder.tables)
        return Extract(own.segment(codes, segment.ids_of(ordinals), 1), ordinals)


def _part(segment: Segment, alive: U64 | None, selected: Extract | U64) -> Part:
    """What stands in for a segment in a filtered search: its selected items copied out, or all of it under a bitmap."""
    if not isinstance(selected, Extract):
        return segment, alive, count_bits(selected if alive is None else selected & alive)
    if alive is None:
        return selected.segment, None, len(selected.ordinals)
    living = np.flatnonzero(bits_set(alive, selected.ordinals))
    return selected.segment, bitmap_of(living, len(selected.ordinals)), len(living)
