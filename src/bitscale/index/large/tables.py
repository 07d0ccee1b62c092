"""Laying out tables larger than memory, part by part, in the order of their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitscale.index.large.sections import Section, SectionFile
from bitscale.index.large.spool import Spool
from bitscale.native import Kernel
from bitscale.native.layout import LANES, U8, U32

SLICE = 1 << 20


class Key(NamedTuple):
    """The bits of a table's key."""

    first_bit: int
    width: int

    def of(self, codes: U8) -> NDArray[np.int64]:
        """The keys of some codes."""
        bits = np.unpackbits(codes, axis=1)[:, self.first_bit : self.first_bit + self.width]
        keys: NDArray[np.int64] = bits.astype(np.int64) @ (1 << np.arange(self.width - 1, -1, -1, dtype=np.int64))
        return keys


class Layout:
    """Codes that come in parts, keys never falling, as blocks; what does not fill a block waits for the next part."""

    def __init__(self, key: Key, blocks: Section, positions: Section | None, kernel: Kernel, threads: int) -> None:
        self._key, self._blocks, self._positions = key, blocks, positions
        self._kernel, self._threads = kernel, threads
        self._counts = np.zeros(1 << key.width, np.uint32)
        self._left = np.empty((0, blocks.inner[0]), np.uint8)
        self._left_positions = np.empty(0, np.uint32)

    def add(self, codes: U8, positions: U32 | None = None) -> None:
        """The next codes, with the rows they have in table 0 unless this is table 0 itself."""
        before = self._left
        rows = np.concatenate([before, codes]) if len(before) else codes
        offsets, blocks, order = self._kernel.table(rows, *self._key, self._threads)
        self._counts += np.diff(offsets)
        np.subtract.at(self._counts, self._key.of(before), np.uint32(1))  # counted already
        whole = len(rows) // LANES
        self._blocks.append(blocks[:whole])
        self._left = codes_in(blocks[whole:])[: len(rows) - whole * LANES].copy()
        if self._positions is not None and positions is not None and order is not None:
            self._place(np.concatenate([self._left_positions, positions]), order, whole * LANES)

    def _place(self, positions: U32, order: U32, n: int) -> None:
        assert self._positions is not None
        for at in range(0, n, SLICE):
            self._positions.append(positions[order[at : min(n, at + SLICE)]])
        self._left_positions = positions[order[n:]]

    def finish(self) -> None:
        """Write the last block, filled with zeros."""
        if len(self._left):
            block = np.zeros((1, self._left.shape[1], LANES), np.uint8)
            block[0, :, : len(self._left)] = self._left.T
            self._blocks.append(block)
        if self._positions is not None:
            self._positions.append(self._left_positions)

    def offsets(self, width: int) -> U32:
        """Where the buckets of the first `width` bits of the key begin."""
        counts = self._counts.reshape(1 << width, -1).sum(axis=1, dtype=np.uint32)
        return np.concatenate([[0], np.cumsum(counts, dtype=np.uint32)]).astype(np.uint32)


def codes_in(blocks: U8) -> U8:
    """The codes of blocks, one a row."""
    return np.ascontiguousarray(blocks.transpose(0, 2, 1)).reshape(-1, blocks.shape[1])


class TableRun(NamedTuple):
    """Some rows of table 0 in the order of another key."""

    offsets: Spool
    blocks: Spool
    positions: Spool

    def begin_of(self, bucket: int) -> int:
        """Where a bucket begins in this order."""
        return int(self.offsets.read(bucket, bucket + 1)[0])

    def rows(self, begin: int, end: int) -> U8:
        """The codes [begin, end) of this order."""
        first = begin // LANES
        codes = codes_in(self.blocks.read(first, -(-end // LANES)))
        return codes[begin - first * LANES : end - first * LANES]


class FurtherTable:
    """A table beyond the first: rows of table 0 sorted by other bits in runs, and these merged by ranges of buckets."""

    def __init__(
        self, zero: Section, n_codes: int, key: Key, most: int, folder: Path, kernel: Kernel, threads: int
    ) -> None:
        self._zero, self._n, self._key, self._folder = zero, n_codes, key, folder
        self._most = max(LANES, most // LANES * LANES)
        self._kernel, self._threads = kernel, threads

    def write(self, file: SectionFile, done: Callable[[int], None]) -> tuple[Section, Section, Section]:
        """Its sections: offsets, blocks and positions. `done` hears of every row twice."""
        n_bytes = self._zero.inner[0]
        offsets = file.begin(np.uint32, rows=(1 << self._key.width) + 1)
        blocks = file.begin(np.uint8, (n_bytes, LANES), rows=-(-self._n // LANES))
        positions = file.begin(np.uint32, rows=self._n)
        layout = Layout(self._key, blocks, positions, self._kernel, self._threads)
        if self._n <= self._most:
            layout.add(self._rows_of_zero(0, self._n), np.arange(self._n, dtype=np.uint32))
            done(2 * self._n)
        else:
            runs = list(self._runs(done))
            for codes, places in self._ranges(runs):
                layout.add(codes, places)
                done(len(codes))
            for run in runs:
                for spool in run:
                    spool.remove()
        layout.finish()
        offsets.append(layout.offsets(self._key.width))
        return offsets, blocks, positions

    def _rows_of_zero(self, begin: int, end: int) -> U8:
        return codes_in(self._zero.read(begin // LANES, -(-end // LANES)))[: end - begin]

    def _runs(self, done: Callable[[int], None]) -> Iterator[TableRun]:
        for at in range(0, self._n, self._most):
            end = min(self._n, at + self._most)
            offsets, blocks, order = self._kernel.table(self._rows_of_zero(at, end), *self._key, self._threads)
            assert order is not None
            order += np.uint32(at)
            run = TableRun(
                Spool(self._folder / f"{at}.bounds", np.uint32),
                Spool(self._folder / f"{at}.blocks", np.uint8, blocks.shape[1:]),
                Spool(self._folder / f"{at}.positions", np.uint32),
            )
            run.offsets.append(offsets)
            run.blocks.append(blocks)
            run.positions.append(order)
            yield run
            done(end - at)

    def _ranges(self, runs: list[TableRun]) -> Iterator[tuple[U8, U32]]:
        """Rows in ranges of buckets, at most `most` at once; one bucket's rows need no order but that of the runs."""
        n_buckets = 1 << self._key.width
        total = np.zeros(n_buckets + 1, np.uint32)
        for run in runs:
            total += run.offsets.read(0, n_buckets + 1)
        begin = 0
        while begin < n_buckets:
            room = int(total[begin]) + self._most
            end = max(begin + 1, int(np.searchsorted(total, np.uint32(min(room, self._n)), "right")) - 1)
            pieces = [(run, run.begin_of(begin), run.begin_of(end)) for run in runs]
            if end - begin > 1 or sum(b - a for _, a, b in pieces) <= self._most:
                yield from self._together(pieces)
            else:
                for run, a, b in pieces:
                    for at in range(a, b, self._most):
                        yield from self._together([(run, at, min(b, at + self._most))])
            begin = end

    def _together(self, pieces: list[tuple[TableRun, int, int]]) -> Iterator[tuple[U8, U32]]:
        pieces = [(run, a, b) for run, a, b in pieces if a < b]
        if not pieces:
            return
        n = sum(b - a for _, a, b in pieces)
        codes, places, at = np.empty((n, self._zero.inner[0]), np.uint8), np.empty(n, np.uint32), 0
        for run, a, b in pieces:
            codes[at : at + b - a] = run.rows(a, b)
            run.positions.read_into(places[at : at + b - a], a)
            at += b - a
        yield codes, places
