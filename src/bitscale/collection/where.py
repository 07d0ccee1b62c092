"""Conditions on items: `camera=2`, `label=cat`, `path~holiday`, `exif.taken>=2024-05`; as SQL with its values apart.

    field   label            one of the labels
            path             the file's path (= takes a relative one too)
            id, size, modified
            exif.NAME        what the camera wrote: taken, camera, lens, iso, aperture, exposure, focal, and
                             latitude, longitude where these were asked for
            anything else    metadata; metadata.NAME reaches one whose name stands above
    sign    =  !=            a number also equals its text: camera=2 finds 2 and "2"; != holds where there is none
            <  <=  >  >=     numbers with numbers, text with text
            ~                contains, whatever the case, in any script
    dates   2024, 2024-05, 2024-05-03 or 2024-05-03T14:02 (modified, exif.taken) stand for the whole year, month, ...:
            exif.taken=2024-05 is any day of May, exif.taken>2024-05 later than that. `modified` goes by the local
            clock, and 2024 alone is a number there

All conditions must hold; there may be up to 100, of up to 10,000 characters each.
In Python a table says the same of equalities: {"camera": 2, "label": "cat"}.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from bitscale.collection.items import stored_path
from bitscale.errors import InputError
from bitscale.pictures.exif import FIELDS

SIGNS = ("!=", "<=", ">=", "=", "<", ">", "~")
NUMBERS = ("id", "size", "modified")
FORM = re.compile(r"\s*([^=!<>~\s][^=!<>~]*?)\s*(!=|<=|>=|=|<|>|~)\s*(.*)", re.DOTALL)
INTEGERS = range(-(1 << 63), 1 << 63)
DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d))?)?)?)?")
EXIF = "(SELECT exif FROM seen WHERE seen.id = items.id)"  # what the camera wrote, in SQL; `store.seen` keeps it
MOST_CONDITIONS = 100
LONGEST = 10_000  # characters

Sql = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Condition:
    """A condition on items: field, sign, value."""

    field: str
    sign: str
    value: Any


Where = Condition | str | Mapping[str, Any] | Sequence[Condition | str]  # what items can be asked to fulfil


def parse(text: str) -> Condition:
    """A condition as it is typed: camera=2."""
    if len(text) > LONGEST:
        raise InputError(f"a condition has at most {LONGEST:,} characters. Got {len(text):,}: {text[:40]!r}...")
    parts = FORM.fullmatch(text)
    if not parts:
        raise InputError(
            f"a condition is FIELD SIGN VALUE, as camera=2, label=cat, path~holiday or year>=2020. Got {text!r}."
        )
    field, sign, value = parts.groups()
    try:
        known = json.loads(value, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        known = value
    return Condition(field, sign, value if isinstance(known, dict | list) else known)


def condition(where: Where) -> Sql:
    """The SQL of a table of equalities, a condition, its text, or a list of conditions and texts."""
    parts = [one_condition(one) for one in conditions_of(where)]
    return " AND ".join(f"({sql})" for sql, _ in parts), tuple(value for _, values in parts for value in values)


def conditions_of(where: Where) -> list[Condition]:
    """A table of equalities, a condition, its text, or a list of conditions and texts, as conditions."""
    if isinstance(where, Mapping):
        many: list[Any] = [Condition(key, "=", value) for key, value in where.items()]
    else:
        many = list(where) if isinstance(where, Sequence) and not isinstance(where, str | bytes) else [where]
    if len(many) > MOST_CONDITIONS:
        raise InputError(f"at most {MOST_CONDITIONS} conditions can be given at once. Got {len(many):,}.")
    conditions = [parse(one) if isinstance(one, str) else one for one in many]
    if not conditions or not all(isinstance(one, Condition) for one in conditions):
        raise InputError(f'where must be a table such as {{"camera": 2}}, or "camera=2". Got {where!r:.200}.')
    return conditions


def one_condition(one: Condition) -> Sql:
    """The SQL of one condition; nothing of what was typed stands in it but as a value."""
    if one.sign not in SIGNS:
        raise InputError(f"a condition's sign is one of {' '.join(SIGNS)}. Got {one.sign!r}.")
    if not isinstance(one.field, str) or not one.field or not _is_text(one.field):
        raise InputError(f"a condition's field must be a name. Got {one.field!r:.80}.")
    value = checked(one)
    if one.field == "label":
        return on_labels(one.sign, str(value))
    if one.field == "path":
        return on_path(one.sign, str(value))
    if one.field == "modified" and isinstance(value, str) and one.sign != "~":
        return on_time(one.sign, value)
    if one.field.startswith("exif."):
        return on_exif(one.sign, one.field.removeprefix("exif."), value)
    if one.field in NUMBERS:
        if one.sign == "~" or isinstance(value, str | bool) or value is None:
            raise InputError(f"{one.field} is a number: compare it by =, != , <, <=, > or >=. Got {value!r}.")
        return f"{one.field} {one.sign} ?", (value,)
    field = one.field.removeprefix("metadata.")
    if one.sign == "~":
        return "value_contains(metadata, ?, ?)", (field, os.fsencode(as_text(value)))
    return on_metadata(one.sign, json_key(field), value)


def json_key(field: str) -> str:
    """Where a field of the metadata stands, as SQLite's JSON functions take it."""
    return "$." + json.dumps(field, ensure_ascii=False)


def on_time(sign: str, value: str) -> Sql:
    """The file was changed within, before or after a year, a month, a day, a minute."""
    start, end = period(value)
    return {
        "=": ("modified >= ? AND modified < ?", (start, end)),
        "!=": ("NOT (modified >= ? AND modified < ?)", (start, end)),
        "<": ("modified < ?", (start,)),
        "<=": ("modified < ?", (end,)),
        ">": ("modified >= ?", (end,)),
        ">=": ("modified >= ?", (start,)),
    }[sign]


def period(value: str, zone: tzinfo | None = None) -> tuple[int, int]:
    """The first nanosecond of a year, month, day, minute or second, and the first after it; by the local clock unless
    a zone is given."""
    match = DATE.fullmatch(value.strip())
    try:
        if not match:
            raise ValueError
        year, month, day, hour, minute, second = (int(part) if part else None for part in match.groups())
        start = datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, second or 0, tzinfo=zone)
        if day is None:
            later = (start.year, start.month + 1) if month and month < 12 else (start.year + 1, 1)
            end = datetime(*later, 1, tzinfo=zone)
        else:
            one = {"days": 1} if hour is None else {"minutes": 1} if second is None else {"seconds": 1}
            end = start + timedelta(**one)
        return int(start.timestamp()) * 10**9, int(end.timestamp()) * 10**9
    except (ValueError, OverflowError, OSError):
        raise InputError(f"a date is 2024, 2024-05, 2024-05-03 or 2024-05-03T14:02. Got {value!r:.80}.") from None


def on_exif(sign: str, field: str, value: Any) -> Sql:
    """A field that the camera wrote; `taken` is compared as far as the date given goes."""
    if sign == "~":
        return f"value_contains({EXIF}, ?, ?)", (field, os.fsencode(as_text(value)))
    key = json_key(field)
    if field != "taken":
        return on_metadata(sign, key, value, EXIF)
    text = as_text(value).strip().replace(" ", "T")
    if not DATE.fullmatch(text):
        raise InputError(f"exif.taken is a date: 2024, 2024-05, 2024-05-03 or 2024-05-03T14:02. Got {value!r:.80}.")
    there = f"substr(json_extract({EXIF}, ?), 1, ?)"
    compared = {"=": "IS", "!=": "IS NOT"}.get(sign, sign)
    return f"{there} {compared} ?", (key, len(text), text)


def on_labels(sign: str, value: str) -> Sql:
    """SQL for: one of the labels equals or contains a text, or none does."""
    if sign == "~":
        return "one_contains(labels, ?)", (os.fsencode(value),)
    if sign not in ("=", "!="):
        raise InputError(f"labels are compared by =, != or ~. Got {sign!r}.")
    has_it = "EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)"
    return (f"NOT {has_it}" if sign == "!=" else has_it), (value,)


def on_path(sign: str, value: str) -> Sql:
    """SQL for: the path is that of a file, or contains a text."""
    if sign == "~":
        stored_path(value)  # what can be no path is refused
        return "contains(path, ?)", (os.fsencode(value),)
    if sign not in ("=", "!="):
        raise InputError(f"paths are compared by =, != or ~. Got {sign!r}.")
    return f"path {'IS' if sign == '=' else 'IS NOT'} ?", (stored_path(os.path.abspath(value)),)


def on_metadata(sign: str, key: str, value: Any, table: str = "metadata") -> Sql:
    """A value of a table in JSON, the free metadata: of its own kind, but for a number that was kept as text."""
    there = f"json_extract({table}, ?)"
    if sign in ("=", "!="):
        texts = [
            value,
            *([json.dumps(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []),
        ]
        equal = " OR ".join(f"{there} IS ?" for _ in texts)
        values = tuple(one for text in texts for one in (key, text))
        return (equal if sign == "=" else f"NOT ({equal})"), values
    kinds = "('text')" if isinstance(value, str) else "('integer', 'real')"
    return f"json_type({table}, ?) IN {kinds} AND {there} {sign} ?", (key, key, value)


def checked(one: Condition) -> Any:
    """A value that the database can hold."""
    value = one.value
    field = str(one.field)
    camera = field.removeprefix("exif.")
    if camera != field and camera not in FIELDS:
        raise InputError(f"a camera's fields are exif.{', exif.'.join(FIELDS)}. Got {field!r:.80}.")
    if isinstance(value, int) and value not in INTEGERS:
        raise InputError(f"{one.field} can be compared with whole numbers of 64 bits. Got {value!r:.80}.")
    if not isinstance(value, str | int | float | None):
        raise InputError(f"{one.field} can be compared with text, numbers, true, false and null. Got {value!r:.80}.")
    if isinstance(value, str) and one.field != "path" and not _is_text(value):
        raise InputError(f"{value!r} is no text. Only path can hold bytes that are no UTF-8.")
    return value


def as_text(value: Any) -> str:
    """A value as metadata would be written that holds it."""
    return value if isinstance(value, str) else json.dumps(int(value) if isinstance(value, bool) else value)


def _is_text(value: str) -> bool:
    try:
        value.encode()
        return True
    except UnicodeEncodeError:
        return False


def _no_constant(name: str) -> Any:
    raise ValueError(name)
