"""Items: the facts that a collection keeps of a picture, and how they stand in a row of its database."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bitscale.errors import CorruptFile, InputError

Row = tuple[int, "str | bytes | None", "bytes | None", int, int, "str | None", "str | None"]
COLUMNS = "id, path, content, size, modified, labels, metadata"
HASH_BYTES = 32  # SHA-256
LARGEST = (1 << 63) - 1
SHORT = 200  # characters of metadata that many items may share
MOST_DEPTH = 64  # tables and lists within one another, in metadata


@dataclass(frozen=True)
class NewItem:
    """A picture to be added: where it is, what it holds, and what its owner says about it."""

    path: str = ""  # absolute; empty: codes without a file
    content: bytes | None = None  # SHA-256 of the file's bytes
    size: int = 0  # in bytes
    modified: int = 0  # nanoseconds since 1970, as os.stat gives them
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    exif: Mapping[str, Any] = field(default_factory=dict)  # what its camera wrote down: see `pictures.exif`


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
    """The item that a row of the table `items` holds, with its EXIF behind."""
    id, path, content, size, modified, labels, metadata, exif = row
    try:
        names = read_labels(labels) if labels else ()
        table = read_metadata(metadata) if metadata else {}
        camera = read_metadata(exif) if exif else {}
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptFile(
            f"labels or metadata of item {id} cannot be read ({error}). Remove the item, or restore a backup."
        ) from None
    item = Item.__new__(Item)  # quicker than its __init__, which goes by object.__setattr__ since it is frozen
    item.__dict__.update(
        path=read_path(path),
        content=content,
        size=size,
        modified=modified,
        labels=names,
        metadata=table,
        exif=camera,
        id=id,
    )
    return item


@lru_cache(4096)
def read_labels(text: str) -> tuple[str, ...]:
    """Labels from the text that the database holds; many items have the same."""
    return tuple(json.loads(text))


def read_metadata(text: str) -> dict[str, Any]:
    """Metadata from the text that the database holds."""
    flat = len(text) <= SHORT and "[" not in text and "{" not in text[1:]
    table: dict[str, Any] = dict(_flat(text)) if flat else json.loads(text)  # each item has a table of its own
    return table


@lru_cache(4096)
def _flat(text: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(text)
    return table


def in_range(number: int) -> int:
    """A number that a file system gives (a size, a time) as the database can hold it: the nearest to it."""
    return min(max(number, 0), LARGEST)


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
        try:
            return os.fsencode(path)
        except UnicodeEncodeError:
            raise InputError(f"{path!r} can be no path: it is neither text nor what os.fsdecode gives.") from None
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
        if deeper(metadata, MOST_DEPTH):
            raise ValueError(f"tables and lists stand at most {MOST_DEPTH} deep in one another")
        return json.dumps(dict(metadata), ensure_ascii=True, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"metadata must be a table that JSON can hold ({error}). Got {_short(metadata)}.") from None


def deeper(value: Any, levels: int) -> bool:
    """Whether tables and lists stand more than so many levels deep in a value."""
    layer = [value]
    for _ in range(levels + 1):
        inner = (one.values() if isinstance(one, Mapping) else one for one in layer if _holds(one))
        layer = [each for some in inner for each in some]
    return any(_holds(one) for one in layer)


def _holds(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple)


def _short(value: Any) -> str:
    try:
        return f"{value!r:.200}"
    except RecursionError:
        return f"a {type(value).__name__} that is too deep to show"
