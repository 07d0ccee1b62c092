"""Conditions on items in PostgreSQL: what they look at, as jsonb beside each code, and SQL with its values bound.

They hold for the same items as in a folder. Texts stand there as they are, but for the characters that PostgreSQL has
none for (zero, and bytes of file names that are no UTF-8), which stand as characters of a private plane. What `~` looks
into is folded by us beforehand, since no database folds case as Python does.
"""

from __future__ import annotations

import json
import math
import os
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from bitscale.collection.engines.texts import Row
from bitscale.collection.items import read_path
from bitscale.collection.store.text_search import folded, shown
from bitscale.collection.where import (
    DATE,
    NUMBERS,
    SIGNS,
    Condition,
    as_text,
    checked,
    conditions_of,
    one_condition,
    period,
)
from bitscale.errors import InputError

Sql = tuple[str, list[Any]]
PLANE = 0xF0000  # stands for character zero; the 2,048 after it for those that UTF-8 cannot hold
TABLES = {"metadata": "facts->'metadata'", "exif": "facts->'exif'"}
ZERO, FIRST = chr(PLANE), "\x01"
ODD = {0: PLANE, **{0xD800 + i: PLANE + 1 + i for i in range(0x800)}}


def storable(text: str) -> str:
    """A text as PostgreSQL can hold it."""
    return text if text.isprintable() else text.translate(ODD)


def facts_of(row: Row) -> str:
    """What conditions on an item look at, in JSON."""
    _, path, _, size, modified, labels, metadata, exif = row
    known, into = told_of(labels, metadata, exif)
    if path:
        name = path if isinstance(path, str) else read_path(path)
        plain = quoted(storable(name))
        folds = plain.lower() if name.isascii() and name.isprintable() else quoted(storable(folded(name)))
        known, into = f', "path": {plain}{known}', f', "path": {folds}{into}'
    return f'{{"size": {size}, "modified": {modified}{known}, "folded": {{{into[2:]}}}}}'


@lru_cache(8192)
def told_of(labels: str | None, metadata: str | None, exif: str | None) -> tuple[str, str]:
    """Labels and tables of values as conditions look at them, and as `~` looks into them; many items have the same."""
    known, into = "", ""
    for key, text in (("labels", labels), ("metadata", metadata), ("exif", exif)):
        if text:
            plain, folds = parts_of(text)
            known, into = f'{known}, "{key}": {plain}', f'{into}, "{key}": {folds}'
    return known, into


def parts_of(text: str) -> tuple[str, str]:
    """Labels or a table of values as conditions look at them, and as `~` looks into them."""
    known = json.loads(text)
    if isinstance(known, list):
        return json.dumps([*map(storable, known)]), json.dumps([storable(folded(label)) for label in known])
    folds = {storable(key): storable(folded(shown(value))) for key, value in known.items() if value is not None}
    return json.dumps({storable(key): value_of(value) for key, value in known.items()}), json.dumps(folds)


def value_of(value: Any) -> Any:
    """A value of the metadata; lists and tables stand as their text, apart from texts."""
    if isinstance(value, str):
        return storable(value)
    return {"json": compact(value)} if isinstance(value, dict | list | tuple) else value


def compact(value: Any) -> str:
    """A list or table as SQLite shows it."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def has_field(field: str) -> Sql:
    """SQL for: the item's metadata has this name."""
    return "coalesce(facts->'metadata' ? %s, false)", [storable(field)]


def condition(where: Any) -> Sql:
    """SQL for: all these conditions hold."""
    parts = [one(each) for each in conditions_of(where)]
    return " AND ".join(f"({sql})" for sql, _ in parts), [value for _, values in parts for value in values]


def one(each: Condition) -> Sql:
    """One condition; nothing of what was typed stands in it but as a value."""
    one_condition(each)  # refuses what can be no condition
    field, sign, value = each.field, each.sign, checked(each)
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{field} can be compared with finite numbers. Got {value!r}.")
    if field == "label":
        return on_labels(sign, str(value))
    if field == "path":
        return on_path(sign, str(value))
    if field == "modified" and isinstance(value, str):
        start, end = period(value)
        return on_time(sign, start, end)
    if field in NUMBERS:
        there = "id" if field == "id" else f"(facts->>'{field}')::numeric"
        return f"{there} {sign_of(sign)} %s::numeric", [repr(value)]
    table = "exif" if field.startswith("exif.") else "metadata"
    name = field.removeprefix(f"{table}.")
    if sign == "~":
        return f"coalesce(strpos(facts->'folded'->'{table}'->>%s, %s) > 0, false)", [storable(name), needle(value)]
    if field == "exif.taken":
        return on_taken(sign, as_text(value).strip().replace(" ", "T"))
    return on_value(sign, f"{TABLES[table]}->%s", storable(name), value)


def sign_of(sign: str) -> str:
    """A sign as it may stand in SQL."""
    if sign not in SIGNS or sign == "~":
        raise InputError(f"a condition's sign is one of {' '.join(SIGNS)}. Got {sign!r}.")
    return "<>" if sign == "!=" else sign


def needle(value: Any) -> str:
    """What `~` looks for."""
    return storable(folded(os.fsdecode(as_bytes(value))))


def as_bytes(value: Any) -> bytes:
    """What `~` looks for, in bytes as file names are."""
    return os.fsencode(as_text(value))


def on_labels(sign: str, value: str) -> Sql:
    """SQL for: one of the labels equals or contains a text, or none does."""
    if sign == "~":
        into = "jsonb_array_elements_text(facts->'folded'->'labels') AS each(label)"
        return f"EXISTS (SELECT 1 FROM {into} WHERE strpos(label, %s) > 0)", [needle(value)]
    has_it = "coalesce(facts->'labels' ? %s, false)"
    return (f"NOT {has_it}" if sign == "!=" else has_it), [storable(value)]


def on_path(sign: str, value: str) -> Sql:
    """SQL for: the path is that of a file, or contains a text."""
    if sign == "~":
        return "coalesce(strpos(facts->'folded'->>'path', %s) > 0, false)", [needle(value)]
    distinct = "IS NOT DISTINCT FROM" if sign == "=" else "IS DISTINCT FROM"
    return f"facts->>'path' {distinct} %s", [storable(os.path.abspath(value))]


def on_time(sign: str, start: int, end: int) -> Sql:
    """The file was changed within, before or after a stretch of time."""
    there = "(facts->>'modified')::numeric"
    return {
        "=": (f"{there} >= %s AND {there} < %s", [start, end]),
        "!=": (f"NOT ({there} >= %s AND {there} < %s)", [start, end]),
        "<": (f"{there} < %s", [start]),
        "<=": (f"{there} < %s", [end]),
        ">": (f"{there} >= %s", [end]),
        ">=": (f"{there} >= %s", [start]),
    }[sign]


def on_taken(sign: str, text: str) -> Sql:
    """When the picture was taken, as far as the date given goes."""
    assert DATE.fullmatch(text)
    there = "left(facts->'exif'->>'taken', %s)"
    if sign in ("=", "!="):
        return f"{there} IS {'NOT ' if sign == '=' else ''}DISTINCT FROM %s", [len(text), text]
    return f'coalesce({there} COLLATE "C" {sign_of(sign)} %s, false)', [len(text), text]


def on_value(sign: str, there: str, key: str, value: Any) -> Sql:
    """A value of the metadata: of its own kind, but for a number that was kept as text."""
    if sign in ("=", "!="):
        parameters: list[Any]
        if value is None:
            equal, parameters = f"coalesce({there} = 'null'::jsonb, true)", [key]
        else:
            equal, parameters = f"coalesce({there} = ANY(%s::text[]::jsonb[]), false)", [key, alike(value)]
        return (equal if sign == "=" else f"NOT {equal}"), parameters
    if value is None:
        return "false", []
    if isinstance(value, str):  # character zero comes first, whatever stands for it
        kind, bound = "string", storable(value).replace(ZERO, FIRST)
        compared = f"translate({there} #>> '{{}}', '{ZERO}', '{FIRST}') COLLATE \"C\" {sign_of(sign)} %s"
    else:
        kind, bound = "number", number(value)
        compared = f"({there} #>> '{{}}')::numeric {sign_of(sign)} %s::numeric"
    return f"CASE WHEN jsonb_typeof({there}) = '{kind}' THEN {compared} ELSE false END", [key, key, bound]


def number(value: Any) -> str:
    """A number as SQL takes it from text."""
    return repr(int(value) if isinstance(value, bool) else value)


def alike(value: Any) -> list[str]:
    """All values that count as equal to one, in JSON: true is 1, and 2 is also "2"."""
    if isinstance(value, str):
        text = storable(value)
        return [json.dumps(text), json.dumps({"json": text})]
    same = [number(value), *(["true" if value else "false"] if value in (0, 1) else [])]
    return same if isinstance(value, bool) else [*same, json.dumps(json.dumps(value))]
