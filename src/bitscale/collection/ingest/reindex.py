"""A new model for a collection: every picture encoded again beside the old codes, which serve until all is there."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field

import numpy as np

from bitscale.arrays import Progress
from bitscale.collection.ingest.kept_features import Sample, encode_or_take
from bitscale.collection.ingest.versions import note_versions
from bitscale.collection.items import Item, Skipped
from bitscale.collection.store.fitted import NOTE, fitted_on
from bitscale.collection.writing import Writable
from bitscale.errors import VanishedFiles
from bitscale.hashers import Hasher
from bitscale.hashers.picture_codes import Batch, check_takes_pictures
from bitscale.pictures.decode import LIMITS, Limits
from bitscale.pictures.listing import Found


@dataclass
class Reindexed:
    """The outcome of a reindex: pictures encoded now, those of an earlier run, and items dropped, with reasons."""

    encoded: int = 0
    resumed: int = 0
    dropped: list[Skipped] = field(default_factory=list)


@dataclass
class _Left:
    """Items without a code of the new model, by id: their files cannot be read, or hold another picture by now."""

    lost: dict[int, Skipped] = field(default_factory=dict)
    changed: dict[int, str] = field(default_factory=dict)


def reindex(
    collection: Writable,
    hasher: Hasher,
    *,
    workers: int | None = None,
    batch: int | None = None,
    drop_missing: bool = False,
    limits: Limits = LIMITS,
    known: Sample | None = None,
    progress: Progress | None = None,
) -> Reindexed:
    """Encode every item's picture with `hasher` and switch to it in one commit.

    Interrupted, it goes on where it stopped. A file that holds another picture than the one taken in gives no code:
    such items raise VanishedFiles at the end, and the old model goes on serving until they were taken in anew. So do
    items whose pictures cannot be read, unless `drop_missing` removes them. `known` are pictures looked at already,
    with the features that the hasher takes.
    """
    collection.require_files("reindex")
    check_takes_pictures(hasher)
    if hasher.fingerprint == collection.model:
        return Reindexed()
    there = set(collection.staged_ids(hasher).tolist())
    items = list(collection.items())
    todo = [item for item in items if item.id not in there and item.path]
    without = [item.id for item in items if item.id not in there and not item.path]
    left = _Left({id: Skipped("", 0, 0, "has no file") for id in without})
    report = Reindexed(resumed=len(items) - len(todo) - len(without))
    done = report.resumed
    if progress:
        progress(done, len(items))
    files = [Found(item.path, item.size, item.modified) for item in todo]
    how = {"workers": workers, "batch": batch, "limits": limits}
    with closing(encode_or_take(hasher, files, known or {}, **how)) as batches:
        for encoded in batches:
            report.encoded += _stage(collection, hasher, encoded, todo, left)
            done += len(encoded)
            if progress:
                progress(done, len(items))
    _finish(collection, hasher, left, len(items), drop_missing)
    note_versions(collection, anew=True)
    if fitted_on(collection.notes()) is not None:
        collection.note(NOTE, "")  # whoever fitted it on this collection says so again
    report.dropped = sorted(left.lost.values(), key=lambda one: one.path)
    return report


def _stage(collection: Writable, hasher: Hasher, batch: Batch, todo: list[Item], left: _Left) -> int:
    """Keep the codes of one batch that were made from what their items hold; how many there were."""
    rows = []
    for row, (place, picture) in enumerate(zip(batch.places, batch.pictures, strict=True)):
        item = todo[place]
        if item.content in (None, picture.content):
            rows.append(row)
        else:
            left.changed[item.id] = item.path
    if rows:
        ids = np.array([todo[batch.places[row]].id for row in rows], np.int64)
        contents = [batch.pictures[row].content for row in rows]
        collection.stage(ids, batch.codes[np.array(rows, np.int64)], hasher, contents)
    for place, error in batch.broken:
        left.lost[todo[place].id] = Skipped(todo[place].path, 0, 0, error.reason)
    return len(rows)


def _finish(collection: Writable, hasher: Hasher, left: _Left, total: int, drop: bool) -> None:
    """Switch; items that have no new code go first, or stand in the way."""
    if left.changed:
        raise VanishedFiles(
            f"{len(left.changed):,} of {total:,} pictures have changed since they were taken in "
            f"({next(iter(left.changed.values()))} for one). The old model goes on serving. Take the changes in first "
            f"(bitscale index -c {collection.path}), and run again: what is encoded is kept.",
            list(left.changed.values()),
        )
    if left.lost and not drop:
        first, one = next(iter(left.lost.items()))
        raise VanishedFiles(
            f"{len(left.lost):,} of {total:,} items cannot be encoded with the new model: item {first} "
            f"({one.path or 'without a path'}) {one.reason} The old model goes on serving. Bring the pictures back "
            "and run again (what is encoded is kept), or drop these items with drop_missing=True (--drop-missing).",
            [one.path for one in left.lost.values()],
        )
    if left.lost:
        collection.apply(remove=list(left.lost))
    collection.switch(hasher)
