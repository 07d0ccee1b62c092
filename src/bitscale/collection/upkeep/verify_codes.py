"""Whether codes belong to their pictures: pictures encoded anew, and compared with the codes that are kept.

A bit may differ where the value behind it is nearly zero: arithmetic rounds differently in other batches and on other
machines. Other versions of the libraries that decode and compute may move values further. So bits that differ are a
problem where the same versions made the code, or where more than a quarter of them do, as with another picture's code;
else they are counted and the versions named.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import numpy as np

from bitscale.codes import Codes
from bitscale.collection.ingest.versions import read_versions, versions_here
from bitscale.collection.items import Item
from bitscale.collection.opened import Opened
from bitscale.data.images import uniform
from bitscale.errors import InputError
from bitscale.hashers import Hasher
from bitscale.hashers.picture_codes import Batch, check_takes_pictures, encode_files
from bitscale.index.base import Index

ROUNDING = 1e-3  # relaxed values nearer to zero than this may have either sign
ANOTHER = 0.25  # of the bits: more that differ are another picture's, whatever the versions


def check_number(how_many: int | Literal["all"] | None) -> None:
    """Refuse what is no number of codes to check."""
    fits = isinstance(how_many, int) and not isinstance(how_many, bool) and how_many > 0
    if how_many not in (None, "all") and not fits:
        raise InputError(f'codes must be a number of items, 1 or more, or "all". Got {how_many!r}.')


def wrong_codes(folder: Path, how_many: int | Literal["all"], facts: dict[str, Any]) -> Iterator[str]:
    """A line for each item, of so many drawn at random or of all, whose code does not belong to its picture."""
    with Opened.open(folder, read_only=True) as collection:
        hasher, index, made_by = collection.hasher, collection.index, read_versions(collection.notes())
        check_takes_pictures(hasher)
        items = [item for item in _chosen(collection, how_many) if item.path]
        same = made_by == [versions_here()]
        counts = {"codes_checked": 0, "codes_unchecked": 0, "codes_of_other_versions": 0}
        with closing(encode_files(hasher, [item.path for item in items])) as batches:
            for batch in batches:
                yield from _compared(batch, items, hasher, index, same, counts)
        facts.update(counts)
        if counts["codes_of_other_versions"]:
            facts["made_by"], facts["checked_by"] = made_by or ["not noted"], versions_here()


def _chosen(collection: Opened, how_many: int | Literal["all"]) -> Iterator[Item]:
    if how_many == "all":
        yield from collection.items()
    else:
        yield from collection.items_of(collection.sample(how_many).tolist()).values()


def _compared(
    batch: Batch, items: list[Item], hasher: Hasher, index: Index, same: bool, counts: dict[str, int]
) -> Iterator[str]:
    """Compare one batch; a picture that cannot be read, or is not the one taken in, tells nothing about its code."""
    pairs = zip(batch.places, batch.pictures, strict=True)
    rows = [row for row, (place, picture) in enumerate(pairs) if items[place].content in (None, picture.content)]
    counts["codes_checked"] += len(rows)
    counts["codes_unchecked"] += len(batch) - len(rows)
    if not rows:
        return
    drawn = [items[batch.places[row]] for row in rows]
    differing = _differing(index.get([item.id for item in drawn]), batch.codes[np.array(rows, np.int64)])
    for at in np.flatnonzero(differing.any(axis=1)).tolist():
        values = hasher.relax(uniform([batch.pictures[rows[at]].pixels])).values[0]
        wrong = int((differing[at] & (np.abs(values) > ROUNDING)).sum())
        if wrong and (same or wrong > ANOTHER * len(values)):
            item = drawn[at]
            yield f"item {item.id}: its code is not that of {item.path} ({wrong} of {len(values)} bits differ)"
        elif wrong:
            counts["codes_of_other_versions"] += 1


def _differing(kept: Codes, now: Codes) -> Any:
    return np.unpackbits(kept.packed ^ now.packed, axis=1, count=kept.n_bits).astype(np.bool_)
