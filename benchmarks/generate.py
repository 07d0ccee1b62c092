"""Codes to search: random, or clusters with flipped bits, and weights that decay; the same for every method."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import bitscale as bs

WEIGHTS = {"uniform": 0.0, "mild": 2.0, "strong": 6.0}  # the last bit weighs e^-x of the first


def weights(kind: str, n_bits: int) -> NDArray[np.float64]:
    """Bit weights falling from 1 to e^0, e^-2 or e^-6."""
    return np.exp(-WEIGHTS[kind] * np.arange(n_bits) / n_bits).astype(np.float32).astype(np.float64)


def packed(kind: str, n: int, n_queries: int, n_bits: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Database and queries (not in it): "random", or "c100-10" for 100 clusters with 10 % of bits flipped."""
    rng = np.random.default_rng(seed)
    total = n + n_queries
    if kind == "random":
        rows = rng.integers(0, 256, (total, n_bits // 8), dtype=np.uint8)
    else:
        clusters, flips = (float(x) for x in kind[1:].split("-"))
        centres = rng.integers(0, 2, (int(clusters), n_bits), dtype=np.uint8)
        rows = np.empty((total, n_bits // 8), np.uint8)
        for at in range(0, total, 500_000):
            m = min(500_000, total - at)
            flipped = rng.random((m, n_bits), dtype=np.float32) < flips / 100
            rows[at : at + m] = np.packbits(centres[rng.integers(0, len(centres), m)] ^ flipped, axis=1)
    return rows[:n].copy(), rows[n:].copy()


def codes(
    kind: str, weighting: str, n: int, n_queries: int = 100, n_bits: int = 64, seed: int = 0
) -> tuple[bs.Codes, bs.Codes]:
    """The same as `Codes`."""
    database, queries = packed(kind, n, n_queries, n_bits, seed)
    heavy = weights(weighting, n_bits)
    return bs.Codes.from_packed(database, heavy), bs.Codes.from_packed(queries, heavy)
