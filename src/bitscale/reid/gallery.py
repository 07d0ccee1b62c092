"""A gallery: a collection whose items say which person they show, by which camera, and when."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

from bitscale.arrays import Progress
from bitscale.collection import Collection
from bitscale.collection.ingest.sync import Changes
from bitscale.collection.items import Item
from bitscale.data.image_files import FileImages
from bitscale.data.people import People
from bitscale.errors import InputError
from bitscale.hashers.picture_codes import check_takes_pictures, encode_images

PERSON, CAMERA, TIME = "person", "camera", "time"  # as metadata calls them
BATCH = 256  # pictures encoded at a time, where they are no files


def take_in(
    gallery: Collection, people: People, *, workers: int | None = None, progress: Progress | None = None
) -> Changes:
    """Add pictures with person, camera and time; files that are known and unchanged are left alone."""
    facts = [facts_of(people, i) for i in range(len(people))]
    if not isinstance(people.images, FileImages):
        return _without_files(gallery, people, facts, progress)
    folder = os.path.abspath(people.images.folder)
    known = {os.path.join(folder, *path.split("/")): fact for path, fact in zip(people.paths, facts, strict=True)}
    return gallery.add(
        list(known), metadata=lambda path: known[path], workers=workers, remove_missing=False, progress=progress
    )


def facts_of(people: People, i: int) -> dict[str, Any]:
    """What a picture's metadata says: names that are numbers as numbers, the time where it is known."""
    facts: dict[str, Any] = {
        PERSON: number_or_text(people.names[int(people.persons[i])]),
        CAMERA: number_or_text(people.camera_names[int(people.cameras[i])]),
    }
    if people.times is not None and not math.isnan(people.times[i]):
        time = float(people.times[i])
        facts[TIME] = int(time) if time.is_integer() else time
    return facts


def number_or_text(name: str) -> int | str:
    """0017 -> 17, so that `--where person=17` finds it however a set writes its numbers."""
    return int(name) if name.isascii() and name.isdecimal() and len(name) < 16 else name


def _without_files(
    gallery: Collection, people: People, facts: list[dict[str, Any]], progress: Progress | None
) -> Changes:
    check_takes_pictures(gallery.hasher)
    for start in range(0, len(people), BATCH):
        rows = range(start, min(start + BATCH, len(people)))
        codes = encode_images(gallery.hasher, [people.images[i] for i in rows])
        gallery.add_codes(codes, metadata=[facts[i] for i in rows])
        if progress:
            progress(rows.stop, len(people))
    return Changes(added=len(people))


@dataclass(frozen=True)
class Sighting:
    """One picture of a person in the gallery."""

    id: int
    camera: Any
    time: float | None
    distance: float  # to what was asked for
    path: str = ""


def sighting_of(item: Item, distance: float) -> Sighting:
    """What an item says; a gallery's items name person and camera."""
    time = item.metadata.get(TIME)
    return Sighting(
        item.id, item.metadata.get(CAMERA), float(time) if isinstance(time, int | float) else None, distance, item.path
    )


def among(gallery: Collection, where: Any) -> list[Any]:
    """The conditions under which to look: an item names a person, and `where` holds; some item must be left."""
    conditions = [f"{PERSON}!=null", *([where] if isinstance(where, str) else where or [])]
    if not len(gallery.select(conditions)):
        asked = f" for which {' and '.join(conditions[1:])} holds" if conditions[1:] else ""
        raise InputError(
            f"{gallery.path.name} holds no picture of a known person{asked}. Widen --where, or take in a gallery with "
            "`bitscale reid index`."
        )
    return conditions
