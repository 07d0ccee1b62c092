"""Sealing: moving codes from the log into immutable segment files, and tidying away what nothing names any more.

A segment is written and synced first and named by a manifest afterwards, in one commit; whatever happens in between
leaves the state before, and a file that the next writer removes. The log is kept back to the manifest before the
head, so that falling back to it loses nothing.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np

from bitscale.atomic import sync_folder
from bitscale.collection.segments.manifest import Manifest, SegmentFile, read_manifests, write_manifest
from bitscale.collection.segments.serving import SEGMENTS, Serving, empty_index, replay
from bitscale.collection.store.database import Database
from bitscale.collection.store.rows import count_change, read_changes, read_state, write_state
from bitscale.errors import CorruptFile, FileError
from bitscale.index.exact import ExactIndex
from bitscale.index.file import file_identity

MODELS = "models"
SEAL_ITEMS = 1 << 16  # codes in the log from which on a segment is worth its file
PROBLEM = "sealing"  # the note that keeps why the last seal failed


def seal(folder: Path, database: Database, serving: Serving, *, everything: bool = False) -> Manifest:
    """Write what the log holds into a segment; `everything`: into one with all the rest, without the dead."""
    with database.lock:
        serving.refresh()
        base = serving.manifest
        with database.reading() as connection:
            upto = read_state(connection).seq
            changes = list(read_changes(connection, base.sealed, (len(base.bit_weights) + 7) // 8))
        parts = [serving.segment(segment) for segment in base.segments]
    fresh = empty_index(base)
    removed = np.concatenate([base.dead, *(change.ids for change in changes if change.codes is None)])
    replay(fresh, iter(changes))
    keep = 0 if everything else _kept(base.segments, len(fresh))
    merged = ExactIndex.join([*parts[keep:], fresh])
    merged.remove(removed)
    segments = list(base.segments[:keep])
    if len(merged):
        segments.append(write_segment(folder, merged, base.generation + 1))
    dead = [part.holding(removed) for part in parts[:keep]]
    after = replace(
        base, sealed=upto, segments=tuple(segments), dead=np.unique(np.concatenate([np.empty(0, np.int64), *dead]))
    )
    with database.writing() as connection:
        return commit(connection, after, base if not everything else None)


def seal_noting_problems(folder: Path, database: Database, serving: Serving) -> None:
    """Seal, and keep with the collection why it failed, until a later seal succeeds."""
    try:
        seal(folder, database, serving)
    except FileError as error:
        with contextlib.suppress(FileError):  # the disk may be full for a note as well
            _note_problem(database, str(error))
        raise
    _note_problem(database, None)


def _note_problem(database: Database, problem: str | None) -> None:
    with database.reading() as connection:
        noted = connection.execute("SELECT value FROM notes WHERE key = ?", (PROBLEM,)).get
    if noted != problem:
        with database.writing() as connection:
            connection.execute("DELETE FROM notes WHERE key = ?", (PROBLEM,))
            if problem is not None:
                connection.execute("INSERT INTO notes VALUES (?, ?)", (PROBLEM, problem))
            count_change(connection)


def write_segment(folder: Path, index: ExactIndex, generation: int) -> SegmentFile:
    """An index as one new segment file, on disk when this returns."""
    path = folder / SEGMENTS / f"{generation:06d}-{secrets.token_hex(4)}.bsi"
    index.merged().save(path)
    size, checksum = file_identity(path)
    return SegmentFile(path.name, len(index), size, checksum)


def commit(connection: apsw.Connection, after: Manifest, base: Manifest | None) -> Manifest:
    """Make `after` the head, within the caller's transaction; keep `base` to fall back to.

    Without `base` the head is written twice, so that nothing older is named any more.
    """
    state = read_state(connection)
    head = replace(after, generation=state.generation + 1)
    generations = [base.generation] if base else []
    if base is None:
        write_manifest(connection, head)
        generations.append(head.generation)
        head = replace(head, generation=head.generation + 1)
    write_manifest(connection, head)
    generations.append(head.generation)
    marks = ", ".join("?" * len(generations))
    connection.execute(f"DELETE FROM manifest WHERE generation NOT IN ({marks})", generations)
    connection.execute("DELETE FROM log WHERE seq <= ?", ((base or head).sealed,))
    write_state(connection, state._replace(generation=head.generation, changes=state.changes + 1))
    return head


def tidy(folder: Path, database: Database) -> list[str]:
    """Remove files that no manifest names: those of a seal that was cut short, and those that were replaced."""
    with database.reading() as connection:
        manifests = read_manifests(connection)
        if any(isinstance(manifest, CorruptFile) for manifest in manifests):
            return []  # what it named cannot be known
        named = [manifest for manifest in manifests if isinstance(manifest, Manifest)]
        models = {manifest.model for manifest in named}
        models |= {model for (model,) in connection.execute("SELECT DISTINCT model FROM staged")}
    segments = {segment.name for manifest in named for segment in manifest.segments}
    removed = [*_remove_others(folder / SEGMENTS, segments)]
    return [*removed, *_remove_others(folder / MODELS, {f"{model}.safetensors" for model in models})]


def _remove_others(folder: Path, names: set[str]) -> list[str]:
    removed = []
    try:
        for path in folder.iterdir():
            if path.name not in names and path.is_file():
                path.unlink(missing_ok=True)
                removed.append(path.name)
        if removed:
            sync_folder(folder)
    except OSError as error:
        raise FileError(
            f"what is left over in {folder} cannot be removed: {error.strerror}. Check the disk and the folder's "
            "permissions; the collection itself is sound."
        ) from error
    return removed


def _kept(segments: tuple[SegmentFile, ...], fresh: int) -> int:
    """How many segments stay: the newest are merged while the one before is less than twice their size."""
    at, size = len(segments), fresh
    while at and segments[at - 1].items < 2 * size:
        at -= 1
        size += segments[at].items
    return at
