"""What we measure against, each as a function from (queries, k) to ids; one thread.

numpy     the paper's method: 8-bit tables, a linear scan, NumPy
flat      FAISS IndexBinaryFlat: exact, but *unweighted*
pq        FAISS IndexPQ, 8 x 8 bits, with hand-made sign codebooks: exact weighted distances
fastscan  FAISS IndexPQFastScan, 16 x 4 bits, then a re-rank of 4k candidates: weighted, not guaranteed
multihash FAISS IndexBinaryMultiHash, 4 x 16 bits, 2 flips: unweighted, approximate
"""

from __future__ import annotations

from collections.abc import Callable

import faiss
import numpy as np
from numpy.typing import NDArray

import bitscale as bs

Search = Callable[[bs.Codes, int], NDArray[np.int64]]
faiss.omp_set_num_threads(1)


def numpy_tables(database: bs.Codes) -> Search:
    """The paper's linear scan."""

    def search(queries: bs.Codes, k: int) -> NDArray[np.int64]:
        distances = bs.hamming.distances(queries, database)
        nearest = np.argpartition(distances, k - 1, axis=1)[:, :k]
        rows = np.arange(len(queries))[:, None]
        return nearest[rows, np.argsort(distances[rows, nearest], axis=1)]

    return search


def binary_flat(database: bs.Codes) -> Search:
    """Exact, unweighted."""
    index = faiss.IndexBinaryFlat(database.n_bits)
    index.add(database.packed)
    return lambda queries, k: index.search(queries.packed, k)[1]


def scaled_signs(codes: bs.Codes) -> NDArray[np.float32]:
    """Points whose squared distance is 4 times the weighted Hamming distance."""
    return (codes.signs() * np.sqrt(codes.bit_weights)).astype(np.float32)


def sign_codebooks(codes: bs.Codes, part: int) -> NDArray[np.float32]:
    """All 2^part sign patterns of each part, scaled: the exact product quantiser of scaled signs."""
    patterns = (np.arange(1 << part)[:, None] >> np.arange(part)[None]) & 1  # faiss packs the low bit first
    scaled = [(2 * patterns - 1) * np.sqrt(codes.bit_weights[at : at + part]) for at in range(0, codes.n_bits, part)]
    return np.concatenate(scaled).astype(np.float32)


def _pq_index(index: faiss.Index, database: bs.Codes, part: int) -> faiss.Index:
    faiss.copy_array_to_vector(sign_codebooks(database, part).ravel(), index.pq.centroids)
    index.is_trained = True
    for at in range(0, len(database), 200_000):
        index.add(scaled_signs(database[at : at + 200_000]))
    return index


def pq(database: bs.Codes) -> Search:
    """Weighted distances by product quantisation."""
    index = _pq_index(faiss.IndexPQ(database.n_bits, database.n_bits // 8, 8), database, 8)
    return lambda queries, k: index.search(scaled_signs(queries), k)[1]


def fastscan(database: bs.Codes) -> Search:
    """4-bit fast scan, then exact distances for 4k candidates."""
    index = faiss.IndexPQFastScan(database.n_bits, database.n_bits // 4, 4)
    _pq_index(index, database, 4)

    def search(queries: bs.Codes, k: int) -> NDArray[np.int64]:
        candidates = index.search(scaled_signs(queries), 4 * k)[1]
        found = np.empty((len(queries), k), np.int64)
        for i, rows in enumerate(candidates):
            distances = bs.hamming.distances(queries[i], database[rows])[0]
            found[i] = rows[np.lexsort((rows, distances))[:k]]
        return found

    return search


def multi_hash(database: bs.Codes) -> Search:
    """Unweighted hash tables."""
    index = faiss.IndexBinaryMultiHash(database.n_bits, 4, 16)
    index.add(database.packed)
    index.nflip = 2
    return lambda queries, k: index.search(queries.packed, k)[1]


PEERS: dict[str, Callable[[bs.Codes], Search]] = {
    "numpy": numpy_tables,
    "flat": binary_flat,
    "pq": pq,
    "fastscan": fastscan,
    "multihash": multi_hash,
}
