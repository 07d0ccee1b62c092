"""k-means: which of some vectors belong together, when nobody says so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.data.splits import Int
from bitscale.errors import InputError

Float32 = NDArray[np.float32]
SAMPLE = 20_000  # vectors that centres are learned from
ROUNDS = 25
_ROWS = 16_384  # vectors assigned at a time


def cluster(x: Float32, n_clusters: int, rng: np.random.Generator) -> Int:
    """The cluster of each row, numbered from 0; every cluster has at least two members.

    Centres start as in k-means++ and are moved by Lloyd's rule; a centre that fewer than two rows are nearest to is
    dropped and its rows go to the next nearest.
    """
    if len(x) < 4:
        raise InputError(f"two clusters of two items are the least to learn from. Got {len(x)} items.")
    sample = x[np.sort(rng.permutation(len(x))[:SAMPLE])]
    centres = _spread_out(sample, min(n_clusters, len(sample) // 2), rng)
    for _ in range(ROUNDS):
        nearest = assign(sample, centres)
        counts = np.bincount(nearest, minlength=len(centres))
        sums = np.zeros(centres.shape)
        np.add.at(sums, nearest, sample)
        moved = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres).astype(np.float32)
        if np.array_equal(moved, centres):
            break
        centres = moved
    while True:
        nearest = assign(x, centres)
        full = np.bincount(nearest, minlength=len(centres)) >= 2
        if full.sum() < 2:
            raise InputError(
                f"these {len(x)} items form no two clusters of two: they are too few or nearly all equal. "
                "Give more, and check how they were read."
            )
        if full.all():
            return nearest
        centres = centres[full]


def assign(x: Float32, centres: Float32) -> Int:
    """The nearest centre of each row."""
    half = (centres.astype(np.float64) ** 2).sum(1) / 2
    parts = [np.argmax(x[i : i + _ROWS] @ centres.T - half, axis=1) for i in range(0, len(x), _ROWS)]
    return np.concatenate(parts).astype(np.int64)


def _spread_out(x: Float32, n: int, rng: np.random.Generator) -> Float32:
    """k-means++: each centre a row, drawn with probability by its squared distance to those before."""
    chosen = [int(rng.integers(len(x)))]
    squares = (x.astype(np.float64) ** 2).sum(1)

    def distance(i: int) -> NDArray[Any]:
        found: NDArray[Any] = np.maximum(squares + squares[i] - 2 * (x @ x[i]), 0.0)
        return found

    nearest = distance(chosen[0])
    while len(chosen) < n and nearest.sum() > 0:
        chosen.append(int(rng.choice(len(x), p=nearest / nearest.sum())))
        nearest = np.minimum(nearest, distance(chosen[-1]))
        nearest[chosen] = 0.0
    return x[chosen]
