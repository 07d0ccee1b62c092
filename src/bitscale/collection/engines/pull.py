"""Bring a collection back from an engine, into a folder: items and codes under the ids they have there."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bitscale.arrays import Progress
from bitscale.collection.engines.collection import NOTES
from bitscale.collection.engines.texts import item_of_text, sight_of_text
from bitscale.collection.store.contents import CODES_ONLY
from bitscale.collection.store.seen import Seen
from bitscale.collection.upkeep.create import create
from bitscale.collection.writing import Writable
from bitscale.errors import EngineError, FileError
from bitscale.hashers import Hasher
from bitscale.index.engines import connect
from bitscale.index.engines.remote import RemoteIndex

BATCH = 10_000
FROM, STATE = "pulled_from", "pulled_state"  # the address, and how many changes there were there


def pull(
    address: str,
    folder: str | os.PathLike[str],
    hasher: Hasher,
    *,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> int:
    """Make a collection of what is at an address; how many items it holds. Stopped, the same call goes on.

    The model is not in the engine: `hasher` must be the one its codes were made by.
    """
    home = Path(os.path.abspath(folder))
    with connect.open_index(address) as index:
        if hasher.fingerprint != index.model:
            raise EngineError(
                f"{index.address} holds codes of model {index.model}. Got {hasher.fingerprint}: give that model."
            )
        if not home.exists():
            kept = json.loads(index.notes().get(NOTES, "{}"))
            state = str(index.counted()[1])
            create(home, hasher, codes_only=CODES_ONLY in kept, notes={FROM: str(index.address), STATE: state})
        with Writable.open(home) as collection:
            if collection.notes().get(FROM) != str(index.address):
                raise FileError(
                    f"{home} is a collection already, and not one pulled from {index.address}. Name another."
                )
            check_state(collection, index)
            ids = index.ids()
            left = ids[ids >= collection.next_id]
            for start in range(0, len(left), batch):
                some = left[start : start + batch]
                texts = index.texts(some)
                items = [item_of_text(id, texts.get(id)) for id in some.tolist()]
                looks = index.looks(some)
                seen = [
                    Seen(*sight_of_text(item.id, texts.get(item.id)) or (0, 0), looks.get(item.id, b""), item.exif)
                    for item in items
                ]
                collection.restore(index.get(some), items, some, seen if looks or any(i.exif for i in items) else ())
                if progress:
                    progress(len(ids) - len(left) + start + len(some), len(ids))
            check_state(collection, index)
            return len(collection)


def check_state(collection: Writable, index: RemoteIndex) -> None:
    """Refuse to go on where the engine was changed: what was fetched before may be out of date."""
    begun = collection.notes().get(STATE)
    if begun is not None and int(begun) != index.counted()[1]:
        raise FileError(
            f"{index.address} was changed since {collection.path.name} was begun from it. Pull into another folder, or "
            "remove this one and pull again."
        )
