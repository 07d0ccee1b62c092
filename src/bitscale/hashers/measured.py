"""MAP of a model at each code length, measured once and kept in its file; not part of its fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bitscale.codes import MAX_BITS
from bitscale.errors import InputError

LONGEST = 1_000  # characters of what it was measured on


@dataclass(frozen=True)
class Measured:
    """MAP by code length, and the queries it is of."""

    on: str  # "fashion-mnist, P0, 10,000 queries"
    map_by_bits: Mapping[int, float]  # in 0..1

    def to_dict(self) -> dict[str, Any]:
        """As a model file holds it."""
        return {"on": self.on, "map_by_bits": {str(bits): value for bits, value in sorted(self.map_by_bits.items())}}

    @classmethod
    def from_dict(cls, table: Any) -> Measured | None:
        """Read it from a model file; None where the file does not hold it."""
        if table is None:
            return None
        if not isinstance(table, Mapping) or not isinstance(table.get("map_by_bits"), Mapping):
            raise InputError("measured must be a table with map_by_bits.")
        on, values = table.get("on"), table["map_by_bits"]
        if not isinstance(on, str) or len(on) > LONGEST:
            raise InputError("measured must say what it was measured on.")
        return cls(on, {_length(bits): _share(value) for bits, value in values.items()})

    def __str__(self) -> str:
        shares = ", ".join(
            f"{100 * value:.1f} at {bits}" for bits, value in sorted(self.map_by_bits.items(), reverse=True)
        )
        return f"{shares} bits ({self.on})"


def _length(text: Any) -> int:
    if not (isinstance(text, str) and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= MAX_BITS):
        raise InputError(f"a length in map_by_bits must be between 1 and {MAX_BITS}. Got {text!r}.")
    return int(text)


def _share(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise InputError(f"a MAP must be between 0 and 1. Got {value!r}.")
    return float(value)
