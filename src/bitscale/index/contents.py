"""The items of an `ExactIndex`: adding, removing and reading them, while searches see one consistent state."""

from __future__ import annotations

import threading
import weakref

import numpy as np
from numpy.typing import ArrayLike

from bitscale.codes import Codes
from bitscale.errors import InputError
from bitscale.index.base import (
    I64,
    Index,
    check_ids,
    check_threads,
    refuse_known,
    refuse_missing,
    refuse_twice,
)
from bitscale.index.call import Calls
from bitscale.index.selection import Selection
from bitscale.index.state import Builder, State, make_state
from bitscale.machine import cores
from bitscale.native import Kernel
from bitscale.native.layout import bits_set, flags_of

MOST_ITEMS = (1 << 32) - 2  # in one segment


class Contents(Index):
    """The items of an index in immutable segments; a change makes a new state, and one thread at a time makes it."""

    def _set_up(self, tables: bool | int, kernel: Kernel) -> None:
        self._kernel, self._builder = kernel, Builder(kernel, self.n_bits, tables)
        self._calls = Calls(self.bit_weights, kernel)
        self.space = Codes(np.zeros((0, (self.n_bits + 7) // 8), np.uint8), self.bit_weights, self.model)  # no codes
        self._writing = threading.Lock()
        self._next_id = 0
        self._selections: weakref.WeakSet[Selection] = weakref.WeakSet()
        self._state: State | None = make_state([], self._builder)

    def __len__(self) -> int:
        return self._now().n_live

    def add(self, codes: Codes, ids: ArrayLike | None = None, *, threads: int | None = None) -> I64:
        """Add codes and return their ids; without `ids` they are numbered on. `threads`: all cores when not said."""
        self.check_codes(codes)
        workers = cores() if threads is None else check_threads(threads)
        if len(codes) > MOST_ITEMS:
            raise InputError(
                f"at most {MOST_ITEMS:,} codes can be added at once. Got {len(codes):,}; add them in parts."
            )
        with self._writing:
            state = self._now()
            new = self._numbered(len(codes)) if ids is None else check_ids(ids, len(codes))
            if len(new) == 0:
                return new
            order = None if (np.diff(new) > 0).all() else np.argsort(new, kind="stable")
            ascending = new if order is None else new[order]
            self._refuse_known(state, ascending)
            packed = codes.packed if order is None else codes.packed[order]
            after = state.with_items(packed, ascending, self._builder, workers)
            self._next_id = max(self._next_id, int(ascending[-1]) + 1)  # first: an interrupt may come in between
            self._state = after
        return new

    def remove(self, ids: ArrayLike) -> int:
        """Remove items and return how many there were; unknown ids are ignored."""
        gone = np.unique(check_ids(ids))
        with self._writing:
            state = self._now()
            after = state.without(gone, self._builder, cores())
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

    def ids(self) -> I64:
        """The ids of all items, ascending."""
        state = self._now()
        living = [s.all_ids()[flags_of(alive, s.n_items)] for s, alive in zip(state.segments, state.alive, strict=True)]
        return np.sort(np.concatenate([np.empty(0, np.int64), *living]))

    def get(self, ids: ArrayLike) -> Codes:
        """The codes of some items, in the order asked for."""
        wanted = check_ids(ids)
        packed = np.zeros((len(wanted), (self.n_bits + 7) // 8), np.uint8)
        missing = np.ones(len(wanted), np.bool_)
        state = self._now()
        for segment, alive in zip(state.segments, state.alive, strict=True):
            ordinals, here = segment.find(wanted)
            here[here] = bits_set(alive, ordinals[here])
            packed[here] = segment.some_codes(segment.rows[ordinals[here]])
            missing &= ~here
        refuse_missing(wanted[missing])
        return self.space.of_rows(packed)

    def holding(self, ids: ArrayLike) -> I64:
        """Those of `ids` that can be found here."""
        wanted = check_ids(ids)
        return wanted[self._now().living(wanted)]

    def __contains__(self, item: object) -> bool:
        return isinstance(item, int | np.integer) and bool(self._now().living(np.array([item], np.int64))[0])

    def close(self) -> None:
        """Let go of memory and files; the index cannot be used afterwards."""
        with self._writing:
            self._state = None
            for selection in list(self._selections):
                selection.drop()

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
        refuse_twice(ascending)
        if int(ascending[0]) < self._next_id:
            refuse_known(ascending[state.living(ascending)])
