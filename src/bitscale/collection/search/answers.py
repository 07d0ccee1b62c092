"""What became of each query: its code, with what else is known of it, or the reason why it has none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bitscale.arrays import Float
from bitscale.codes import Codes, Relaxed
from bitscale.collection.store.seen import Seen
from bitscale.errors import InputError
from bitscale.index.base import Index

Code = np.ndarray[tuple[int], np.dtype[np.uint8]]  # packed


@dataclass(frozen=True, eq=False)
class Answer:
    """What became of the query in a place: its code, with what else is known of it, or the reason why it has none."""

    place: int
    code: Code | None
    reason: str = ""
    relaxed: Float | None = None
    seen: Seen | None = None


def item_codes(ids: dict[int, int], index: Index, gone: str) -> Iterator[Answer]:
    """The code of each item by the place of its query; `gone` is said of one that is not there."""
    try:
        yield from map(Answer, ids, index.get(list(ids.values())).packed)
    except InputError:  # one of them at least: see which
        for place, id in ids.items():
            try:
                yield Answer(place, index.get([id]).packed[0])
            except InputError:
                yield Answer(place, None, gone)


def relaxed_of(answers: Sequence[Answer], codes: Codes) -> Relaxed | None:
    """The codes before the sign, None where no query has one; of those without the code itself, as 1 and -1."""
    if all(answer.relaxed is None for answer in answers):
        return None
    known = [answer.relaxed for answer in answers if answer.relaxed is not None]
    values = np.array(known) if len(known) == len(answers) else codes.signs().astype(np.float64)
    if len(known) < len(answers):
        values[[answer.relaxed is not None for answer in answers]] = known
    return Relaxed(values, codes.bit_weights, model=codes.model)
