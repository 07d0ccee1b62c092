"""`~` in conditions: whether a text contains another, whatever the case, in any script.

SQLite's own `lower` knows ASCII alone. These are functions for its SQL; what is looked for comes as bytes, as file
names do, since a path can hold what no text can.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any


def contains(text: Any, wanted: bytes) -> bool:
    """Whether a path contains something; a path that is no UTF-8 comes as bytes."""
    return text is not None and _folded(wanted) in folded(os.fsdecode(text))


def one_contains(labels: str | None, wanted: bytes) -> bool:
    """Whether one of the labels, a list in JSON, contains something."""
    needle = _folded(wanted)
    return any(needle in folded(str(label)) for label in _read(labels, []))


def value_contains(metadata: str | None, field: str, wanted: bytes) -> bool:
    """Whether a value of the metadata, a table in JSON, contains something: a text, or a number as it is written."""
    value = _read(metadata, {}).get(field)
    return value is not None and _folded(wanted) in folded(shown(value))


def shown(value: Any) -> str:
    """A value of the metadata as a text to search in."""
    if isinstance(value, bool):
        value = int(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def folded(text: str) -> str:
    """A text without its case, accents in one form: file names of some systems hold them apart from their letters."""
    return (
        text.lower() if text.isascii() else unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    )


@lru_cache(maxsize=16)
def _folded(wanted: bytes) -> str:
    return folded(os.fsdecode(wanted))


def _read(text: str | None, empty: Any) -> Any:
    """JSON of our own; what cannot be read matches nothing here, and is an error where it is shown."""
    try:
        value = json.loads(text) if text else empty
    except (ValueError, RecursionError):
        return empty
    return value if isinstance(value, type(empty)) else empty


TEXT_SEARCH: dict[str, tuple[Callable[..., bool], int]] = {  # by their names in SQL, with the number of arguments
    "contains": (contains, 2),
    "one_contains": (one_contains, 2),
    "value_contains": (value_contains, 3),
}
