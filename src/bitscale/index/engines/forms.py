"""What goes between an index and an engine elsewhere: queries, filters, what is stored, facts of a collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import Codes
from bitscale.index.base import I64, Index

if TYPE_CHECKING:
    from bitscale.index.engines.remote import RemoteIndex

FORMAT = 2  # of what is stored in engines
PARTED_FORMAT = 3  # of what is stored in partitions, which an earlier bitscale would add to without a partition
Condition = Any  # on what is beside a code, in the form that an engine takes: SQL and values, an expression


class Ask(NamedTuple):
    """One query as an engine takes it."""

    signs: NDArray[np.uint8]  # (bytes,)  packed
    costs: NDArray[np.int32]  # (n_bits,)  of each bit that differs


class Ranked(NamedTuple):
    """Items by (summed costs, id). `cut`: more items tie with the last than the engine can list."""

    ids: I64
    sums: I64
    cut: bool = False


class Beside(NamedTuple):
    """What is kept beside each code: texts of JSON, and a number that changes whenever anything of it does."""

    digests: I64
    texts: list[str]  # all that is known of the item
    facts: list[str]  # what conditions look at, in the engine's form
    looks: list[bytes | None]
    keys: I64 | None = None  # stand for the values that items are parted by; None: 0, as where nothing is known

    @classmethod
    def nothing(cls, n: int) -> Beside:
        """Nothing beside so many codes."""
        return cls(np.zeros(n, np.int64), ["{}"] * n, ["{}"] * n, [None] * n)

    def some(self, rows: NDArray[np.int64]) -> Beside:
        """What is kept beside the codes of some rows."""
        at = rows.tolist()
        parts = [self.texts[row] for row in at], [self.facts[row] for row in at], [self.looks[row] for row in at]
        return Beside(self.digests[rows], *parts, None if self.keys is None else self.keys[rows])


class Stored(NamedTuple):
    """All that is stored of an item."""

    packed: NDArray[np.uint8]  # (bytes,)
    text: str | None
    look: bytes | None


@dataclass(frozen=True, eq=False)
class Among:
    """A filter: these ids, or those for which a condition holds; as far as they were added before `stamp`."""

    ids: I64 | None  # ascending; None: a condition
    stamp: int
    index: RemoteIndex | None = None
    condition: Condition = None
    keys: tuple[int, ...] | None = None  # no item has another value of those that items are parted by; None: any may


class Parted(NamedTuple):
    """How items are parted: by which field, as conditions name it, into how many partitions."""

    field: str
    n: int = 32


@dataclass(frozen=True)
class Facts:
    """What an engine knows of a collection besides its items."""

    bit_weights: tuple[float, ...]
    model: str | None
    origin: str | None = None  # of the collection that was pushed there
    approximate: str | None = None  # IVF_FLAT or HNSW, where answers need not be exact; None: exact
    parted: Parted | None = None  # where items are stored by a value, so that a search for it looks there alone

    @classmethod
    def of(
        cls,
        codes: Codes | Index,
        origin: str | None = None,
        approximate: str | None = None,
        parted: Parted | None = None,
    ) -> Facts:
        """The facts for storing codes like these."""
        return cls(tuple(codes.bit_weights.tolist()), codes.model, origin, approximate, parted)


def other_format(format: int) -> str:
    """What to say of a collection written by another version."""
    if format > FORMAT:
        return f"was written by a later bitscale (format {format}). Upgrade bitscale to use it."
    return f"was written by an earlier bitscale (format {format}). Push the collection again under another name."
