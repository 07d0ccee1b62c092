"""Items as texts of JSON, as they are kept beside their codes in an engine, and back."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from bitscale.collection.items import Item
from bitscale.collection.store.seen import Seen
from bitscale.errors import EngineError


def text_of(item: Item, seen: Seen | None = None) -> str:
    """All that is known of an item but its id, its code and its look; a path that is no text stands as bytes."""
    known: dict[str, object] = {"size": item.size, "modified": item.modified}
    try:
        item.path.encode()
        known["path"] = item.path
    except UnicodeEncodeError:
        known["path_bytes"] = os.fsencode(item.path).hex()
    if item.content is not None:
        known["content"] = item.content.hex()
    if item.labels:
        known["labels"] = item.labels
    if item.metadata:
        known["metadata"] = item.metadata
    if item.exif:
        known["exif"] = item.exif
    if seen is not None:
        known["sight"] = [seen.width, seen.height]
    return json.dumps(known, sort_keys=True, ensure_ascii=True)


def item_of_text(id: int, text: str | None) -> Item:
    """The item that a text tells of."""
    known = _read(id, text)
    try:
        raw = known.get("path_bytes")
        return Item(
            path=os.fsdecode(bytes.fromhex(raw)) if raw else known.get("path", ""),
            content=bytes.fromhex(known["content"]) if "content" in known else None,
            size=int(known.get("size", 0)),
            modified=int(known.get("modified", 0)),
            labels=tuple(known.get("labels", ())),
            metadata=known.get("metadata", {}),
            exif=known.get("exif", {}),
            id=id,
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise _unreadable(id, error) from None


def sight_of_text(id: int, text: str | None) -> tuple[int, int] | None:
    """Width and height of the picture, where its look is kept."""
    sight = _read(id, text).get("sight")
    try:
        return None if sight is None else (int(sight[0]), int(sight[1]))
    except (ValueError, TypeError, LookupError) as error:
        raise _unreadable(id, error) from None


def digest_of(text: str, look: bytes | None = None) -> int:
    """Eight bytes that stand for what is beside a code."""
    return int.from_bytes(hashlib.blake2b(text.encode() + (look or b""), digest_size=8).digest(), "little", signed=True)


def _read(id: int, text: str | None) -> Mapping[str, Any]:
    try:
        known = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise _unreadable(id, error) from None
    if not isinstance(known, dict):
        raise _unreadable(id, TypeError("not a table"))
    return known


def _unreadable(id: int, error: Exception) -> EngineError:
    return EngineError(f"what is kept beside item {id} cannot be read ({error}). Push the collection again.")
