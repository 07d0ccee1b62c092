"""A gallery: a collection whose items say which person they show, by which camera, and when."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Progress
from bitscale.collection import Collection
from bitscale.collection.ingest.sync import Changes
from bitscale.collection.ingest.versions import note_versions
from bitscale.collection.items import Item, Skipped
from bitscale.collection.where import Condition, Where, conditions_of, period
from bitscale.data.image_files import FileImages
from bitscale.data.people import People
from bitscale.errors import InputError
from bitscale.hashers.picture_codes import Batch, check_takes_pictures, encode_files, encode_images

PERSON, CAMERA, TIME = "person", "camera", "time"  # as metadata calls them
BATCH = 256  # pictures encoded at a time, where they are no files


def take_in(
    gallery: Collection, people: People, *, workers: int | None = None, progress: Progress | None = None
) -> Changes:
    """Add pictures with person, camera and time; those that are known are left alone, so that a stopped call goes on.

    A file is known by its path and content. Where there is no file, or nothing of it may be kept, a picture is known by
    what the gallery does keep: its person, camera, time and code.
    """
    records = [facts_of(people, i) for i in range(len(people))]
    if isinstance(people.images, FileImages) and not gallery.codes_only:
        known = dict(zip(_paths(people, people.images), records, strict=True))
        return gallery.add(
            list(known), metadata=lambda path: known[path], workers=workers, remove_missing=False, progress=progress
        )
    check_takes_pictures(gallery.hasher)
    if isinstance(people.images, FileImages):
        paths = _paths(people, people.images)
        with closing(encode_files(gallery.hasher, paths, workers=workers)) as batches:
            return _by_codes(gallery, batches, records, paths, progress)
    return _by_codes(gallery, _encoded(gallery, people), records, people.paths, progress)


def _paths(people: People, images: FileImages) -> list[str]:
    folder = os.path.abspath(images.folder)
    return [os.path.join(folder, *path.split("/")) for path in people.paths]


def _encoded(gallery: Collection, people: People) -> Iterator[Batch]:
    """The codes of pictures that are not files, in batches."""
    for start in range(0, len(people), BATCH):
        rows = list(range(start, min(start + BATCH, len(people))))
        yield Batch(rows, [], encode_images(gallery.hasher, [people.images[i] for i in rows]), [])


def _by_codes(
    gallery: Collection,
    batches: Iterable[Batch],
    records: Sequence[dict[str, Any]],
    names: Sequence[str],
    progress: Progress | None,
) -> Changes:
    """Add what is not there by its facts and code; of several pictures alike in both, as many as are missing."""
    known, changes, done = _kept(gallery), Changes(), 0
    for encoded in batches:
        if not done:
            note_versions(gallery)
        new = []
        for at, place in enumerate(encoded.places):
            mark = _mark(records[place], encoded.codes.packed[at])
            if known[mark]:
                known[mark] -= 1
                changes.unchanged += 1
            else:
                new.append(at)
        if new:
            gallery.add_codes(encoded.codes[np.array(new)], metadata=[records[encoded.places[at]] for at in new])
        changes.added += len(new)
        changes.skipped += [Skipped(names[place], 0, 0, error.reason) for place, error in encoded.broken]
        done += len(encoded)
        if progress:
            progress(done, len(records))
    return changes


def _kept(gallery: Collection) -> Counter[tuple[str, bytes]]:
    """How many items without a file the gallery holds, by their facts and code."""
    known: Counter[tuple[str, bytes]] = Counter()
    items = iter([item for item in gallery.items() if not item.path])
    while items_here := list(islice(items, BATCH)):
        packed = gallery.index.get([item.id for item in items_here]).packed
        known.update(_mark(item.metadata, code) for item, code in zip(items_here, packed, strict=True))
    return known


def _mark(metadata: Mapping[str, Any], code: NDArray[np.uint8]) -> tuple[str, bytes]:
    facts = {name: metadata[name] for name in (PERSON, CAMERA, TIME) if name in metadata}
    return json.dumps(facts, sort_keys=True), code.tobytes()


def facts_of(people: People, i: int) -> dict[str, Any]:
    """The metadata of a picture: person, camera and time where it is known; names that are numbers as numbers."""
    metadata: dict[str, Any] = {
        PERSON: number_or_text(people.names[int(people.persons[i])]),
        CAMERA: number_or_text(people.camera_names[int(people.cameras[i])]),
    }
    if people.times is not None and not math.isnan(people.times[i]):
        time = float(people.times[i])
        metadata[TIME] = int(time) if time.is_integer() else time
    return metadata


def number_or_text(name: str) -> int | str:
    """0017 -> 17, so that `--where person=17` finds it however a set writes its numbers."""
    return int(name) if name.isascii() and name.isdecimal() and len(name) < 16 else name


@dataclass(frozen=True)
class Sighting:
    """One picture of a person in the gallery."""

    id: int
    camera: Any
    time: float | None
    distance: float  # to what was asked for
    path: str = ""


def sighting_of(item: Item, distance: float) -> Sighting:
    """The sighting that an item of a gallery stands for."""
    time = item.metadata.get(TIME)
    return Sighting(
        item.id, item.metadata.get(CAMERA), float(time) if isinstance(time, int | float) else None, distance, item.path
    )


def moments(where: Where) -> list[Condition]:
    """Conditions in which a date beside `time`, as `who` prints it (UTC), is the seconds that a gallery holds.

    2024-05-01 is the whole day, 2024-05-01T13:45 the whole minute.
    """
    conditions = []
    for one in conditions_of(where):
        if one.field != TIME or one.sign == "~" or not isinstance(one.value, str):
            conditions.append(one)
            continue
        if one.sign == "!=":
            raise InputError(f"beside time, a date takes = < <= > or >=. Got time!={one.value}.")
        start, end = (moment // 10**9 for moment in period(one.value, UTC))
        bounds = {"=": [(">=", start), ("<", end)], "<=": [("<", end)], ">": [(">=", end)]}
        conditions += [Condition(TIME, *bound) for bound in bounds.get(one.sign, [(one.sign, start)])]
    return conditions


def among(gallery: Collection, where: Where | None) -> list[Condition]:
    """The conditions of a search for persons: an item names a person, and `where` holds; some item must be left."""
    conditions = [Condition(PERSON, "!=", None), *(moments(where) if where else [])]
    if not len(gallery.select(conditions)):
        typed = [where] if isinstance(where, str | Condition) else where or []
        asked = f" for which {' and '.join(map(str, typed))} holds" if typed else ""
        raise InputError(
            f"{gallery.path.name} holds no picture of a known person{asked}. Widen --where, or take in a gallery with "
            "`bitscale reid index`."
        )
    return conditions
