"""Serving: the index over a collection's own files that answers searches, kept level with the manifest and the log.

It is an ExactIndex over memory-mapped segment files. A collection on an engine has none of this: see `search.source`.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from pathlib import Path

import apsw
import numpy as np

from bitscale.arrays import Int
from bitscale.codes import Codes
from bitscale.collection.segments.manifest import Manifest, SegmentFile, read_manifests
from bitscale.collection.store.again import again
from bitscale.collection.store.database import Database
from bitscale.collection.store.rows import U8, Change, State, read_changes, read_state
from bitscale.errors import CorruptFile, FileError
from bitscale.index.base import Index
from bitscale.index.exact import ExactIndex
from bitscale.index.file import file_identity

SEGMENTS = "segments"
UNKNOWN = State(-1, -1, -1, -1)


class Serving:
    """The index of a collection, and the state it shows."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder, self.database = folder, database
        self._open: dict[str, ExactIndex] = {}  # by segment file
        self.state = UNKNOWN
        self.manifest: Manifest
        self.index: ExactIndex
        self.fell_back = False  # the head manifest or a segment of it is damaged
        self._tried = -1  # the generation last loaded, or tried

    def refresh(self) -> State:
        """Bring the index level with the database; costs one small query when nothing has changed."""
        with self.database.lock:
            if self.database.at_once(read_state) == self.state:
                return self.state
            return again(self._refresh, FileError, overtaken=self._moved_on)

    def _refresh(self) -> State:
        with self.database.reading() as connection:
            state, before = read_state(connection), self.state
            if state == before:
                return state
            self.state = UNKNOWN  # whatever ends this half-way: the next time all is loaded anew
            after = before.seq
            if state.generation != before.generation:
                self.manifest, self.index, self._open = self._load(connection)
                after = self.manifest.sealed
            if after < state.seq:
                replay(self.index, read_changes(connection, after, (self.index.n_bits + 7) // 8))
            self.state = state
        return state

    def forget(self) -> None:
        """Load everything anew the next time."""
        with self.database.lock:
            self.state, self._open = UNKNOWN, {}

    def _moved_on(self) -> bool:
        """Whether a writer changed the manifest since it was read: a file missing by then does not matter."""
        if not self.database.read_only:
            return False
        with self.database.reading() as connection:
            newest = read_manifests(connection)[:1]
        return not newest or isinstance(newest[0], CorruptFile) or newest[0].generation != self._tried

    def _load(self, connection: apsw.Connection) -> tuple[Manifest, ExactIndex, dict[str, ExactIndex]]:
        """The newest manifest all of whose segments are sound."""
        manifests = read_manifests(connection)
        if not manifests:
            raise CorruptFile(f"{self.database.path} has lost its manifest. Restore the collection from a backup.")
        self._tried = read_state(connection).generation
        problems: list[str] = []
        for manifest in manifests:
            try:
                if isinstance(manifest, CorruptFile):
                    raise manifest
                parts = {segment.name: self.segment(segment) for segment in manifest.segments}
                index = joined(manifest, list(parts.values()))
                self.fell_back = bool(problems)
                return manifest, index, parts
            except FileError as error:
                problems.append(str(error))
        raise CorruptFile(f"{self.folder}: {problems[0]}")

    def snapshot(self) -> Index:
        """The index as it is now, whatever comes and goes afterwards."""
        return copy(self.index)

    def segment(self, segment: SegmentFile) -> ExactIndex:
        """A segment file, opened once and checked against what the manifest says of it."""
        if segment.name in self._open:
            return self._open[segment.name]
        path = self.folder / SEGMENTS / segment.name
        if file_identity(path) != (segment.size, segment.checksum):
            raise CorruptFile(f"{path} is not the file the manifest names. Restore the collection from a backup.")
        return ExactIndex.open(path)


def joined(manifest: Manifest, parts: list[ExactIndex]) -> ExactIndex:
    """The segments of a manifest as one index, without its dead."""
    weights = np.array(manifest.bit_weights)
    for part in parts:
        if part.model != manifest.model or not np.array_equal(part.bit_weights, weights):
            raise CorruptFile("a segment holds codes of another model. Restore the collection from a backup.")
    index = ExactIndex.join(parts) if parts else empty_index(manifest)
    if len(manifest.dead):
        index.remove(manifest.dead)
    return index


def empty_index(manifest: Manifest) -> ExactIndex:
    """An index for a manifest's model, with nothing in it."""
    n_bytes = (len(manifest.bit_weights) + 7) // 8
    return ExactIndex(Codes(np.zeros((0, n_bytes), np.uint8), np.array(manifest.bit_weights), manifest.model))


def replay(index: ExactIndex, changes: Iterator[Change]) -> None:
    """Apply lines of the log; additions that follow one another go in together."""
    ids: list[Int] = []
    codes: list[U8] = []

    def flush() -> None:
        if ids:
            index.add(index.space.of_rows(np.concatenate(codes)), np.concatenate(ids))
            ids.clear()
            codes.clear()

    for change in changes:
        if change.codes is not None:
            ids.append(change.ids)
            codes.append(change.codes)
        else:
            flush()
            index.remove(change.ids)
    flush()
