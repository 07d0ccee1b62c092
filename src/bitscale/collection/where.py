"""Conditions on items: `camera=2`, `label=cat`, `path~holiday`, `year>=2020`; as SQL with its values apart.

    field   label            one of the labels
            path             the file's path (= takes a relative one too)
            id, size, modified
            anything else    metadata; metadata.NAME reaches one whose name stands above
    sign    =  !=            a number also equals its text: camera=2 finds 2 and "2"; != holds where there is none
            <  <=  >  >=     numbers with numbers, text with text
            ~                contains, whatever the case

All conditions must hold. In Python a table says the same of equalities: {"camera": 2, "label": "cat"}.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bitscale.collection.items import stored_path
from bitscale.errors import InputError

SIGNS = ("!=", "<=", ">=", "=", "<", ">", "~")
NUMBERS = ("id", "size", "modified")
FORM = re.compile(r"\s*([^=!<>~\s][^=!<>~]*?)\s*(!=|<=|>=|=|<|>|~)\s*(.*)", re.DOTALL)
INTEGERS = range(-(1 << 63), 1 << 63)

Sql = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Condition:
    """What must hold of an item: field, sign, value."""

    field: str
    sign: str
    value: Any


def parse(text: str) -> Condition:
    """A condition as it is typed: camera=2."""
    found = FORM.fullmatch(text)
    if not found:
        raise InputError(
            f"a condition is FIELD SIGN VALUE, as camera=2, label=cat, path~holiday or year>=2020. Got {text!r}."
        )
    field, sign, value = found.groups()
    try:
        known = json.loads(value, parse_constant=_no_constant)
    except ValueError:
        known = value
    return Condition(field, sign, value if isinstance(known, dict | list) else known)


def condition(where: Any) -> Sql:
    """The SQL of a table of equalities, a condition, its text, or a list of conditions and texts."""
    if isinstance(where, Mapping):
        many: list[Any] = [Condition(key, "=", value) for key, value in where.items()]
    else:
        many = list(where) if isinstance(where, Sequence) and not isinstance(where, str | bytes) else [where]
    conditions = [parse(one) if isinstance(one, str) else one for one in many]
    if not conditions or not all(isinstance(one, Condition) for one in conditions):
        raise InputError(f'where must be a table such as {{"camera": 2}}, or "camera=2". Got {where!r}.')
    parts = [one_condition(one) for one in conditions]
    return " AND ".join(f"({sql})" for sql, _ in parts), tuple(value for _, values in parts for value in values)


def one_condition(one: Condition) -> Sql:
    """The SQL of one condition; nothing of what was typed stands in it but as a value."""
    if one.sign not in SIGNS or not isinstance(one.field, str) or not one.field:
        raise InputError(f"a condition's sign is one of {' '.join(SIGNS)}. Got {one.sign!r}.")
    value = checked(one)
    if one.field == "label":
        return on_labels(one.sign, str(value))
    if one.field == "path":
        return on_path(one.sign, str(value))
    if one.field in NUMBERS:
        if one.sign == "~" or isinstance(value, str | bool) or value is None:
            raise InputError(f"{one.field} is a number: compare it by =, != , <, <=, > or >=. Got {value!r}.")
        return f"{one.field} {one.sign} ?", (value,)
    key = "$." + json.dumps(one.field.removeprefix("metadata."))
    return on_metadata(one.sign, key, value)


def on_labels(sign: str, value: str) -> Sql:
    """One of the labels is, or contains; none of them is."""
    if sign == "~":
        found = "EXISTS (SELECT 1 FROM json_each(labels) WHERE instr(lower(value), lower(?)))"
    elif sign in ("=", "!="):
        found = "EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)"
    else:
        raise InputError(f"labels are compared by =, != or ~. Got {sign!r}.")
    return (f"NOT {found}" if sign == "!=" else found), (value,)


def on_path(sign: str, value: str) -> Sql:
    """The path is a file's, or contains a text."""
    if sign == "~":
        stored = stored_path(value)
        if isinstance(stored, bytes):  # no text: looked for as it is
            return "instr(CAST(path AS BLOB), ?)", (stored,)
        return "instr(lower(CAST(path AS TEXT)), lower(?))", (value,)
    if sign not in ("=", "!="):
        raise InputError(f"paths are compared by =, != or ~. Got {sign!r}.")
    return f"path {'IS' if sign == '=' else 'IS NOT'} ?", (stored_path(os.path.abspath(value)),)


def on_metadata(sign: str, key: str, value: Any) -> Sql:
    """A value of the free metadata: of its own kind, but for a number that was kept as text."""
    there = "json_extract(metadata, ?)"
    if sign == "~":
        return f"instr(lower({there}), lower(?))", (key, str(value))
    if sign in ("=", "!="):
        texts = [
            value,
            *([json.dumps(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []),
        ]
        equal = " OR ".join(f"{there} IS ?" for _ in texts)
        values = tuple(one for text in texts for one in (key, text))
        return (equal if sign == "=" else f"NOT ({equal})"), values
    kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
    return f"json_type(metadata, ?) IN {kinds} AND {there} {sign} ?", (key, key, value)


def checked(one: Condition) -> Any:
    """A value that the database can hold."""
    value = one.value
    if not isinstance(value, str | int | float | None) or (isinstance(value, int) and value not in INTEGERS):
        raise InputError(f"{one.field} can be compared with text, numbers, true, false and null. Got {value!r:.80}.")
    if isinstance(value, str) and one.field != "path":
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InputError(f"{value!r} is no text. Only path can hold bytes that are no UTF-8.") from None
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(name)
