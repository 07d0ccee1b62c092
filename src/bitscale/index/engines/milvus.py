"""Milvus: codes stored once as vectors of signs; weights and truncation stand in the query vector alone.

With costs c of differing bits, query signs s and item signs t: the sum over differing bits = (sum(c) - <c s, t>) / 2.
Whole numbers below 2^23 are exact in float32, so FLAT with inner product ranks exactly. What Milvus does not do is
done here: ids are kept unique, ties are ordered by id as far as it lists them (16,384 rows), a longer lookup is
asked for in ranges of ids.

A collection made as approximate has an IVF_FLAT or HNSW index in the place of FLAT. It is asked for more items than
wanted; their scores are of the whole vectors, so what it lists is ordered exactly, but something may be missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bitscale.errors import EngineError
from bitscale.index.base import I64
from bitscale.index.engines.forms import Among, Ask, Ranked
from bitscale.index.engines.milvus_items import MilvusItems, parts, signs_of
from bitscale.index.engines.milvus_kept import MOST_ROWS
from bitscale.index.engines.milvus_parted import only
from bitscale.index.engines.milvus_server import EFFORT, SECONDS, STRONG

MOST_VALUES = 1 << 22  # of the query vectors in one call: 16 MB
EVERY_ID = (1 << 63) - 1
OVERSAMPLED, LEAST_OVERSAMPLED = 4, 64  # an approximate index is asked for 4 k + 64 items, ordered exactly here


class MilvusIndex(MilvusItems):
    """Codes as sign vectors in a Milvus collection, ranked by inner product."""

    most_hits = MOST_ROWS

    def _nearest(self, asked: list[Ask], k: int, among: Among | None) -> list[Ranked]:
        if k > MOST_ROWS:
            raise EngineError(f"{self.address}: Milvus gives at most {MOST_ROWS:,} items a query. Got k={k:,}.")
        if self.facts.approximate is not None:
            rows = self._search(asked, min(OVERSAMPLED * k + LEAST_OVERSAMPLED, MOST_ROWS), among)
            orders = [np.lexsort((ids, sums))[:k] for ids, sums in rows]
            return [Ranked(ids[order], sums[order]) for (ids, sums), order in zip(rows, orders, strict=True)]
        ranked: list[Ranked | None] = [None] * len(asked)
        wide = min(2 * k + 16, MOST_ROWS)
        left = list(range(len(asked)))
        while left:
            rows = self._search([asked[at] for at in left], wide, among)
            for at, (ids, sums) in zip(left, rows, strict=True):
                whole = len(ids) < wide or sums[-1] > sums[k - 1]  # all that tie with the k-th are listed
                if whole or wide == MOST_ROWS:
                    order = np.lexsort((ids, sums))[:k]
                    ranked[at] = Ranked(ids[order], sums[order], not whole)
            left = [at for at in left if ranked[at] is None]
            wide = min(4 * wide, MOST_ROWS)
        return [one for one in ranked if one is not None]

    def _within(self, asked: list[Ask], limits: list[int], among: Among | None) -> list[Ranked]:
        if self.facts.approximate is not None:
            raise EngineError(
                f"{self.address} was pushed as approximate ({self.facts.approximate}), which cannot list all items "
                "within a distance. Ask for the k nearest, or push under another name without --approximate."
            )
        return [self._all_within(ask, limit, among) for ask, limit in zip(asked, limits, strict=True)]

    def _all_within(self, ask: Ask, limit: int, among: Among | None, low: int = 0, high: int = EVERY_ID) -> Ranked:
        """All items up to a sum with ids of a range; a range that holds more than Milvus gives is halved."""
        ((ids, sums),) = self._search(
            [ask], MOST_ROWS, among, limit, f"id >= {low} and id <= {high}" if high < EVERY_ID else ""
        )
        if len(ids) < MOST_ROWS:
            order = np.lexsort((ids, sums))
            return Ranked(ids[order], sums[order])
        if high == EVERY_ID:
            self._stamp()
            high = self._kept.next_id - 1
        middle = (low + high) // 2
        halves = [
            self._all_within(ask, limit, among, low, middle),
            self._all_within(ask, limit, among, middle + 1, high),
        ]
        ids, sums = np.concatenate([part.ids for part in halves]), np.concatenate([part.sums for part in halves])
        order = np.lexsort((ids, sums))
        return Ranked(ids[order], sums[order])

    def _search(
        self, asked: Sequence[Ask], limit: int, among: Among | None, most: int | None = None, extra: str = ""
    ) -> list[tuple[I64, I64]]:
        """Ids and sums for each query, nearest first as Milvus ranks them."""
        if among is None:
            return self._search_where(asked, limit, extra, most, among)
        if among.ids is None:
            filters = [f"({among.condition}) and stamp < {among.stamp}"]
        else:
            filters = [f"id in {some} and stamp < {among.stamp}" for some in parts(among.ids)] or ["id < 0"]
        wheres = [" and ".join(filter(None, (one, extra))) for one in filters]
        answers = [self._search_where(asked, limit, where, most, among) for where in wheres]
        merged = []
        for row in range(len(asked)):
            ids = np.concatenate([answer[row][0] for answer in answers])
            sums = np.concatenate([answer[row][1] for answer in answers])
            order = np.argsort(sums, kind="stable")[:limit]
            merged.append((ids[order], sums[order]))
        return merged

    def _search_where(
        self, asked: Sequence[Ask], limit: int, where: str, most: int | None, among: Among | None
    ) -> list[tuple[I64, I64]]:
        rankings: list[tuple[I64, I64]] = []
        at_once = max(1, min(MOST_VALUES // self.n_bits, (1 << 18) // limit))
        for start in range(0, len(asked), at_once):
            some = asked[start : start + at_once]
            totals = [int(ask.costs.sum()) for ask in some]
            params: dict[str, Any] = dict(EFFORT.get(self.facts.approximate or "", {}))
            if "ef" in params:
                params["ef"] = max(params["ef"], limit)
            if most is not None:  # a range: scores above this one
                params["radius"] = float(totals[0] - 2 * most - 1)
            vectors = [(signs_of(ask.signs[None], self.n_bits)[0] * ask.costs).astype(np.float32) for ask in some]
            answers = self._call(
                self._client.search, self.collection, vectors, filter=where, limit=limit,
                search_params={"metric_type": "IP", "params": params}, consistency_level=STRONG, timeout=SECONDS,
                **only(among, self.facts.parted),
            )  # fmt: skip
            for total, hits in zip(totals, answers, strict=True):
                scores = np.array([hit["distance"] for hit in hits], np.float64)
                rankings.append(
                    (np.array([hit["id"] for hit in hits], np.int64), ((total - scores) / 2).astype(np.int64))
                )
        return rankings
