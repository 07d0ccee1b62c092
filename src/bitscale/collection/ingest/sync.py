"""Bring a collection level with files and folders: new, changed, moved and deleted pictures, batch by batch.

Every batch is one durable commit, so an interruption costs the batch under way and running again goes on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bitscale.collection.items import NewItem, Skipped
from bitscale.collection.pictures import Batch, check_takes_pictures, encode_files
from bitscale.collection.scan import Known, Plan, roots_of, scan
from bitscale.data.decode import LIMITS, Limits, Picture
from bitscale.data.listing import Found
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.collection.collection import Collection

Labels = Sequence[str] | Callable[[str], Sequence[str]]
Metadata = Mapping[str, Any] | Callable[[str], Mapping[str, Any]]
Progress = Callable[[int, int], None]  # pictures done, pictures in all

ROOTS = "roots"  # the note that keeps which folders were taken in


@dataclass
class Changes:
    """What a sync did: numbers of pictures, and the files it had to leave out, with their reasons."""

    added: int = 0
    updated: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: list[Skipped] = field(default_factory=list)


def sync(
    collection: Collection,
    sources: Iterable[str | os.PathLike[str]],
    *,
    labels: Labels | None = None,
    metadata: Metadata | None = None,
    workers: int | None = None,
    batch: int | None = None,
    accept_missing: bool = False,
    remove_missing: bool = True,
    limits: Limits = LIMITS,
    progress: Progress | None = None,
) -> Changes:
    """Take in what changed below `sources`, files or folders.

    labels, metadata   of new pictures: the same for all, or a function of the path; a changed picture keeps its own
                       unless these are given
    workers            processes that decode, one a core unless said
    batch              pictures a commit, at most
    accept_missing     go on although a root or more than a tenth of the known pictures vanished
    remove_missing     False: pictures whose files are gone stay
    """
    if isinstance(sources, str | os.PathLike):
        sources = [sources]
    roots = roots_of(sources)
    if not roots:
        raise InputError("there is nothing to take in. Give pictures or folders of pictures.")
    if collection.read_only:
        raise InputError(f"{collection.path} was opened for reading only. Open it without read_only=True.")
    hasher = collection.hasher
    check_takes_pictures(hasher)
    plan = scan(collection, roots, accept_missing=accept_missing or not remove_missing)
    changes = Changes(unchanged=plan.unchanged, skipped=list(plan.skipped))
    _without_decoding(collection, plan, changes, remove_missing)
    _remember(collection, roots)
    todo: list[tuple[Found, Known | None]] = sorted(
        [*((file, None) for file in plan.new), *plan.changed], key=lambda pair: pair[0]
    )
    done = 0
    if progress:
        progress(done, len(todo))
    paths = [file.path for file, _ in todo]
    with closing(encode_files(hasher, paths, workers=workers, batch=batch, limits=limits)) as batches:
        for some in batches:
            _commit(collection, some, todo, _Owner(collection, labels, metadata), plan, changes)
            done += len(some)
            if progress:
                progress(done, len(todo))
    changes.skipped.sort(key=lambda one: one.path)
    return changes


class _Owner:
    """What the owner says about a picture: given with this call, or kept from before."""

    def __init__(self, collection: Collection, labels: Labels | None, metadata: Metadata | None) -> None:
        self.collection, self.labels, self.metadata = collection, labels, metadata

    def item(self, path: str, picture: Picture, before: Known | None) -> NewItem:
        """The item of a picture."""
        kept: NewItem = NewItem() if before is None else self.collection.item(before.id)
        labels = self.labels(path) if callable(self.labels) else self.labels
        metadata = self.metadata(path) if callable(self.metadata) else self.metadata
        return NewItem(
            path,
            picture.content,
            picture.size,
            picture.modified,
            kept.labels if labels is None else tuple(labels),
            kept.metadata if metadata is None else metadata,
        )


def _without_decoding(collection: Collection, plan: Plan, changes: Changes, remove_missing: bool) -> None:
    """Moved and deleted pictures, in one commit."""
    update = []
    for file, known in plan.moved:
        item = collection.item(known.id)
        update.append(
            (known.id, replace(_plain(item), path=file.path, size=file.size, modified=file.modified)),
        )
    remove = [known.id for known in plan.missing] if remove_missing else []
    if update or remove or plan.forgotten:
        collection.apply(update=update, remove=remove, unskip=plan.forgotten)
    changes.moved, changes.removed = len(update), len(remove)


def _plain(item: NewItem) -> NewItem:
    return NewItem(item.path, item.content, item.size, item.modified, item.labels, item.metadata)


def _commit(
    collection: Collection,
    batch: Batch,
    todo: Sequence[tuple[Found, Known | None]],
    owner: _Owner,
    plan: Plan,
    changes: Changes,
) -> None:
    """One batch, in one commit; a file that was touched but holds the same picture keeps its code and id."""
    rows: list[int] = []
    items: list[NewItem] = []
    update: list[tuple[int, NewItem]] = []
    remove: list[int] = []
    for row, (place, picture) in enumerate(zip(batch.places, batch.pictures, strict=True)):
        file, before = todo[place]
        if before is not None and before.content == picture.content:
            kept = _plain(collection.item(before.id))
            update.append((before.id, replace(kept, size=picture.size, modified=picture.modified)))
            continue
        rows.append(row)
        items.append(owner.item(file.path, picture, before))
        if before is not None:
            remove.append(before.id)
    bad = [(Skipped(*todo[place][0], error.reason), error.lasting) for place, error in batch.broken]
    collection.apply(
        codes=batch.codes[np.array(rows, np.int64)] if rows else None,
        items=items,
        remove=remove,
        update=update,
        skip=[skipped for skipped, lasting in bad if lasting],
        unskip=[path for place in batch.places if (path := todo[place][0].path) in plan.retried],
    )
    changes.added += len(items) - len(remove)
    changes.updated += len(remove)
    changes.unchanged += len(update)
    changes.skipped += [skipped for skipped, _ in bad]


def remembered_roots(collection: Collection) -> list[str]:
    """The folders taken in so far, without those that are gone with all their items."""
    known = json.loads(collection.notes().get(ROOTS, "[]"))
    return [root for root in known if os.path.isdir(root) or next(iter(collection.listing(root)), None) is not None]


def _remember(collection: Collection, roots: Sequence[str]) -> None:
    """Note the folders taken in, so that they can be looked at again without being named."""
    known = json.loads(collection.notes().get(ROOTS, "[]"))
    still = remembered_roots(collection)
    folders = roots_of([*still, *(root for root in roots if os.path.isdir(root))])
    if folders != known:
        collection.note(ROOTS, json.dumps(folders))
    gone = [skipped.path for root in known if root not in still for skipped in collection.skipped(root)]
    if gone:
        collection.apply(unskip=gone)
