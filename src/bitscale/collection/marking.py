"""Feedback on a collection: learn from marks at once, keep them, list them, take them back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bitscale.codes import Codes, Relaxed, check_bits, check_same_space
from bitscale.collection.store import marks, rows
from bitscale.collection.store.marks import Mark
from bitscale.collection.store.whole import whole
from bitscale.collection.writing import Writable
from bitscale.errors import InputError
from bitscale.feedback import Learned, learn
from bitscale.index.base import check_ids

MOST = 10_000  # items in one mark
LARGEST_PICTURE = 1 << 24  # bytes of a query's picture that may be kept with its mark


class Markable(Writable):
    """A collection whose results can be called right or wrong."""

    def learn(
        self,
        query: int | Codes | Relaxed,
        right: ArrayLike = (),
        wrong: ArrayLike = (),
        *,
        bits: int | None = None,
        weights: ArrayLike | None = None,
    ) -> Learned:
        """What marks make of a query: search with its `codes` and `weights`. Nothing is kept.

        query   an item's id, a code, or relaxed values, which tell most
        right   ids of items that are what was searched for; `wrong` those that are not
        bits    as the searches compare
        """
        asked, says = self._asked(query), self._said(right, wrong)
        return learn(asked, self.index.get(says[0]), self.index.get(says[1]), bits=bits, weights=weights)

    @whole
    def mark(
        self,
        query: int | Codes | Relaxed,
        right: ArrayLike = (),
        wrong: ArrayLike = (),
        *,
        bits: int | None = None,
        picture: bytes | None = None,
    ) -> Mark:
        """Keep what was said of a query's results, on disk when this returns.

        The query is kept as its relaxed values; its picture only where it is given.
        """
        self._require_writer()
        asked, says = self._asked(query), self._said(right, wrong)
        used = check_bits(bits, asked.n_bits)
        if picture is not None and not 0 < len(picture) <= LARGEST_PICTURE:
            raise InputError(f"a picture kept with a mark is 1 to {LARGEST_PICTURE:,} bytes. Got {len(picture):,}.")
        item = int(query) if isinstance(query, int | np.integer) else None
        values = asked.values[0] if isinstance(asked, Relaxed) else asked.signs()[0].astype(np.float64)
        with self._database.writing() as connection:
            known = rows.read_items(connection, [*says[0], *says[1], *([] if item is None else [item])])
            for id in (*says[0], *says[1], *([] if item is None else [item])):
                if id not in known:
                    raise InputError(f"item {id} is not in {self.path.name}. It may have been removed.")
            number = marks.insert(connection, self._serving.index.model or "", item, values, used, *says, picture)
            rows.count_change(connection)
            return next(mark for mark in marks.read(connection) if mark.id == number)

    @whole
    def marks(self) -> list[Mark]:
        """All marks that are kept, oldest first."""
        with self._database.reading() as connection:
            return marks.read(connection)

    @whole
    def take_back(self, mark: int) -> bool:
        """Forget a mark; whether there was one."""
        self._require_writer()
        with self._database.writing() as connection:
            there = marks.take_back(connection, int(mark))
            if there:
                rows.count_change(connection)
        return there

    def _asked(self, query: int | Codes | Relaxed) -> Codes | Relaxed:
        if isinstance(query, Codes | Relaxed):
            check_same_space(query, self.index, "this collection")
            if len(query) != 1:
                raise InputError(f"feedback is about one query. Got {len(query)}.")
            return query
        return self.index.get([int(query)])

    def _said(self, right: ArrayLike, wrong: ArrayLike) -> tuple[Sequence[int], Sequence[int]]:
        lists = check_ids(right), check_ids(wrong)
        both = np.intersect1d(*lists)
        if both.size:
            raise InputError(f"item {both[0]} is marked right and wrong. Say one of the two.")
        if not 0 < len(lists[0]) + len(lists[1]) <= MOST:
            raise InputError(f"mark 1 to {MOST:,} results as right or wrong. Got {len(lists[0]) + len(lists[1])}.")
        return np.unique(lists[0]).tolist(), np.unique(lists[1]).tolist()
