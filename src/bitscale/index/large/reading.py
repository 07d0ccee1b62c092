"""The first half of a build: batches are read and sorted into runs, a new segment wherever one is full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from bitscale.codes import Codes
from bitscale.errors import InputError
from bitscale.index.base import I64
from bitscale.index.large.how import How
from bitscale.index.large.runs import Runs
from bitscale.index.large.spool import Spool
from bitscale.index.segment import widest_key
from bitscale.native.layout import U8


@dataclass
class Read:
    """All items, sorted into runs: one `Runs` a segment."""

    space: Codes  # no rows: what bits mean
    segments: list[Runs]
    ids: Spool | None  # of all items, ascending; None: numbered from 0

    @property
    def n(self) -> int:
        """How many items there are."""
        return sum(runs.n_items for runs in self.segments)


def read_batches(batches: Iterator[tuple[Codes, I64 | None]], folder: Path, how: How, total: int | None) -> Read:
    """Sort all batches into runs in `folder`; `total` items where that is known."""
    first = next(batches, None)
    if first is None:
        raise InputError("there is no batch to build from. Give at least one, if an empty one: codes[:0].")
    read = Read(first[0][:0], [], None if first[1] is None else Spool(folder / "ids", np.int64))
    reader = Reader(read, folder, how, total)
    for codes, ids in chain([first], batches):
        if read.ids is not None and ids is not None:
            read.ids.append(ids)
        reader.take(codes.packed)
    reader.sort()
    return read


class Reader:
    """Collects rows until a run is full."""

    def __init__(self, read: Read, folder: Path, how: How, total: int | None) -> None:
        self._read, self._folder, self._how, self._total = read, folder, how, total
        self._n_bytes = read.space.packed.shape[1]
        self._most = how.rows(self._n_bytes, widest_key(total or 1, read.space.n_bits))
        self._waiting: list[U8] = []

    def take(self, rows: U8) -> None:
        """Keep rows, and sort a run whenever there are enough."""
        at = 0
        while at < len(rows):
            room = self._room()
            part = rows[at : at + room]
            full = len(part) == room
            self._waiting.append(part if full else part.copy())  # a batch's memory may be used again by its maker
            at += len(part)
            if full:
                self.sort()

    def sort(self) -> None:
        """Sort what is there into a run."""
        if not self._waiting:
            return
        codes = self._waiting[0] if len(self._waiting) == 1 else np.concatenate(self._waiting)
        self._waiting.clear()
        segments = self._read.segments
        if self._is_full():
            name = f"segment{len(segments)}"
            segments.append(Runs(self._folder, name, self._n_bytes, self._how.kernel, self._how.threads))
        segments[-1].add(np.ascontiguousarray(codes))
        self._how.progress("sort", self._read.n, max(self._total or 0, self._read.n))

    def _room(self) -> int:
        left = self._how.segment_items - (0 if self._is_full() else self._read.segments[-1].n_items)
        return min(self._most, left) - sum(map(len, self._waiting))

    def _is_full(self) -> bool:
        """Whether the next run begins a segment."""
        return not self._read.segments or self._read.segments[-1].n_items >= self._how.segment_items
