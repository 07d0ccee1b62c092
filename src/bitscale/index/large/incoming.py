"""Codes that come batch by batch, checked: all of one model, ids ascending or none at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from bitscale.codes import Codes, check_same_space
from bitscale.errors import InputError
from bitscale.index.base import I64, check_ids

Batch = Codes | tuple[Codes, ArrayLike]


def checked(batches: Codes | Iterable[Batch]) -> Iterator[tuple[Codes, I64 | None]]:
    """Each batch of codes with its ids; where none are given, ids that go on from the last."""
    first: Codes | None = None
    with_ids, last = False, -1
    for number, batch in enumerate([batches] if isinstance(batches, Codes) else batches):
        codes, own_ids = batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)
        if not isinstance(codes, Codes):
            raise InputError(
                f"batches must be Codes, or pairs of Codes and ids. Batch {number} is {type(batch).__name__}; "
                "wrap packed bits with Codes.from_packed."
            )
        if first is None:
            first, with_ids = codes, own_ids is not None
        check_same_space(codes, first, "the first batch")
        if with_ids != (own_ids is not None):
            which = "has none" if with_ids else "has some"
            raise InputError(f"either all batches carry ids or none. Batch {number} {which}.")
        if own_ids is None:
            yield codes, None
            continue
        ids = check_ids(own_ids, len(codes))
        if len(ids):
            _ascending(ids, last, number)
            last = int(ids[-1])
        yield codes, ids


def _ascending(ids: I64, last: int, number: int) -> None:
    falls = np.flatnonzero(np.diff(ids, prepend=last) <= 0) if last >= 0 else np.flatnonzero(np.diff(ids) <= 0) + 1
    if len(falls):
        raise InputError(
            f"ids must ascend, from batch to batch too. In batch {number} id {ids[falls[0]]} does not; "
            "sort the items by id first, or leave ids out."
        )
