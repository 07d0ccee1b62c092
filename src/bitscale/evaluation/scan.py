"""All distances, a block of queries at a time, by one matrix product: the search inside `evaluate`.

    sum of the costs of the differing bits = (sum of costs - <costs * query signs, item signs>) / 2

Snapped costs sum to less than 2^23, so every partial sum is an integer that float32 holds exactly, and the
product gives the very integers of `hamming.integer_distances`. Embeddings are scanned alike, on a grid of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import Codes
from bitscale.embeddings import Embeddings, grid_unit, squared_distances
from bitscale.hamming import CostTerms

BLOCK_CELLS = 4_000_000  # distances of one block, about 50 MB with the sort keys of `metrics.rank`


def block_rows(n_queries: int, n_items: int, cells: int | None = None) -> list[NDArray[np.int64]]:
    """Consecutive query numbers, as many at a time as a block of so many distances may hold."""
    step = max(1, (cells or BLOCK_CELLS) // max(n_items, 1))
    return [np.arange(start, min(start + step, n_queries)) for start in range(0, n_queries, step)]


def integer_blocks(
    terms: CostTerms, items: Codes, cells: int | None = None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Pairs (query rows (m,), summed costs (m, n_items) int32); `terms` says weighted, plain or relaxed."""
    n_bits = terms.costs.shape[1]
    columns = items.signs().astype(np.float32).T  # (q, n_items)
    for rows in block_rows(len(terms.packed), len(items), cells):
        signs = np.unpackbits(terms.packed[rows], axis=1, count=n_bits) * np.float32(2) - np.float32(1)
        costs = terms.costs[rows % len(terms.costs)].astype(np.float32)  # (m, q)
        product = (costs * signs) @ columns
        np.subtract(costs.sum(axis=1)[:, None], product, out=product)
        product *= np.float32(0.5)
        yield rows, product.astype(np.int32)


def squared_blocks(
    queries: Embeddings, items: Embeddings, cells: int | None = None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Pairs (query rows (m,), squared distances (m, n_items) as whole numbers of one unit): equal ones are equal."""
    unit = grid_unit(queries, items)
    columns = items.on_grid(unit)  # (n_items, d)
    for rows in block_rows(len(queries), len(items), cells):
        yield rows, squared_distances(queries[rows].on_grid(unit), columns).astype(np.int64)
