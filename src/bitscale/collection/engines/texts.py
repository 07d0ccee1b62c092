"""Items as texts of JSON, as they are kept beside their codes in an engine, and back."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence

import numpy as np

from bitscale.collection.items import Item, NewItem
from bitscale.errors import EngineError
from bitscale.index.engines.remote import Beside


def text_of(item: Item) -> str:
    """All that is known of an item but its id and code; a path that is no text stands as bytes."""
    known: dict[str, object] = {"size": item.size, "modified": item.modified}
    try:
        item.path.encode()
        known["path"] = item.path
    except UnicodeEncodeError:
        known["path_bytes"] = os.fsencode(item.path).hex()
    if item.content is not None:
        known["content"] = item.content.hex()
    if item.labels:
        known["labels"] = list(item.labels)
    if item.metadata:
        known["metadata"] = dict(item.metadata)
    return json.dumps(known, sort_keys=True, ensure_ascii=True)


def item_of_text(id: int, text: str | None) -> NewItem:
    """The item that a text tells of."""
    try:
        known = json.loads(text or "{}")
        raw = known.get("path_bytes")
        return NewItem(
            path=os.fsdecode(bytes.fromhex(raw)) if raw else known.get("path", ""),
            content=bytes.fromhex(known["content"]) if "content" in known else None,
            size=int(known.get("size", 0)),
            modified=int(known.get("modified", 0)),
            labels=tuple(known.get("labels", ())),
            metadata=known.get("metadata", {}),
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise EngineError(
            f"what is kept beside item {id} cannot be read ({error}). Push the collection again."
        ) from None


def beside(items: Sequence[Item]) -> Beside:
    """What is kept beside the codes of some items."""
    texts = [text_of(item) for item in items]
    return Beside(np.array([digest_of(text) for text in texts], np.int64), texts)


def digest_of(text: str) -> int:
    """Eight bytes that stand for a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)
