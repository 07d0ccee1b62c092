"""Building an index file within a memory limit: sort in runs, merge, lay out tables, and name the file last."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.atomic import sync_folder
from bitscale.codes import Codes
from bitscale.errors import BitscaleError, FileError
from bitscale.index.file import header_of
from bitscale.index.large.how import How
from bitscale.index.large.incoming import Batch, checked
from bitscale.index.large.needs import header_bytes, needs
from bitscale.index.large.reading import Read, read_batches
from bitscale.index.large.runs import Runs
from bitscale.index.large.sections import Section, SectionFile
from bitscale.index.large.spool import Spool, scratch_beside
from bitscale.index.large.tables import FurtherTable, Key, Layout
from bitscale.index.segment import key_widths, widest_key
from bitscale.native.layout import LANES

COPIED = 1 << 20  # rows to copy at once


def build_file(path: Path, batches: Codes | Iterable[Batch], how: How) -> None:
    """Build an index of all batches at `path`; the file appears whole or not at all."""
    total = len(batches) if isinstance(batches, Codes) else None
    try:
        if isinstance(batches, Codes):
            _check_disk(path, sum(needs(len(batches), batches.n_bits, how.tables)))
        with scratch_beside(path) as folder:
            read = read_batches(checked(batches), folder, how, total)
            _check_disk(path, needs(read.n, read.space.n_bits, how.tables, read.ids is not None).file)
            partial = folder / "index"
            _write(partial, read, folder, how)
            partial.replace(path)
            sync_folder(path.parent)
    except OSError as error:
        raise FileError(
            f"cannot build {path}: {error.strerror or error}. Check the folder, its permissions and free space; "
            "nothing of this build was left behind."
        ) from error
    except MemoryError as error:
        raise BitscaleError(
            f"memory ran out while building {path}; {how.memory:,} bytes were allowed. Allow the build less memory."
        ) from error


def _check_disk(path: Path, wanted: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if wanted > free:
        raise FileError(
            f"building {path} needs about {wanted / 1e9:.1f} GB in {path.parent}, {free / 1e9:.1f} GB are free. "
            "Make room, choose another disk, or fewer tables."
        )


def _write(partial: Path, read: Read, folder: Path, how: How) -> None:
    """Write all segments, then the header."""
    most = needs(read.n, read.space.n_bits, 4, own_ids=True).file + 4 * read.n
    file = SectionFile(partial, header_bytes(most, read.space.n_bits, len(read.segments)))
    try:
        segments, at = [], 0
        for runs in read.segments:
            writer = SegmentWriter(file, read, folder, how, runs.n_items)
            segments.append(writer.write(runs, at))
            at += runs.n_items
        next_id = read.n if read.ids is None else int(read.ids.read(at - 1, at)[0]) + 1 if at else 0
        file.finish(header_of(read.space.bit_weights, read.space.model, next_id, how.tables, segments))
    finally:
        file.close()


class SegmentWriter:
    """Writes one segment to the file: items and table 0 while runs are merged, then the other tables."""

    def __init__(self, file: SectionFile, read: Read, folder: Path, how: How, n_items: int) -> None:
        self._file, self._read, self._folder, self._how, self._n = file, read, folder, how, n_items
        self._n_bits, self._n_bytes = read.space.n_bits, read.space.packed.shape[1]
        self._widest = widest_key(n_items, self._n_bits)
        self._most = how.rows(self._n_bytes, self._widest)

    def write(self, runs: Runs, at: int) -> dict[str, Any]:
        """The sections of these runs, whose first item is number `at` of all; returns what the header says of them."""
        ordinals = self._file.begin(np.uint32, rows=self._n)
        blocks = self._file.begin(np.uint8, (self._n_bytes, LANES))
        layout, borders = self._merge(runs, ordinals, blocks)
        n_codes = borders.rows - 1
        item_offsets = self._copy(borders, 0, borders.rows) if n_codes < self._n else None
        borders.remove()
        first_id, ids = self._ids(at)
        widths = key_widths(n_codes, self._n_bits, self._how.tables)
        offsets = self._file.begin(np.uint32)
        offsets.append(layout.offsets(widths[0]))
        tables = [_table(0, widths[0], offsets, blocks, None)]
        del layout
        first_bit = widths[0]
        for number, width in enumerate(widths[1:], 2):
            tables.append(self._further(blocks, n_codes, Key(first_bit, width), number))
            first_bit += width
        return {
            "n_codes": n_codes,
            "first_id": first_id,
            "item_offsets": _number(item_offsets),
            "ordinals": ordinals.number,
            "ids": _number(ids),
            "alive": None,
            "tables": tables,
        }

    def _merge(self, runs: Runs, ordinals: Section, blocks: Section) -> tuple[Layout, Spool]:
        """Write ordinals and table 0; returns its layout, and where each code's items begin."""
        layout = Layout(Key(0, self._widest), blocks, None, self._how.kernel, self._how.threads)
        borders = Spool(self._folder / "borders", np.uint32)
        borders.append(np.zeros(1, np.uint32))
        for part in runs.parts(self._most):
            begin = ordinals.rows
            for ordinals_part in part.ordinals:
                ordinals.append(ordinals_part)
            counts = np.ones(len(part.codes), np.uint32) if part.counts is None else part.counts
            borders.append(begin + np.cumsum(counts, dtype=np.uint32))
            layout.add(part.codes)
            self._how.progress("merge", ordinals.rows, self._n)
        layout.finish()
        runs.remove()
        return layout, borders

    def _ids(self, at: int) -> tuple[int, Section | None]:
        """The first id where ids are consecutive, or a section of them."""
        ids = self._read.ids
        if ids is None:
            return at, None
        first, last = (int(ids.read(i, i + 1)[0]) for i in (at, at + self._n - 1))
        return (first, None) if last - first == self._n - 1 else (0, self._copy(ids, at, at + self._n))

    def _copy(self, spool: Spool, begin: int, end: int) -> Section:
        section = self._file.begin(spool.dtype, rows=end - begin)
        for at in range(begin, end, COPIED):
            section.append(spool.read(at, min(end, at + COPIED)))
        return section

    def _further(self, zero: Section, n_codes: int, key: Key, number: int) -> dict[str, Any]:
        done = 0

        def count(rows: int) -> None:
            nonlocal done
            done += rows
            self._how.progress(f"table {number}", done // 2, n_codes)

        further = FurtherTable(zero, n_codes, key, self._most, self._folder, self._how.kernel, self._how.threads)
        return _table(*key, *further.write(self._file, count))


def _table(first_bit: int, width: int, offsets: Section, blocks: Section, positions: Section | None) -> dict[str, Any]:
    sections = {"offsets": offsets.number, "blocks": blocks.number, "positions": _number(positions)}
    return {"first_bit": first_bit, "width": width, **sections}


def _number(section: Section | None) -> int | None:
    return None if section is None else section.number
