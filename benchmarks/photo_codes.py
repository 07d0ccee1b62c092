"""Search among a million codes of photographs: the default code at its full length, against FAISS's flat scan.

    python benchmarks/photo_codes.py --collection photos.bsc [--items 1000000] [--out results/photo-codes.json]

The codes of a collection's photographs are resampled: each new one takes every bit from one of two photographs that
are near each other, the second drawn among the ten nearest of the first. So codes keep the crowding of real ones. Some
photographs are left out and are the queries. One thread, k=10, one query at a time; medians of interleaved rounds.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import faiss
import numpy as np

import bitscale as bs
from timing import interleaved, machine

ROOT = Path(__file__).resolve().parents[1]
QUERIES, NEAREST, CHUNK, K, BLOCK = 50, 10, 50_000, 10, 32


def resampled(codes: bs.Codes, n: int, rng: np.random.Generator) -> bs.Codes:
    """n codes, each mixed of two near ones."""
    near = bs.ExactIndex(codes).search(codes, NEAREST + 1).ids[:, 1:]
    parts = []
    for start in range(0, n, CHUNK):
        first = rng.integers(0, len(codes), min(CHUNK, n - start))
        second = near[first, rng.integers(0, NEAREST, len(first))]
        mask = rng.integers(0, 256, (len(first), codes.packed.shape[1]), np.uint8)
        parts.append((codes.packed[first] & mask) | (codes.packed[second] & ~mask))
    return bs.Codes(np.concatenate(parts), codes.bit_weights)


def needed(queries: bs.Codes, database: bs.Codes) -> float:
    """Part of all bytes that a scan must read which leaves a block of 32 codes as soon as all are beyond the true k-th.

    Codes stand in the order of their first eight bytes; bits weigh the same.
    """
    packed = database.packed[np.argsort(database.packed[:, :8].copy().view(">u8")[:, 0], kind="stable")]
    packed = packed[: len(packed) // BLOCK * BLOCK]
    parts = []
    for query in queries.packed[::NEAREST]:
        counts = np.cumsum(np.bitwise_count(packed ^ query), axis=1, dtype=np.uint16)
        limit = np.partition(counts[:, -1], K - 1)[K - 1]
        planes = np.minimum((counts <= limit).sum(axis=1) + 1, packed.shape[1])
        parts.append(planes.reshape(-1, BLOCK).max(axis=1).mean() / packed.shape[1])
    return float(np.mean(parts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, required=True)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--note", default="", help="what else is to be known of this run")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "photo-codes.json")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    rng = np.random.default_rng(0)
    with bs.Collection.open(options.collection, read_only=True) as photos:
        ids = np.array([id for id, *_ in photos.listing()])
        packed = np.unique(photos.index.get(ids).packed, axis=0)
        weights = photos.bit_weights
    packed = packed[rng.permutation(len(packed))]
    queries = bs.Codes(np.ascontiguousarray(packed[:QUERIES]), weights)
    database = resampled(bs.Codes(np.ascontiguousarray(packed[QUERIES:]), weights), options.items, rng)
    index, flat = bs.ExactIndex(database), faiss.IndexBinaryFlat(database.n_bits)
    flat.add(database.packed)
    ours = index.search(queries, K)
    for row, (ids, distances) in enumerate(zip(ours.ids, ours.distances, strict=True)):
        exact = bs.hamming.distances(queries[row : row + 1], database)[0]
        assert np.array_equal(np.sort(exact)[:K], distances)
        assert np.array_equal(exact[ids], distances)
        if row == 2:
            break
    runs = {
        "bitscale": lambda: [index.search(queries[i : i + 1], K, threads=1) for i in range(QUERIES)],
        "IndexBinaryFlat": lambda: [flat.search(queries.packed[i : i + 1], K) for i in range(QUERIES)],
    }
    seconds = interleaved(runs, options.rounds)
    told = {
        "machine": machine(),
        "photographs": len(packed),
        "items": len(database),
        "n_bits": database.n_bits,
        "k": K,
        "queries": QUERIES,
        "milliseconds a query": {name: round(1e3 * one / QUERIES, 3) for name, one in seconds.items()},
        "bytes needed at least": round(needed(queries, database), 3),
        "times as fast": round(seconds["IndexBinaryFlat"] / seconds["bitscale"], 2),
        "at least": 2,
        "note": options.note,
    }
    options.out.write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
