"""Brute force for search and lookup, straight from the definition, and random scenarios to hold against it."""

from dataclasses import dataclass

import numpy as np

import bitscale as bs


def rank(distances, ids, k):
    """First k of (distance, id), padded."""
    order = np.lexsort((ids, distances))[:k]
    pad = k - len(order)
    return (
        np.concatenate([ids[order], np.full(pad, -1, np.int64)]),
        np.concatenate([distances[order], np.full(pad, np.inf)]),
    )


def search(codes, ids, queries, k, **how):
    """What `Index.search` must return for living, allowed items."""
    distances = bs.hamming.distances(queries, codes, **how)
    rows = [rank(row, ids, k) for row in distances]
    return np.array([r[0] for r in rows]).reshape(-1, k), np.array([r[1] for r in rows]).reshape(-1, k)


def ordered(codes, ids, queries, k, bits=None):
    """What a collection must return for ready codes: ties at `bits` by all bits stored, then by id."""
    near, whole = bs.hamming.distances(queries, codes, bits=bits), bs.hamming.distances(queries, codes)
    rows = []
    for distances, full in zip(near, whole, strict=True):
        order = np.lexsort((ids, full, distances))[:k]
        pad = k - len(order)
        padded = np.concatenate([ids[order], np.full(pad, -1, np.int64)])
        rows.append((padded, np.concatenate([distances[order], np.full(pad, np.inf)])))
    return np.array([r[0] for r in rows]).reshape(-1, k), np.array([r[1] for r in rows]).reshape(-1, k)


def within(distances, ids, limit):
    """What `Index.lookup` must return, as lists of (id, distance)."""
    rows = []
    for row in distances:
        near = np.flatnonzero(row <= limit)
        order = near[np.lexsort((ids[near], row[near]))]
        rows.append(list(zip(ids[order].tolist(), row[order].tolist(), strict=True)))
    return rows


@dataclass
class World:
    """Codes with ties and duplicates, queries, ids and weights."""

    codes: bs.Codes
    ids: np.ndarray
    queries: bs.Codes
    rng: np.random.Generator


def world(seed, n, n_bits, kind="clusters", weighting="random", n_queries=4, automatic=False):
    rng = np.random.default_rng(seed)
    total = n + n_queries
    if kind == "random":
        bits = rng.integers(0, 2, (total, n_bits))
    elif kind == "few":  # almost everything is a duplicate
        bits = rng.integers(0, 2, (max(1, min(total, 7)), n_bits))[rng.integers(0, max(1, min(total, 7)), total)]
    else:
        centres = rng.integers(0, 2, (5, n_bits))
        bits = centres[rng.integers(0, 5, total)] ^ (rng.random((total, n_bits)) < 0.05)
    weights = {
        "uniform": np.ones(n_bits),
        "steps": np.repeat([8.0, 4.0, 2.0, 1.0], -(-n_bits // 4))[:n_bits],  # many equal sums
        "strong": np.exp(-6 * np.arange(n_bits) / n_bits),
        "random": np.sort(rng.random(n_bits) + 1e-3)[::-1],
        "zeros": np.where(np.arange(n_bits) <= n_bits // 2, 1.0, 0.0),
    }[weighting]
    codes = bs.Codes.from_packed(np.packbits(bits.astype(np.uint8), axis=1), weights)
    ids = np.arange(n) if automatic else rng.choice(max(4 * n, 1), n, replace=False)
    return World(codes[:n], ids.astype(np.int64), codes[n:], rng)
