"""PostgreSQL (14 or later, nothing else needed): codes as bit(n) in a table, exact by SQL, changed in transactions.

A search takes two statements of one snapshot. The first bounds the k-th distance by any k codes near the query; the
second sums costs only where so few bits differ that the bound can be kept. Nothing outside can enter: h differing
bits cost at least the sum of the h smallest costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bitscale import hamming
from bitscale.hamming import CostTerms
from bitscale.index.engines.forms import Among, Ask, Ranked
from bitscale.index.engines.postgres_items import PostgresItems
from bitscale.index.engines.postgres_sql import Masks, masks, radius_for, ranked, sampled

if TYPE_CHECKING:
    import psycopg

GUESSED_FROM = 4  # times k codes are looked at for the first bound


class PostgresIndex(PostgresItems):
    """Codes in a table of a PostgreSQL database, ranked by SQL."""

    def _nearest(self, asked: list[Ask], k: int, among: Among | None) -> list[Ranked]:
        nearest = []
        with self._snapshot() as connection:
            for ask in asked:
                made = masks(ask)
                limit = self._bound(connection, ask, made, k, among)
                radius = None if limit is None else radius_for(made, limit)
                nearest.append(
                    _ranked(connection.execute(*ranked(self.table, made, radius, among, None, k)).fetchall())
                )
        return nearest

    def _bound(
        self, connection: psycopg.Connection[Any], ask: Ask, made: Masks, k: int, among: Among | None
    ) -> int | None:
        """A sum that the k-th nearest does not exceed: that of the k-th among some codes near the query."""
        for whole in (False, True):
            rows = connection.execute(*sampled(self.table, made, among, GUESSED_FROM * k, whole)).fetchall()
            if len(rows) >= k:
                packed = self._unpack([code for (code,) in rows])
                terms = CostTerms(ask.signs[None], ask.costs[None], np.ones(1), np.zeros(1))
                return int(np.partition(hamming.integer_distances(terms, 0, packed), k - 1)[k - 1])
        return None  # fewer than k items in all

    def _within(self, asked: list[Ask], limits: list[int], among: Among | None) -> list[Ranked]:
        within = []
        with self._snapshot() as connection:
            for ask, limit in zip(asked, limits, strict=True):
                made = masks(ask)
                sql = ranked(self.table, made, radius_for(made, limit), among, limit, None)
                within.append(_ranked(connection.execute(*sql).fetchall()))
        return within


def _ranked(rows: list[tuple[int, int]]) -> Ranked:
    array = np.array(rows, np.int64).reshape(-1, 2)
    return Ranked(array[:, 0].copy(), array[:, 1].copy())
