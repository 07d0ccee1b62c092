"""Conditions that a request may put on items: those of the library, but on fields that exist, and never on paths."""

from __future__ import annotations

from typing import Any

from bitscale.collection import Collection
from bitscale.collection.where import NUMBERS, Condition, parse
from bitscale.errors import InputError

KNOWN = ("label", *NUMBERS)


def conditions(where: list[str] | dict[str, Any] | None, photos: Collection) -> list[Condition] | None:
    """The conditions of a request, checked; None where it has none."""
    if not where:
        return None
    if isinstance(where, dict):
        many = [Condition(field, "=", value) for field, value in where.items()]
    else:
        many = [parse(text) for text in where]
    for one in many:
        if one.field == "path":
            raise InputError("a search over HTTP cannot ask for paths. Ask by label, id, size, modified or metadata.")
        known = one.field in KNOWN or one.field.startswith("exif.")
        if not known and not photos.has_field(one.field.removeprefix("metadata.")):
            raise InputError(
                f"no item has a field {one.field[:100]!r}. Ask by label, id, size, modified, or metadata they have."
            )
    return many
