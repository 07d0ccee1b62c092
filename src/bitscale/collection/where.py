"""Conditions on items, as SQL with its values apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bitscale.errors import InputError


def condition(where: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """The SQL condition of {"camera": 2, "label": "cat"}: all of them hold."""
    if not isinstance(where, Mapping) or not where:
        raise InputError(f'where must be a table such as {{"camera": 2}}. Got {where!r}.')
    parts, values = [], []
    for key, value in where.items():
        if key == "label":
            parts.append("EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)")
            values.append(value)
        else:
            parts.append("json_extract(metadata, ?) = ?")
            values += ["$." + json.dumps(key), value]
    return " AND ".join(parts), tuple(values)
