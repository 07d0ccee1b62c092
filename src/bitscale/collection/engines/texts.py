"""Items as texts of JSON, as they are kept beside their codes in an engine, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

import numpy as np

from bitscale.collection.items import Item
from bitscale.errors import EngineError
from bitscale.index.base import I64

Row = Sequence[Any]  # of the table `items`, with EXIF behind


def text_of(row: Row, sight: tuple[int, int] | None = None) -> str:
    """All that is known of an item but its id, its code and its look, in JSON; a path that is no text stands as bytes.

    Labels, metadata and EXIF are JSON in the database already.
    """
    _, path, content, size, modified, labels, metadata, exif = row
    content = "" if content is None else f'"content": "{content.hex()}", '
    exif = f'"exif": {exif}, ' if exif else ""
    labels = f'"labels": {labels}, ' if labels else ""
    metadata = f'"metadata": {metadata}, ' if metadata else ""
    named = f'"path_bytes": "{path.hex()}"' if isinstance(path, bytes) else f'"path": {quoted(path or "")}'
    seen = "" if sight is None else f'"sight": [{sight[0]}, {sight[1]}], '
    return f'{{{content}{exif}{labels}{metadata}"modified": {modified}, {named}, {seen}"size": {size}}}'


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


def digests_of(texts: Sequence[str], looks: Sequence[bytes | None]) -> I64:
    """Eight bytes each that stand for what is beside codes."""
    contents = [text.encode() + look if look else text.encode() for text, look in zip(texts, looks, strict=True)]
    return np.frombuffer(b"".join([blake2b(content, digest_size=8).digest() for content in contents]), "<i8").astype(
        np.int64
    )


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
