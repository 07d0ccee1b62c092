"""A new model for a collection: every picture encoded again beside the old codes, which serve until all is there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bitscale.collection.items import Skipped
from bitscale.collection.pictures import check_takes_pictures, encode_files
from bitscale.data.decode import LIMITS, Limits
from bitscale.errors import VanishedFiles
from bitscale.hashers import Hasher

if TYPE_CHECKING:
    from bitscale.collection.collection import Collection


@dataclass
class Reindexed:
    """What a reindex did: pictures encoded now, encoded by a run before, and items dropped, with the reasons."""

    encoded: int = 0
    resumed: int = 0
    dropped: list[Skipped] = field(default_factory=list)


def reindex(
    collection: Collection,
    hasher: Hasher,
    *,
    workers: int | None = None,
    batch: int | None = None,
    drop_missing: bool = False,
    limits: Limits = LIMITS,
    progress: Callable[[int, int], None] | None = None,
) -> Reindexed:
    """Encode every item's picture with `hasher` and switch to it in one commit.

    Interrupted, it goes on where it stopped. Items whose pictures cannot be read raise VanishedFiles at the end,
    and the old model goes on serving, unless `drop_missing` removes them.
    """
    check_takes_pictures(hasher)
    if hasher.fingerprint == collection.model:
        return Reindexed()
    there = set(collection.staged_ids(hasher).tolist())
    living = [(item.id, item.path) for item in collection.items()]
    todo = [(id, path) for id, path in living if id not in there and path]
    lost = {id: Skipped("", 0, 0, "has no file") for id, path in living if id not in there and not path}
    report = Reindexed(resumed=len(living) - len(todo) - len(lost))
    done = report.resumed
    if progress:
        progress(done, len(living))
    batches = encode_files(hasher, [path for _, path in todo], workers=workers, batch=batch, limits=limits)
    with closing(batches):
        for some in batches:
            if some.places:
                collection.stage(np.array([todo[place][0] for place in some.places], np.int64), some.codes, hasher)
            lost |= {todo[place][0]: Skipped(todo[place][1], 0, 0, error.reason) for place, error in some.broken}
            report.encoded += len(some.places)
            done += len(some)
            if progress:
                progress(done, len(living))
    _finish(collection, hasher, lost, len(living), drop_missing)
    report.dropped = sorted(lost.values(), key=lambda one: one.path)
    return report


def _finish(collection: Collection, hasher: Hasher, lost: dict[int, Skipped], total: int, drop: bool) -> None:
    """Switch; items that have no new code go first, or stand in the way."""
    if lost and not drop:
        first, one = next(iter(lost.items()))
        raise VanishedFiles(
            f"{len(lost):,} of {total:,} items cannot be encoded with the new model: item {first} "
            f"({one.path or 'without a path'}) {one.reason} The old model goes on serving. Bring the pictures back "
            "and run again (what is encoded is kept), or drop these items with drop_missing=True (--drop-missing).",
            [one.path for one in lost.values()],
        )
    if lost:
        collection.apply(remove=list(lost))
    collection.switch(hasher)
