"""Bring a collection level with files and folders: new, changed, moved and deleted pictures, batch by batch.

Every batch is one durable commit, so an interruption costs the batch under way and running again goes on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bitscale.arrays import Progress
from bitscale.collection.ingest.changed import Known, Plan, roots_of, scan
from bitscale.collection.ingest.codes_only import take_codes
from bitscale.collection.ingest.kept_features import Sample, encode_or_take
from bitscale.collection.ingest.versions import note_versions
from bitscale.collection.items import NewItem, Skipped, in_range
from bitscale.collection.opened import Opened
from bitscale.collection.store.forget import ROOTS
from bitscale.collection.store.seen import Seen
from bitscale.collection.writing import Writable
from bitscale.errors import InputError
from bitscale.hashers.picture_codes import Batch, check_takes_pictures
from bitscale.pictures.arrays import Picture
from bitscale.pictures.decode import LIMITS, Limits
from bitscale.pictures.listing import Found, is_collection

Labels = Sequence[str] | Callable[[str], Sequence[str]]
Metadata = Mapping[str, Any] | Callable[[str], Mapping[str, Any]]


@dataclass
class Changes:
    """The outcome of a sync: numbers of pictures, and the files it had to leave out, with reasons."""

    added: int = 0
    updated: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # RAW and video files, which are never taken in


def sync(
    collection: Writable,
    sources: Iterable[str | os.PathLike[str]],
    *,
    labels: Labels | None = None,
    metadata: Metadata | None = None,
    workers: int | None = None,
    batch: int | None = None,
    accept_missing: bool = False,
    remove_missing: bool = True,
    places: bool = False,
    limits: Limits = LIMITS,
    known: Sample | None = None,
    progress: Progress | None = None,
) -> Changes:
    """Take in what changed below `sources`, files or folders.

    labels, metadata   of new pictures: the same for all, or a function of the path; a changed picture keeps its own
                       unless these are given
    workers            processes that decode, one a core unless said
    batch              pictures a commit, at most
    accept_missing     go on although a root or more than a tenth of the known pictures vanished
    remove_missing     False: pictures whose files are gone stay
    places             keep where new pictures were taken, too, as their EXIF tells it
    known              pictures looked at already, with the features that the model takes: they are not opened again
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
    if collection.codes_only:
        return _codes_only(collection, roots, labels, metadata, workers, batch, limits, progress)
    plan = scan(collection, roots, accept_missing=accept_missing or not remove_missing)
    changes = Changes(unchanged=plan.unchanged, skipped=list(plan.skipped), left_out=sorted(plan.left_out))
    _without_decoding(collection, plan, changes, remove_missing)
    _remember(collection, roots)
    todo: list[tuple[Found, Known | None]] = sorted(
        [*((file, None) for file in plan.new), *plan.changed], key=lambda pair: pair[0]
    )
    done = 0
    if progress:
        progress(done, len(todo))
    if todo:
        note_versions(collection)
    files = [file for file, _ in todo]
    how: dict[str, Any] = {"workers": workers, "batch": batch, "limits": limits, "places": places}
    seen = {} if places or known is None else known  # where a picture was taken is not known of these
    with closing(encode_or_take(hasher, files, seen, **how)) as batches:
        for encoded in batches:
            _commit(collection, encoded, todo, _Owner(collection, labels, metadata), plan, changes)
            done += len(encoded)
            if progress:
                progress(done, len(todo))
    changes.skipped.sort(key=lambda one: one.path)
    return changes


def _codes_only(
    collection: Writable,
    roots: Sequence[str],
    labels: Labels | None,
    metadata: Metadata | None,
    workers: int | None,
    batch: int | None,
    limits: Limits,
    progress: Progress | None,
) -> Changes:
    def owner(path: str) -> tuple[Sequence[str], Mapping[str, Any]]:
        named = labels(path) if callable(labels) else labels
        own = metadata(path) if callable(metadata) else metadata
        return named or (), own or {}

    added, unread = take_codes(collection, roots, owner, workers=workers, batch=batch, limits=limits, progress=progress)
    return Changes(added=added, skipped=unread)


class _Owner:
    """The owner's labels and metadata of a picture: given with this call, or kept from before."""

    def __init__(self, collection: Writable, labels: Labels | None, metadata: Metadata | None) -> None:
        self.collection, self.labels, self.metadata = collection, labels, metadata

    def item(self, path: str, picture: Picture, before: Known | None) -> NewItem:
        """The item of a picture."""
        known: NewItem = self._back(picture.content) if before is None else self.collection.item(before.id)
        labels = self.labels(path) if callable(self.labels) else self.labels
        metadata = self.metadata(path) if callable(self.metadata) else self.metadata
        return NewItem(
            path,
            picture.content,
            in_range(picture.size),
            in_range(picture.modified),
            known.labels if labels is None else tuple(labels),
            known.metadata if metadata is None else metadata,
        )

    def _back(self, content: bytes) -> NewItem:
        """Labels and metadata of a picture that was removed once, where it comes back."""
        labels, metadata = self.collection.words_of(content) or ((), {})
        return NewItem(labels=labels, metadata=metadata)


def _without_decoding(collection: Writable, plan: Plan, changes: Changes, remove_missing: bool) -> None:
    """Commit what needs no decoding: pictures that moved, and those that were deleted."""
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
    collection: Writable,
    batch: Batch,
    todo: Sequence[tuple[Found, Known | None]],
    owner: _Owner,
    plan: Plan,
    changes: Changes,
) -> None:
    """One batch, in one commit; a file that was touched but holds the same picture keeps its code and id."""
    rows: list[int] = []
    items: list[NewItem] = []
    seen: list[Seen] = []
    update: list[tuple[int, NewItem]] = []
    remove: list[int] = []
    for row, (place, picture) in enumerate(zip(batch.places, batch.pictures, strict=True)):
        file, before = todo[place]
        if before is not None and before.content == picture.content:
            item = _plain(collection.item(before.id))
            update.append((before.id, replace(item, size=in_range(picture.size), modified=in_range(picture.modified))))
            continue
        rows.append(row)
        items.append(owner.item(file.path, picture, before))
        seen.append(Seen(picture.width, picture.height, picture.look, picture.exif))
        if before is not None:
            remove.append(before.id)
    bad = [(Skipped(*todo[place][0], error.reason), error.lasting) for place, error in batch.broken]
    collection.apply(
        codes=batch.codes[np.array(rows, np.int64)] if rows else None,
        items=items,
        seen=seen,
        remove=remove,
        update=update,
        skip=[skipped for skipped, lasting in bad if lasting],
        unskip=[path for place in batch.places if (path := todo[place][0].path) in plan.retried],
    )
    changes.added += len(items) - len(remove)
    changes.updated += len(remove)
    changes.unchanged += len(update)
    changes.skipped += [skipped for skipped, _ in bad]


def remembered_roots(collection: Opened) -> list[str]:
    """The folders taken in so far, without those that are gone with all their items."""
    known = json.loads(collection.notes().get(ROOTS, "[]"))
    return [
        root
        for root in known
        if not is_collection(root) and (os.path.isdir(root) or next(iter(collection.listing(root)), None) is not None)
    ]


def _remember(collection: Writable, roots: Sequence[str]) -> None:
    """Note the folders taken in, so that they can be looked at again without being named."""
    known = json.loads(collection.notes().get(ROOTS, "[]"))
    still = remembered_roots(collection)
    folders = roots_of([*still, *(root for root in roots if os.path.isdir(root))])
    if folders != known:
        collection.note(ROOTS, json.dumps(folders))
    gone = [skipped.path for root in known if root not in still for skipped in collection.skipped(root)]
    if gone:
        collection.apply(unskip=gone)
