"""Erasing: items for which a condition holds, and every trace of them that bitscale itself has made.

    in the collection   rows, paths, labels, metadata, codes in segments, log and staged batches, notes of unread files;
                        marks whose query was called right for one of them, with the query's values and picture: it
                        shows the same
    beside it           features kept of an interrupted fit; small pictures that an interrupted `duplicates` kept
    on engines          that it was pushed to: removed and compacted there (`collection.engines`); else they are named
    in backups          cannot be reached safely: those that still hold an item, or cannot be looked into, are named

What else keeps something of items (marks of a user, caches of a page) adds itself to `TRACES`.
The picture files are not bitscale's, and are not touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bitscale.collection.ingest.kept_features import forget_left
from bitscale.collection.items import Item
from bitscale.collection.marking import Markable
from bitscale.collection.opened import Opened
from bitscale.collection.store.seen import UNFINISHED_LOOKS
from bitscale.collection.upkeep.backup_notes import noted_backups
from bitscale.collection.where import Where
from bitscale.data.root import runs_root
from bitscale.data.unfinished import finished
from bitscale.errors import BitscaleError

ERASING = "erasing"  # the note that keeps the ids of items being erased
Trace = Callable[[Opened, list[Item]], int]  # forgets what it keeps of some items; how many files or rows that were


@dataclass(frozen=True)
class Backup:
    """A copy that was made before: how many erased items it still holds; None: it cannot be looked into."""

    path: str
    holds: int | None


@dataclass(frozen=True)
class Unreached:
    """An engine that the collection was pushed to and that could not be brought level, and why."""

    address: str
    reason: str


@dataclass(frozen=True)
class Erased:
    """The outcome: items erased, and the backups and engines where something is left."""

    removed: int
    caches: int  # files beside the collection
    backups: list[Backup] = field(default_factory=list)
    engines: list[Unreached] = field(default_factory=list)


def erase(
    collection: Markable, where: Where, compact: Callable[[], Any], erase_there: Callable[[], list[Unreached]]
) -> Erased:
    """Remove all items for which `where` holds; when this returns nothing of them is left in the collection.

    `erase_there` sees to the engines. A call that was stopped, or failed, is completed by the next one: the ids are
    noted until all is done.
    """
    ids = sorted({*collection.select(where).tolist(), *_begun(collection)})
    items = list(collection.items_of(ids).values())
    if ids:
        collection.note(ERASING, json.dumps(ids))
    for mark in collection.marks():
        if set(ids).intersection(mark.right):
            collection.take_back(mark.id)
    caches = sum(trace(collection, items) for trace in TRACES) if ids else 0
    collection.remove(ids)
    compact()
    still = [look_into(path, ids) for path in noted_backups(collection.path)] if ids else []
    engines = erase_there() if ids else []
    if ids:
        collection.note(ERASING, "")
    return Erased(len(ids), caches, [one for one in still if one.holds != 0], engines)


def _begun(collection: Opened) -> list[int]:
    """The items that an earlier call, stopped in between, had begun to erase."""
    try:
        return [int(id) for id in json.loads(collection.notes().get(ERASING) or "[]")]
    except (ValueError, TypeError, RecursionError):
        return []


def look_into(path: str, ids: list[int]) -> Backup:
    """How many of some items a backup holds: ids are never used again, so they are the same there."""
    try:
        with Opened.open(Path(path), read_only=True) as copy:
            return Backup(path, len(copy.items_of(ids)))
    except BitscaleError:
        return Backup(path, None)


def forget_fitting(collection: Opened, items: list[Item]) -> int:
    """The features, with paths, that an interrupted fit left beside the collection."""
    return int(forget_left(collection.path))


def forget_looks(collection: Opened, items: list[Item]) -> int:
    """Small grey pictures of a `duplicates` that was interrupted; whose they are cannot be told, so all of them go."""
    folders = list(runs_root().glob(f"{UNFINISHED_LOOKS}-*"))
    for folder in folders:
        finished(folder)
    return len(folders)


TRACES: list[Trace] = [forget_fitting, forget_looks]
