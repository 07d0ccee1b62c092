"""Items: what a collection knows of a picture, and how that stands in a row of its database."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bitscale.errors import InputError

Row = tuple[int, "str | bytes | None", "bytes | None", int, int, "str | None", "str | None"]
COLUMNS = "id, path, content, size, modified, labels, metadata"
HASH_BYTES = 32  # SHA-256
LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class NewItem:
    """A picture to be added: where it is, what it holds, and what its owner says about it."""

    path: str = ""  # absolute; empty: codes without a file
    content: bytes | None = None  # SHA-256 of the file's bytes
    size: int = 0  # in bytes
    modified: int = 0  # nanoseconds since 1970, as os.stat gives them
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Item(NewItem):
    """A picture in a collection, under its id."""

    id: int = -1


@dataclass(frozen=True)
class Skipped:
    """A file that could not be taken in, and why; it is looked at again once it changes."""

    path: str
    size: int
    modified: int
    reason: str


def row_of(id: int, item: NewItem) -> Row:
    """An item as a row of the table `items`."""
    content = item.content
    if content is not None and len(content) != HASH_BYTES:
        raise InputError(f"content must be a SHA-256 of {HASH_BYTES} bytes. Got {len(content)} bytes.")
    for name in ("size", "modified"):
        value = getattr(item, name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
            raise InputError(f"{name} must be a whole number, 0 or more. Got {value!r}.")
    return (
        id,
        stored_path(item.path),
        content,
        item.size,
        item.modified,
        labels_text(item.labels),
        metadata_text(item.metadata),
    )


def item_of(row: Sequence[Any]) -> Item:
    """The item that a row of the table `items` holds."""
    id, path, content, size, modified, labels, metadata = row
    return Item(
        read_path(path),
        content,
        size,
        modified,
        tuple(json.loads(labels)) if labels else (),
        json.loads(metadata) if metadata else {},
        id,
    )


def stored_path(path: str) -> str | bytes | None:
    """A path as the database holds it: text; bytes where the name is no UTF-8; nothing where there is none."""
    if not isinstance(path, str):
        raise InputError(f"a path must be text. Got {type(path).__name__}; use os.fsdecode.")
    if not path:
        return None
    if "\0" in path:
        raise InputError(f"a path cannot hold a zero byte. Got {path!r}.")
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def read_path(stored: str | bytes | None) -> str:
    """A path as it was given."""
    return os.fsdecode(stored) if stored else ""


def path_key(path: str) -> int:
    """Eight bytes that stand for a path in its index."""
    digest = hashlib.blake2b(os.fsencode(path), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def labels_text(labels: Sequence[str]) -> str | None:
    """Labels as the database holds them."""
    if not labels:
        return None
    if isinstance(labels, str) or not all(isinstance(label, str) and label for label in labels):
        raise InputError(f"labels must be a list of names. Got {labels!r}.")
    return json.dumps(list(dict.fromkeys(labels)), ensure_ascii=True)


def metadata_text(metadata: Mapping[str, Any]) -> str | None:
    """Free metadata as the database holds it: JSON, keys in order."""
    if not metadata:
        return None
    try:
        if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
            raise TypeError("keys must be text")
        return json.dumps(dict(metadata), ensure_ascii=True, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"metadata must be a table that JSON can hold ({error}). Got {metadata!r:.200}.") from None
