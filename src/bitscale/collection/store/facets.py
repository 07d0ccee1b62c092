"""Facets: which labels and metadata the items have, and how many have each, to choose conditions from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw

SCALARS = "('text', 'integer', 'real', 'true', 'false')"


@dataclass(frozen=True)
class Value:
    """A label, or a value of the metadata, and how many items have it."""

    value: str | int | float | bool
    items: int


@dataclass(frozen=True)
class Field:
    """A name in the metadata, how many items have it, and its most frequent values."""

    field: str
    items: int
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Facets:
    """Labels and metadata of the items, with the number of items that have each."""

    labels: tuple[Value, ...]
    fields: tuple[Field, ...]
    complete: bool  # False: there are more than told


def read_facets(connection: apsw.Connection, most: int) -> Facets:
    """Look at all items; up to `most` labels, fields, and values of a field, the most frequent first."""
    labels: Any = connection.execute(
        "SELECT each.value, count(*) FROM items, json_each(items.labels) AS each "
        "GROUP BY each.value ORDER BY count(*) DESC, each.value LIMIT ?",
        (most + 1,),
    ).fetchall()
    fields: Any = connection.execute(
        "SELECT each.key, count(*) FROM items, json_each(items.metadata) AS each "
        "GROUP BY each.key ORDER BY count(*) DESC, each.key LIMIT ?",
        (most + 1,),
    ).fetchall()
    shown = tuple(Field(name, count, _values(connection, name, most)) for name, count in fields[:most])
    return Facets(tuple(Value(*row) for row in labels[:most]), shown, max(len(labels), len(fields)) <= most)


def _values(connection: apsw.Connection, field: str, most: int) -> tuple[Value, ...]:
    """The most frequent values of one field that are neither lists nor tables."""
    rows: Any = connection.execute(
        "SELECT each.value, each.type, count(*) FROM items, json_each(items.metadata) AS each "
        f"WHERE each.key = ? AND each.type IN {SCALARS} "
        "GROUP BY each.type, each.value ORDER BY count(*) DESC, each.value LIMIT ?",
        (field, most),
    ).fetchall()
    return tuple(Value(bool(value) if kind in ("true", "false") else value, n) for value, kind, n in rows)
