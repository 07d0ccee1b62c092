"""Rank every query of an encoded split, a block at a time on some threads, and score each block.

Distances are integers (`bitscale.evaluation.scan`), exact and quick to sort; nothing of size queries x items is held.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitscale import metrics
from bitscale.arrays import Int
from bitscale.codes import Codes, Relaxed
from bitscale.data.labelled import relevance
from bitscale.data.split import Split
from bitscale.embeddings import Embeddings
from bitscale.evaluation.encoding import Encoded, Progress
from bitscale.evaluation.scan import integer_blocks, squared_blocks
from bitscale.hamming import CostTerms, cost_terms, count_terms
from bitscale.index.exact import ExactIndex
from bitscale.metrics import Balls, Ranking
from bitscale.threads import ahead

BLOCK_CELLS = 500_000  # distances of a block: small enough that sorting stays in the cache
LEAST_ROWS, MOST_CELLS = 8, 4_000_000  # with many items, larger blocks spare passes over all of them
TIMED_QUERIES, TIMED_K = 50, 100

Values = dict[str, NDArray[np.float64]]  # metric -> one value a query
Counts = NDArray[np.int32]
Block = tuple[Int, Counts | Int, Counts | None]  # query rows, distances to rank by, plain counts of bits


@dataclass(frozen=True)
class Scored:
    """A block of queries: its metrics and, where they are kept, its rankings and counts by plain distance."""

    rows: Int
    values: Values
    ranking: Ranking | None = None
    items: NDArray[np.uint32] | None = None  # (m, bits + 1)  items at each plain distance
    relevant: NDArray[np.uint32] | None = None  # (m, bits + 1)  relevant ones among them


def score_blocks(
    encoded: Encoded,
    split: Split,
    *,
    bits: int,
    names: Sequence[str],
    ranking: str,
    seed: int,
    keep: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Scored]:
    """Every query at one code length, in order, block by block."""
    relevant = relevance(split.query.labels, split.database.labels)

    def one(block: Block) -> Scored:
        rows, distances, plain = block
        hits = relevant(rows)  # (m, n_items)
        away = [split.left_out(int(i)) for i in rows] if split.left_out else None
        ranked = metrics.rank(distances, hits, left_out=away, seed=seed)
        if plain is None:  # real values: there are no balls to count in
            return Scored(rows, metrics.score(names, ranked))
        values = score(names, ranked, lambda radius: metrics.balls(plain, hits, left_out=away, radius=radius))
        if not keep:
            return Scored(rows, values)
        return Scored(rows, values, ranked, *plain_counts(plain, hits, away, bits))

    done = 0
    n = threads or os.cpu_count() or 1  # of whose blocks only a few are in memory at a time
    blocks = distance_blocks(encoded, bits, ranking)
    for scored in map(one, blocks) if n < 2 else ahead(one, blocks, n, 2 * n):
        done += len(scored.rows)
        if progress:
            progress(f"search with {bits} bits", done, len(split.query))
        yield scored


def distance_blocks(encoded: Encoded, bits: int, ranking: str) -> Iterator[Block]:
    """Blocks of distances: integers in the order of the ranking asked for, and plain Hamming distances beside them."""
    cells = min(max(BLOCK_CELLS, LEAST_ROWS * len(encoded.database)), MOST_CELLS)
    queries, database = encoded.queries, encoded.database
    if isinstance(queries, Embeddings) or isinstance(database, Embeddings):
        assert encoded.embeddings  # never one without the other
        yield from ((rows, block, None) for rows, block in squared_blocks(*encoded.embeddings, cells))
        return
    terms, counts = ranking_terms(queries, bits, ranking), count_terms(queries, bits)
    plain = integer_blocks(counts, database, cells)
    if terms is None:  # all bits weigh the same: the counts rank as well, and their keys are shorter
        yield from ((rows, block, block) for rows, block in plain)
        return
    weighted = integer_blocks(terms, database, cells)
    for (rows, block), (_, beside) in zip(weighted, plain, strict=True):
        yield rows, block, beside


def ranking_terms(queries: Codes | Relaxed, bits: int, ranking: str) -> CostTerms | None:
    """The costs to rank by; None where plain counts give the same order."""
    uniform = np.ptp(queries.bit_weights[:bits]) == 0
    if ranking == "plain" or (isinstance(queries, Codes) and uniform):
        return None
    return cost_terms(queries, bits)


def score(names: Iterable[str], ranked: Ranking, balls: Callable[[int], Balls]) -> Values:
    """Every metric of a block; `balls` gives the block's Hamming balls of a radius when one is asked for."""
    by_radius: dict[int | None, list[str]] = {}
    for name in names:
        by_radius.setdefault(radius_of(name), []).append(name)
    values: Values = {}
    for radius, metrics_there in by_radius.items():
        values |= metrics.score(metrics_there, ranked, None if radius is None else balls(radius))
    return values


def radius_of(name: str) -> int | None:
    """The radius of a metric on Hamming balls (2 for ham2 and ham2-empty), None for any other."""
    match = re.fullmatch(r"ham(\d+)(-empty)?", name)
    return int(match[1]) if match else None


def plain_counts(
    plain: NDArray[np.int32], hits: NDArray[np.bool_], away: list[Int] | None, bits: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Items, and relevant items, at each plain distance of a block: (m, bits + 1) each."""
    m, width = len(plain), bits + 2  # one place more, for what is left out
    places = plain + np.arange(m)[:, None] * width
    for i, rows in enumerate(away or ()):
        places[i, rows] = i * width + bits + 1
    items, relevant = (
        np.bincount(places_of_some, minlength=m * width).reshape(m, width)[:, :-1].astype(np.uint32)
        for places_of_some in (places.ravel(), places[hits])
    )
    return items, relevant


def search_seconds(encoded: Encoded, lengths: Sequence[int], ranking: str) -> list[float]:
    """The S of the paper's F + H + S for each length: mean seconds of a lone search for the 100 nearest."""
    queries, database = encoded.queries, encoded.database
    if isinstance(queries, Embeddings) or isinstance(database, Embeddings):
        assert encoded.embeddings
        return [_scan_seconds(*(side.values for side in encoded.embeddings))] * len(lengths)
    index = ExactIndex(database)
    return [_index_seconds(index, queries, bits, ranking) for bits in lengths]


def _scan_seconds(queries: NDArray[np.float32], items: NDArray[np.float32]) -> float:
    """Mean seconds of a lone search of real values, which are scanned: there is no index of them."""
    squares = np.einsum("ij,ij->i", items, items)
    timed, k = queries[:TIMED_QUERIES], min(TIMED_K, len(items)) - 1
    start = time.perf_counter()
    for query in timed:
        distances = squares - 2 * (items @ query)
        near = np.argpartition(distances, k)[: k + 1]
        near[np.argsort(distances[near])]
    return (time.perf_counter() - start) / len(timed)


def _index_seconds(index: ExactIndex, queries: Codes | Relaxed, bits: int, ranking: str) -> float:
    timed = queries[: min(TIMED_QUERIES, len(queries))]
    weights = np.ones(queries.n_bits) if ranking == "plain" else None
    k = min(TIMED_K, len(index))
    index.search(timed[:1], k, bits=bits, weights=weights)  # the planner measures once
    start = time.perf_counter()
    for i in range(len(timed)):
        index.search(timed[i], k, bits=bits, weights=weights)
    return (time.perf_counter() - start) / len(timed)
