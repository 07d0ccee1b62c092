"""By which value items are parted in an engine, and where those can be for which conditions hold.

A number stands for each value. Values that one equality finds share it: camera=1 finds 1, 1.0, "1" and true. Items with
several labels have a number of their own, which a search for any label looks at too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from bitscale.collection.engines.texts import Row
from bitscale.collection.engines.where_postgres import compact
from bitscale.collection.items import Item
from bitscale.collection.opened import Opened
from bitscale.collection.where import NUMBERS, Condition, checked, one_condition
from bitscale.errors import InputError

NOTHING, SEVERAL = 0, 1  # for items without the value; for those with several labels
BYTES = 7  # of a number: it stays below 2^63

Field = tuple[str, str]  # label; metadata or exif and a name


def field_of(text: str) -> Field:
    """What a field is, as conditions name it."""
    if text == "label":
        return ("label", "")
    kind = "exif" if text.startswith("exif.") else "metadata"
    return (kind, text.removeprefix(f"{kind}."))


def check_field(text: str) -> None:
    """Refuse what items cannot be parted by."""
    if text in (*NUMBERS, "path", "exif.taken"):
        raise InputError(
            f"items are parted by what many share: label, a key of the metadata, exif.camera or such. Got {text!r}."
        )
    one_condition(Condition(text, "=", ""))


def nobody_has(collection: Opened, text: str) -> bool:
    """Whether no item has the field, so that all would be in one partition."""
    return not collection.page(-1, 1, [Condition(text, "~", "")])


def key_of(row: Row, field: Field) -> int:
    """The number of an item."""
    labels, metadata, exif = row[5:8]
    if field[0] == "label":
        return key_of_labels(labels or "[]")
    return key_in((metadata if field[0] == "metadata" else exif) or "{}", field[1])


@lru_cache(8192)
def key_in(text: str, name: str) -> int:
    """The number of a table's value; many items have the same table."""
    return key_of_value(json.loads(text).get(name))


@lru_cache(4096)
def key_of_labels(text: str) -> int:
    """The number of a list of labels."""
    labels = json.loads(text)
    return SEVERAL if len(labels) > 1 else number_of(f"l{labels[0]}") if labels else NOTHING


def key_of_value(value: Any) -> int:
    """The number of a value."""
    if value is None:
        return NOTHING
    if isinstance(value, str):
        value = as_number(value)
    if isinstance(value, bool | int | float):
        try:
            return number_of(f"n{float(value) + 0.0!r}")  # -0.0 is 0
        except OverflowError:
            value = json.dumps(value)
    return number_of(f"t{value if isinstance(value, str) else compact(value)}")


def as_number(text: str) -> Any:
    """The number that is written so, or the text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and json.dumps(value) == text else text


def number_of(text: str) -> int:
    """A number for a text, the same on every machine."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=BYTES).digest(), "little")


def keys_of(conditions: Sequence[Condition], field: Field) -> tuple[int, ...] | None:
    """The numbers that items can have for which all of the conditions hold; None: any."""
    keys: set[int] | None = None
    for one in conditions:
        if one.sign == "=" and field_of(one.field) == field:
            value = checked(one)
            found = {number_of(f"l{value}"), SEVERAL} if field[0] == "label" else {key_of_value(value)}
            keys = found if keys is None else keys & found
    return None if keys is None else tuple(sorted(keys))


def condition_like(item: Item, text: str) -> Condition | None:
    """An equality that holds for an item, on the field it is parted by; None where it has no label."""
    kind, name = field_of(text)
    if kind == "label":
        return Condition(text, "=", item.labels[0]) if item.labels else None
    value = (item.metadata if kind == "metadata" else item.exif).get(name)
    return Condition(text, "=", compact(value) if isinstance(value, dict | list) else value)
