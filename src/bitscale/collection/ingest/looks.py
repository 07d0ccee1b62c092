"""Looks of pictures that an earlier bitscale took in: read once more, and kept from then on."""

from __future__ import annotations

from contextlib import closing

from bitscale.arrays import Progress
from bitscale.collection.opened import Opened
from bitscale.collection.store.seen import Seen
from bitscale.collection.writing import Writable
from bitscale.pictures.arrays import Picture
from bitscale.pictures.form import Form
from bitscale.pictures.workers import decode_files

FORM = Form((64, 64))  # enough for a look
COMMIT = 500  # pictures a commit


def without_look(collection: Opened) -> dict[int, tuple[str, bytes | None]]:
    """Items with a file of which no look is kept: id -> path and content."""
    known = collection.sizes()
    return {id: (path, content) for id, path, _, _, content in collection.listing() if id not in known}


def fill_looks(collection: Writable, *, workers: int | None = None, progress: Progress | None = None) -> int:
    """Keep the looks that are missing, of pictures that are still those taken in; how many were kept.

    Every few hundred are one durable commit: interrupted, it goes on where it stopped.
    """
    missing = without_look(collection)
    ids, done, written = list(missing), 0, 0
    waiting: list[tuple[int, Seen]] = []
    with closing(decode_files([path for path, _ in missing.values()], FORM, workers=workers)) as pictures:
        for id, picture in zip(ids, pictures, strict=True):
            done += 1
            if isinstance(picture, Picture) and missing[id][1] in (None, picture.content):
                waiting.append((id, Seen(picture.width, picture.height, picture.look, picture.exif)))
            if waiting and (len(waiting) == COMMIT or done == len(ids)):
                collection.keep_looks([one for one, _ in waiting], [seen for _, seen in waiting])
                written += len(waiting)
                waiting = []
            if progress:
                progress(done, len(ids))
    return written
