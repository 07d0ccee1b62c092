"""Taking pictures into a collection that keeps codes only: of a file no more than its code and the owner's words.

Such a collection knows no file again: every picture given is added, also one that was given before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from bitscale.arrays import Progress
from bitscale.collection.ingest.versions import note_versions
from bitscale.collection.items import NewItem, Skipped
from bitscale.collection.writing import Writable
from bitscale.errors import InputError
from bitscale.hashers.picture_codes import encode_files
from bitscale.pictures.decode import Limits
from bitscale.pictures.listing import list_pictures

Owner = Callable[[str], tuple[Sequence[str], Mapping[str, Any]]]  # a picture's labels and metadata


def take_codes(
    collection: Writable,
    roots: Sequence[str],
    owner: Owner,
    *,
    workers: int | None,
    batch: int | None,
    limits: Limits,
    progress: Progress | None,
) -> tuple[int, list[Skipped]]:
    """Add all pictures at or below `roots`; how many, and those that cannot be read, which only the caller learns."""
    paths = sorted({path for root in roots for path in _files(root)})
    added, done = 0, 0
    unread: list[Skipped] = []
    if paths:
        note_versions(collection)
    with closing(encode_files(collection.hasher, paths, workers=workers, batch=batch, limits=limits)) as batches:
        for encoded in batches:
            words = [owner(paths[place]) for place in encoded.places]
            items = [NewItem(labels=tuple(labels), metadata=metadata) for labels, metadata in words]
            if items:
                collection.apply(codes=encoded.codes, items=items)
            unread += [Skipped(paths[place], 0, 0, error.reason) for place, error in encoded.broken]
            added, done = added + len(items), done + len(encoded)
            if progress:
                progress(done, len(paths))
    return added, unread


def _files(root: str) -> list[str]:
    if os.path.isdir(root):
        return [file.path for file in list_pictures(root).files]
    if not os.path.exists(root):
        raise InputError(f"there is nothing at {root}. Give a picture or a folder of pictures.")
    return [root]
