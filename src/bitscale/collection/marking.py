"""Feedback on a collection: keep marks, list them, take them back; `search.answering` learns from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bitscale.codes import Codes, Relaxed, check_bits
from bitscale.collection.search.queries import Query
from bitscale.collection.store import marks, rows
from bitscale.collection.store.marks import Mark
from bitscale.collection.store.whole import whole
from bitscale.collection.writing import Writable
from bitscale.errors import InputError

LARGEST_PICTURE = 1 << 24  # bytes of a query's picture that may be kept with its mark


class Markable(Writable):
    """A collection whose results can be called right or wrong."""

    @whole
    def mark(
        self,
        query: int | Codes | Relaxed | Query,
        right: ArrayLike = (),
        wrong: ArrayLike = (),
        *,
        bits: int | None = None,
        picture: bytes | None = None,
    ) -> Mark:
        """Keep which results of a query were called right or wrong, on disk when this returns.

        The query is kept as its relaxed values; its picture only where it is given.
        """
        self._require_writer()
        asked, (good, bad) = self._asked(query), self._marked(right, wrong)
        used = check_bits(bits, asked.n_bits)
        if picture is not None and not 0 < len(picture) <= LARGEST_PICTURE:
            raise InputError(f"a picture kept with a mark is 1 to {LARGEST_PICTURE:,} bytes. Got {len(picture):,}.")
        item = query.id if isinstance(query, Query) else int(query) if isinstance(query, int | np.integer) else None
        values = asked.values[0] if isinstance(asked, Relaxed) else asked.signs()[0].astype(np.float64)
        with self._database.writing() as connection:
            named = [*good, *bad, *([] if item is None else [item])]
            known = rows.read_items(connection, named)
            for id in named:
                if id not in known:
                    raise InputError(f"item {id} is not in {self.path.name}. It may have been removed.")
            number = marks.insert(connection, self._serving.index.model or "", item, values, used, good, bad, picture)
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
