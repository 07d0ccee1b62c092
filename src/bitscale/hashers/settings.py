"""Settings of methods: making them from keyword arguments, and which of them count in a model's fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field, fields
from typing import TYPE_CHECKING, Any, get_type_hints

from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.hashers.base import Hasher


def later(default: Any) -> Any:
    """A setting that came after models had been written: at its default it is no part of a model's identity."""
    return field(default=default, metadata={"later": True})


def settings_identity(settings: Any) -> dict[str, Any]:
    """The settings that count in a model's fingerprint, by name; later ones do not while they are at their default."""
    new = {f.name for f in fields(settings) if f.metadata.get("later") and getattr(settings, f.name) == f.default}
    return {name: value for name, value in asdict(settings).items() if name not in new}


def make_settings(kind: type[Hasher], values: Mapping[str, Any]) -> Any:
    """`kind.Settings` from keyword arguments, or say which settings there are."""
    hints = get_type_hints(kind.Settings)
    known = {each.name: each.default for each in fields(kind.Settings)}
    for name, value in values.items():
        if name not in known:
            there = ", ".join(f"{each} ({default})" if default else each for each, default in known.items()) or "none"
            raise InputError(f"{kind.name} has no setting {name!r}. Its settings: {there}.")
        wanted = hints[name]
        if isinstance(1.0, wanted) and isinstance(value, int) and not isinstance(value, bool):
            continue  # a whole number where any number will do
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise InputError(f"{name} of {kind.name} must be {getattr(wanted, '__name__', wanted)}. Got {value!r}.")
    return kind.Settings(**values)
