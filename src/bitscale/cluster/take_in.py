"""A folder of codes into a collection: what `add` of the pictures themselves would have done, without opening them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bitscale.arrays import Progress
from bitscale.cluster.places import INSIDE, URL
from bitscale.cluster.shards import Row, Shard, about, read_shards
from bitscale.collection.ingest.sync import Changes, Labels, Metadata
from bitscale.collection.ingest.versions import note_versions
from bitscale.collection.items import Item, NewItem, Skipped, in_range
from bitscale.collection.store.seen import Seen
from bitscale.collection.writing import Writable
from bitscale.errors import ModelMismatch
from bitscale.pictures.arrays import Picture


def add_shards(
    collection: Writable,
    folder: str | os.PathLike[str],
    *,
    labels: Labels | None = None,
    metadata: Metadata | None = None,
    progress: Progress | None = None,
) -> Changes:
    """Add the codes that `encode_on_ray` made, one commit a shard; a picture that is there already is left alone.

    labels, metadata   of new pictures, as in `Collection.add`
    """
    contents = about(folder)
    if contents["model"] != collection.model:
        raise ModelMismatch(
            f"{folder} holds codes of model {contents['model']}, and {collection.path} is of {collection.model}. "
            "Encode with the collection's model."
        )
    changes, done, total = Changes(), 0, contents["items"] + contents["skipped"]
    note_versions(collection)
    elsewhere = {row[1]: row[0] for row in collection.listing() if is_elsewhere(row[1])}
    for shard in read_shards(folder):
        _commit(collection, shard, elsewhere, labels, metadata, changes)
        done += len(shard.rows)
        if progress:
            progress(done, total)
    return changes


def _commit(
    collection: Writable,
    shard: Shard,
    elsewhere: dict[str, int],
    labels: Labels | None,
    metadata: Metadata | None,
    changes: Changes,
) -> None:
    coded = [row for row in shard.rows if row.picture is not None]
    broken = [Skipped(row.name, 0, 0, row.reason or "") for row in shard.rows if row.picture is None]
    new: list[int] = []
    items: list[NewItem] = []
    seen: list[Seen] = []
    remove: list[int] = []
    named: set[str] = set()
    for place, row in enumerate(coded):
        picture = row.picture
        assert picture is not None
        if row.name in named and not collection.codes_only:  # given twice
            continue
        named.add(row.name)
        before = None if collection.codes_only else _before(collection, row.name, elsewhere)
        if before is not None and before.content == picture.content:
            changes.unchanged += 1
            continue
        if before is not None:
            remove.append(before.id)
        new.append(place)
        items.append(_item(row, picture, before, labels, metadata, collection.codes_only))
        seen.append(Seen(picture.width, picture.height, picture.look, picture.exif))
    if new:
        codes = shard.codes[np.array(new, np.int64)]
        ids = collection.apply(codes=codes, items=items, remove=remove, seen=None if collection.codes_only else seen)
        elsewhere |= {item.path: id for item, id in zip(items, ids.tolist(), strict=True) if is_elsewhere(item.path)}
    changes.added += len(new) - len(remove)
    changes.updated += len(remove)
    changes.skipped += broken


def _before(collection: Writable, name: str, elsewhere: Mapping[str, int]) -> Item | None:
    """The item of this name, where there is one."""
    known = elsewhere.get(name) if is_elsewhere(name) else collection.find(name)
    return None if known is None else collection.item(known)


def _item(
    row: Row,
    picture: Picture,
    before: NewItem | None,
    labels: Labels | None,
    metadata: Metadata | None,
    codes_only: bool,
) -> NewItem:
    named: Sequence[str] | None = labels(row.name) if callable(labels) else labels
    own: Mapping[str, Any] | None = metadata(row.name) if callable(metadata) else metadata
    words = tuple(named) if named is not None else before.labels if before else ()
    table = own if own is not None else before.metadata if before else {}
    if codes_only:
        return NewItem(labels=words, metadata=table)
    return NewItem(row.name, picture.content, in_range(picture.size), in_range(picture.modified), words, table)


def is_elsewhere(name: str) -> bool:
    """Whether a picture's name is no path of a file: it lies in a tar file or in an object store."""
    return INSIDE in name or URL.match(name) is not None
