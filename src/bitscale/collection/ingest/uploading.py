"""Pictures from elsewhere: decoded and encoded first, then kept in the collection's folder with their items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from bitscale.codes import Codes
from bitscale.collection.items import NewItem, in_range
from bitscale.collection.uploads import PLACE, keep, marked, place_of
from bitscale.collection.writing import Writable
from bitscale.hashers import Hasher
from bitscale.hashers.picture_codes import encode_files
from bitscale.pictures.arrays import Picture
from bitscale.pictures.pool import Pool


@dataclass(frozen=True, eq=False)
class Arrived:
    """A picture file from elsewhere, with its code; nothing of it is kept yet."""

    path: str
    picture: Picture
    codes: Codes


def arrive(hasher: Hasher, path: str, pool: Pool | None = None) -> Arrived:
    """Decode and encode one file, or raise UnreadablePicture."""
    with closing(encode_files(hasher, [path], pool=pool)) as batches:
        [batch] = batches
    if batch.broken:
        raise batch.broken[0][1]
    return Arrived(path, batch.pictures[0], batch.codes)


def take_in(
    collection: Writable, arrived: Arrived, labels: Sequence[str] = (), metadata: Mapping[str, Any] | None = None
) -> tuple[int, bool]:
    """Keep a picture and commit its item: its id, and whether it is new. One of the same content is not kept twice."""
    content, picture = arrived.picture.content, arrived.picture
    place = place_of(collection.path, content, picture.format)
    with collection.uploading:
        known = collection.find(place)
        if known is not None:
            return known, False
        if collection.notes().get(PLACE) != str(collection.path):
            collection.note(PLACE, str(collection.path))
        with marked(collection.path):
            status = keep(arrived.path, place, content)
            size, modified = in_range(status.st_size), in_range(status.st_mtime_ns)
            item = NewItem(str(place), content, size, modified, tuple(labels), dict(metadata or {}))
            [id] = collection.apply(codes=arrived.codes, items=[item]).tolist()
    return id, True
