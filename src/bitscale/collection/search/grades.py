"""Grades: whether a match is a copy of the query, of the same kind, or neither.

copy         the same picture, seen by laying small copies of both over each other (`looks.likeness`): whole, or with
             something done to it
same kind    codes nearer than those of all but a few random pairs of this collection's items; where its items stand in
             kinds that are apart (codes trained for classes), within such a kind
unlike       neither
cannot tell  codes of this length cannot: too many random pairs are as near as can be, or there are too few items

Nothing here is a constant of a model: how near random pairs are is measured on the collection itself, at the length
searched with. Measured in `benchmarks/grades.py`.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from bitscale.arrays import Float
from bitscale.collection.store.seen import Seen
from bitscale.looks.likeness import VARIANT, compare
from bitscale.looks.look import Looks, looks_of

Grade = Literal["copy", "same kind", "unlike", "cannot tell"]
KIND = 0.015  # share of random pairs that are called the same kind: the trials are in results/grades-trials.json
STRETCHES = 16  # in which a valley is looked for
LEAST_ITEMS = 20  # below which random pairs say nothing


def kind_distance(pairs: Float) -> float | None:
    """The largest distance that at most KIND of random pairs stay within.

    Where more than so many pairs lie this side of a valley, the items stand in kinds, as codes do that were trained for
    classes, and the valley between pairs of one kind and of two parts them. None where even the least distance holds
    more than KIND of the pairs, and there is no valley: then codes cannot tell.
    """
    ordered = np.sort(pairs)
    at = int(KIND * len(ordered))  # so many pairs may be called the same kind
    if at < 1:
        return None
    apart = valley(ordered)
    if apart is not None and ordered[at] < apart:
        return apart
    below = ordered[: at + 1]
    below = below[below < ordered[min(at, len(ordered) - 1)]]  # whole steps alone
    return float(below[-1]) if len(below) > at // 2 else apart


def valley(ordered: Float) -> float | None:
    """The middle of the emptiest stretch between the least of sorted distances and their median; None without one."""
    least, middle = float(ordered[0]), float(ordered[len(ordered) // 2])
    if len(np.unique(ordered[ordered <= middle])) < STRETCHES:  # so few steps have gaps between them anyway
        return None
    counts, edges = np.histogram(ordered[ordered <= middle], STRETCHES, (least, middle))
    lowest = int(counts.argmin())
    if 2 * counts[lowest] > min(counts[0], counts.max()) or lowest == 0:
        return None
    last = lowest + int(np.argmax([*(counts[lowest:] != counts[lowest]), True]))
    return float((edges[lowest] + edges[last]) / 2)


def look_copies(query: Seen | None, items: list[Seen | None]) -> list[bool | None]:
    """Whether each item is a copy of the query by their looks; None where one of them has none."""
    there = [row for row, item in enumerate(items) if item is not None]
    copies: list[bool | None] = [None] * len(items)
    if query is None or not there:
        return copies
    first = _looks([query] * len(there))
    likeness = compare(first, _looks([item for item in items if item is not None]))
    for row, kind in zip(there, likeness.kind.tolist(), strict=True):
        copies[row] = kind >= VARIANT
    return copies


def _looks(seen: list[Seen]) -> Looks:
    return looks_of([one.look for one in seen], [(one.width, one.height) for one in seen])


def graded(distance: float, limit: float | None, copy: bool | None) -> Grade:
    """The grade of a match at a distance between codes, looked at or not."""
    if copy:
        return "copy"
    if limit is None:
        return "cannot tell"
    return "same kind" if distance <= limit else "unlike"
