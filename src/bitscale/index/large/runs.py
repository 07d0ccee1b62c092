"""Sorting more codes than fit in memory: sorted runs on disk, merged range by range of codes.

A run holds distinct codes in order and the ordinals of their items. Ranges are cut at codes sampled from all runs so
that each holds a limited number of items; a code that alone has more is a range of its own, and is copied, not sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bitscale.index.large.spool import Spool
from bitscale.native import Kernel
from bitscale.native.layout import I64, U8, U32

SLICE = 1 << 20  # ordinals to copy at once


class Run(NamedTuple):
    """Where one sorted run lies in the spools."""

    first_row: int
    n_rows: int
    first_item: int
    n_items: int
    offsets: int | None  # of its rows, n_rows + 1; None: an item a row


class Part(NamedTuple):
    """Distinct codes in order, behind those of the part before."""

    codes: U8
    counts: U32 | None  # items of each; None: one
    ordinals: Iterable[U32]


class Runs:
    """The items of one segment, sorted part by part."""

    def __init__(self, folder: Path, name: str, n_bytes: int, kernel: Kernel, threads: int) -> None:
        self._codes = Spool(folder / f"{name}.codes", np.uint8, (n_bytes,))
        self._offsets = Spool(folder / f"{name}.offsets", np.uint32)
        self._ordinals = Spool(folder / f"{name}.ordinals", np.uint32)
        self._kernel, self._threads = kernel, threads
        self.runs: list[Run] = []
        self.n_items = 0

    def add(self, codes: U8) -> None:
        """Sort the next codes into a run."""
        ordinals, offsets, distinct = self._kernel.sort(codes, self._threads)
        place = None if offsets is None else self._offsets.rows
        self.runs.append(Run(self._codes.rows, len(distinct), self.n_items, len(codes), place))
        self._codes.append(distinct)
        if offsets is not None:
            self._offsets.append(offsets)
        ordinals += np.uint32(self.n_items)
        self._ordinals.append(ordinals)
        self.n_items += len(codes)

    def remove(self) -> None:
        """Give the space back."""
        for spool in (self._codes, self._offsets, self._ordinals):
            spool.remove()

    def parts(self, most: int) -> Iterator[Part]:
        """All distinct codes in order, in parts of at most about `most` items."""
        begins = [0] * len(self.runs)
        for border in [*self._borders(most), None]:
            ends = [self._find(run, border) for run in self.runs]
            slices = [(run, a, b) for run, a, b in zip(self.runs, begins, ends, strict=True) if a < b]
            if slices:
                alone = border is not None and len(border) > self._codes.row_bytes
                yield self._alone(slices) if alone else self._merged(slices)
            begins = ends

    def _borders(self, most: int) -> list[bytes]:
        """Codes that begin ranges; one that is sampled twice ends at itself and a zero byte: it may have many items."""
        step = max(1, most // (2 * (len(self.runs) + 1)))
        every = max(1, most // step - len(self.runs))
        sample = sorted(code for run in self.runs for code in self._sample(run, step))
        borders = set(sample[every::every])
        heavy = {a for a, b in pairwise(sample) if a == b}
        return sorted(borders | heavy | {code + b"\0" for code in heavy})

    def _sample(self, run: Run, step: int) -> list[bytes]:
        rows = np.arange(step - 1, run.n_items, step)
        if run.offsets is not None:
            offsets = self._offsets.read(run.offsets, run.offsets + run.n_rows + 1)
            rows = np.searchsorted(offsets, rows, "right") - 1
        return [self._code(run, int(row)) for row in rows]

    def _code(self, run: Run, row: int) -> bytes:
        return bytes(self._codes.read(run.first_row + row, run.first_row + row + 1).data)

    def _find(self, run: Run, border: bytes | None) -> int:
        """The first row of a run that is not before `border`."""
        if border is None:
            return run.n_rows
        low, high = 0, run.n_rows
        while low < high:
            middle = (low + high) // 2
            if self._code(run, middle) < border:
                low = middle + 1
            else:
                high = middle
        return low

    def _items(self, run: Run, begin: int, end: int) -> tuple[int, int, U32 | None]:
        """Where the items of some rows stand among the ordinals, and how many each row has."""
        if run.offsets is None:
            return run.first_item + begin, run.first_item + end, None
        offsets: U32 = self._offsets.read(run.offsets + begin, run.offsets + end + 1)
        return run.first_item + int(offsets[0]), run.first_item + int(offsets[-1]), np.diff(offsets)

    def _alone(self, slices: list[tuple[Run, int, int]]) -> Part:
        """A code by itself: its items are those of each run, one run after another."""
        places = [self._items(*one)[:2] for one in slices]
        run, begin, _ = slices[0]
        code = self._codes.read(run.first_row + begin, run.first_row + begin + 1)
        counts = np.array([sum(end - begin for begin, end in places)], np.uint32)
        return Part(code, counts, self._copied(places))

    def _copied(self, places: list[tuple[int, int]]) -> Iterator[U32]:
        for begin, end in places:
            for at in range(begin, end, SLICE):
                yield self._ordinals.read(at, min(end, at + SLICE))

    def _merged(self, slices: list[tuple[Run, int, int]]) -> Part:
        """The rows of several runs in one order, equal ones once, their items by run."""
        places = [self._items(*one) for one in slices]
        sizes = [b - a for _, a, b in slices]
        codes = np.empty((sum(sizes), *self._codes.inner), np.uint8)
        ordinals = np.empty(sum(end - begin for begin, end, _ in places), np.uint32)
        row = item = 0
        for (run, a, b), (begin, end, _) in zip(slices, places, strict=True):
            self._codes.read_into(codes[row : row + b - a], run.first_row + a)
            self._ordinals.read_into(ordinals[item : item + end - begin], begin)
            row, item = row + b - a, item + end - begin
        counts = _joined([count for _, _, count in places], sizes)
        if len(slices) == 1:
            return Part(codes, counts, [ordinals])
        order, offsets, distinct = self._kernel.sort(codes, self._threads)
        del codes
        if counts is None:
            single = None if offsets is None else np.diff(offsets)
            return Part(distinct, single, _picked(ordinals, order))
        sorted_counts = counts[order]
        summed = sorted_counts if offsets is None else np.add.reduceat(sorted_counts, offsets[:-1].astype(np.int64))
        starts = np.cumsum(counts, dtype=np.int64) - counts
        return Part(distinct, summed.astype(np.uint32), _picked_lists(ordinals, starts, sorted_counts, order))


def _joined(counts: list[U32 | None], sizes: list[int]) -> U32 | None:
    if all(count is None for count in counts):
        return None
    filled = (np.ones(n, np.uint32) if one is None else one for one, n in zip(counts, sizes, strict=True))
    return np.concatenate(list(filled))


def _picked(ordinals: U32, order: U32) -> Iterator[U32]:
    for at in range(0, len(order), SLICE):
        yield ordinals[order[at : at + SLICE]]


def _picked_lists(ordinals: U32, starts: I64, counts: U32, order: U32) -> Iterator[U32]:
    """The lists of rows one after another in their order; `counts` are in that order already."""
    for at in range(0, len(order), SLICE):
        slice_counts = counts[at : at + SLICE].astype(np.int64)
        before = np.cumsum(slice_counts) - slice_counts
        places = np.repeat(starts[order[at : at + SLICE]] - before, slice_counts)
        places += np.arange(len(places))
        yield ordinals[places]
