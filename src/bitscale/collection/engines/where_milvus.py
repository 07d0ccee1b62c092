"""Conditions on items in Milvus: what they look at, as JSON beside each code, and expressions over it.

Milvus 2.3 binds no values, so nothing that was typed ever stands in an expression: names and texts stand there in
hexadecimal, which also keeps their order, and numbers as numbers. Each value has a key that tells its kind:

    mt, mn, mb, mc, mz   metadata: text, number, truth (0 or 1), list or table, nothing; then the name in hexadecimal
    et, en, eb, ec, ez   EXIF

It cannot look inside a text (`~`): these conditions are left to whoever asks.
"""

from __future__ import annotations

import json
import math
import os
from functools import lru_cache
from typing import Any

from bitscale.collection.engines.texts import Row
from bitscale.collection.engines.where_postgres import compact
from bitscale.collection.items import read_path
from bitscale.collection.where import NUMBERS, Condition, as_text, checked, one_condition, period
from bitscale.errors import InputError

NOTHING, ALL = "id < 0", "id >= 0"
AFTER = "g"  # behind every text in hexadecimal that begins alike


def coded(text: str) -> str:
    """A text in hexadecimal, bytes of file names as they are."""
    return text.encode("utf-8", "surrogatepass").hex()


def facts_of(row: Row) -> str:
    """What conditions on an item look at, in JSON."""
    _, path, _, size, modified, labels, metadata, exif = row
    named = f', "path": "{coded(read_path(path))}"' if path else ""
    tables = "".join(parts_of(prefix, text) for prefix, text in (("m", metadata), ("e", exif)) if text)
    return f'{{"size": {size}, "modified": {modified}, "labels": {labels_of(labels)}{named}{tables}}}'


@lru_cache(4096)
def labels_of(text: str | None) -> str:
    """Labels as a list; many items have the same."""
    return json.dumps([*map(coded, json.loads(text))]) if text else "[]"


@lru_cache(8192)
def parts_of(prefix: str, text: str) -> str:
    """The values of a table under keys that tell their kinds, each behind a comma."""
    known = []
    for name, value in json.loads(text).items():
        if isinstance(value, bool):
            known.append(f', "{prefix}b{coded(name)}": {int(value)}')
        elif isinstance(value, int | float):
            known.append(f', "{prefix}n{coded(name)}": {plain(value)!r}')
        elif value is not None:
            kind, letters = ("t", value) if isinstance(value, str) else ("c", compact(value))
            known.append(f', "{prefix}{kind}{coded(name)}": "{coded(letters)}"')
        else:
            known.append(f', "{prefix}z{coded(name)}": 0')
    return "".join(known)


def plain(value: float) -> int | float:
    """A number that is whole as a whole number."""
    return int(value) if isinstance(value, int) or (value.is_integer() and abs(value) < 1 << 53) else value


def has_field(field: str) -> str:
    """The expression for: the item's metadata has this name."""
    return " or ".join(f'(exists facts["m{kind}{coded(field)}"])' for kind in "tnbcz")


def expression(conditions: list[Condition]) -> str:
    """The expression for: all these conditions hold."""
    return " and ".join(f"({one(each)})" for each in conditions) or ALL


def looks_inside(each: Condition) -> bool:
    """Whether Milvus cannot answer a condition."""
    return each.sign == "~"


def one(each: Condition) -> str:
    """The expression for one condition."""
    one_condition(each)  # refuses what can be no condition
    field, sign, value = each.field, each.sign, checked(each)
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{field} can be compared with finite numbers. Got {value!r}.")
    if sign == "!=":
        return f"not ({one(Condition(field, '=', value))})"
    if field == "label":
        return f'json_contains(facts["labels"], "{coded(str(value))}")'
    if field == "path":
        return f'facts["path"] == "{coded(os.path.abspath(str(value)))}"'
    if field == "modified" and isinstance(value, str):
        return on_time(sign, *period(value))
    if field == "id":
        return on_id(sign, value)
    if field in NUMBERS:
        return f'facts["{field}"] {signed(sign)} {plain(value)!r}'
    prefix, name = ("e", field.removeprefix("exif.")) if field.startswith("exif.") else ("m", field)
    if field == "exif.taken":
        return on_taken(sign, as_text(value).strip().replace(" ", "T"))
    return on_value(sign, prefix, coded(name.removeprefix("metadata.") if prefix == "m" else name), value)


def signed(sign: str) -> str:
    """A sign as it stands in an expression."""
    return {"=": "==", "<": "<", "<=": "<=", ">": ">", ">=": ">="}[sign]


def on_id(sign: str, value: float) -> str:
    """The expression for a condition on the id, which is a whole number in Milvus."""
    whole = math.floor(value)
    if whole == value:
        return f"id {signed(sign)} {whole}"
    return NOTHING if sign == "=" else f"id <= {whole}" if sign in ("<", "<=") else f"id > {whole}"


def on_time(sign: str, start: int, end: int) -> str:
    """The file was changed within, before or after a stretch of time."""
    there = 'facts["modified"]'
    within = f"{there} >= {start} and {there} < {end}"
    before, after = {"<": f"{there} < {start}", "<=": f"{there} < {end}"}, {">": end, ">=": start}
    return within if sign == "=" else before[sign] if sign in before else f"{there} >= {after[sign]}"


def on_taken(sign: str, text: str) -> str:
    """When the picture was taken, as far as the date given goes: what begins like it counts as equal."""
    there, first = f'facts["et{coded("taken")}"]', coded(text)
    last = first + AFTER
    return {
        "=": f'{there} >= "{first}" and {there} < "{last}"',
        "<": f'{there} < "{first}"',
        "<=": f'{there} < "{last}"',
        ">": f'{there} >= "{last}"',
        ">=": f'{there} >= "{first}"',
    }[sign]


def on_value(sign: str, prefix: str, name: str, value: Any) -> str:
    """A value of the metadata: of its own kind, but for a number that was kept as text."""

    def there(kind: str) -> str:
        return f'facts["{prefix}{kind}{name}"]'

    if sign != "=":
        if value is None:
            return NOTHING
        kind, bound = ("t", f'"{coded(value)}"') if isinstance(value, str) else ("n", repr(plain(value)))
        return f"{there(kind)} {signed(sign)} {bound}"
    if value is None:
        return "not (" + " or ".join(f"(exists {there(kind)})" for kind in "tnbc") + ")"
    if isinstance(value, str):
        return f'({there("t")} == "{coded(value)}") or ({there("c")} == "{coded(value)}")'
    equal = [f"{there('n')} == {plain(value)!r}"]
    if value in (0, 1):
        equal.append(f"{there('b')} == {int(value)}")
    if not isinstance(value, bool):
        equal.append(f'{there("t")} == "{coded(json.dumps(value))}"')
    return " or ".join(f"({each})" for each in equal)
