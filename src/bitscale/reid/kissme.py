"""KISSME: a metric from how differences are spread, of pairs of one person and of two (Koestinger et al., CVPR 2012).

    M = S^-1 - D^-1,   S = mean of (x - y)(x - y)^T over pairs of one person, D over pairs of two

after PCA; what of M is not positive is cut off. Then |L x - L y|^2 with L^T L = M, so a picture becomes a vector.
Pairs are taken across cameras, as in the paper's experiments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from bitscale.arrays import Float, Float32, Int
from bitscale.errors import InputError

DIMENSIONS = 34  # after PCA, as published for VIPeR
ROUNDS, SETTLED = 100, 1e-6  # of subspace iteration at most; it ends once the axes turn by no more than that
PAIRS = 200_000  # of two persons, at most
RIDGE = 1e-6  # of the mean variance, so that few pairs can be inverted too


@dataclass
class Kissme:
    """Fit on features with persons and cameras; `embed` gives vectors whose squared distance is the metric."""

    dimensions: int = DIMENSIONS
    seed: int = 0

    def fit(self, features: Float32, persons: Int, cameras: Int) -> Self:
        """Learn PCA and the metric."""
        if len(np.unique(persons)) < 2:
            raise InputError("a metric is learned from two persons at least.")
        self.mean: Float = features.mean(axis=0, dtype=np.float64)
        centred = features - self.mean
        self.axes: Float = principal(centred, self.dimensions, np.random.default_rng(self.seed))  # (d, kept)
        values = centred @ self.axes
        same, other = pairs(persons, cameras, np.random.default_rng(self.seed))
        metric = _inverse(values, same) - _inverse(values, other)
        weights, directions = np.linalg.eigh((metric + metric.T) / 2)
        positive = weights > 0
        self.root: Float = directions[:, positive] * np.sqrt(weights[positive])  # (kept, r)
        return self

    def embed(self, features: Float32) -> Float32:
        """Vectors to compare by squared Euclidean distance: (n, r)."""
        return ((features - self.mean) @ self.axes @ self.root).astype(np.float32)


def principal(centred: Float, n: int, rng: np.random.Generator) -> Float:
    """The directions in which rows spread most, (d, n or fewer): at once, or of many by subspace iteration."""
    if min(centred.shape) <= 8 * n:
        _, spread, axes = np.linalg.svd(centred, full_matrices=False)
        return axes[: min(n, int((spread > 1e-9 * spread[0]).sum()))].T
    axes = np.linalg.qr(rng.normal(size=(centred.shape[1], 4 * n)))[0]
    for _ in range(ROUNDS):
        before, basis = axes, np.linalg.qr(centred.T @ (centred @ axes))[0]
        _, spread, within = np.linalg.svd(centred @ basis, full_matrices=False)
        axes = basis @ within.T
        kept = min(n, int((spread > 1e-9 * spread[0]).sum()))
        if np.linalg.norm(axes[:, :kept] - before @ (before.T @ axes[:, :kept]), axis=0).max() < SETTLED:
            break
    return axes[:, :kept]


def pairs(persons: Int, cameras: Int, rng: np.random.Generator) -> tuple[Int, Int]:
    """Rows (n, 2) of one person seen by two cameras, all of them; and of two persons, as many, drawn."""
    groups = [np.flatnonzero(persons == person) for person in np.unique(persons)]
    same = [(i, j) for rows in groups for i in rows for j in rows if cameras[i] < cameras[j]]
    if not same:
        raise InputError("no person was seen by two cameras, so there is no pair to learn from.")
    n_others = min(max(len(same), 2), PAIRS)
    drawn = rng.integers(0, len(persons), (8 * n_others, 2))
    other = drawn[(persons[drawn[:, 0]] != persons[drawn[:, 1]]) & (cameras[drawn[:, 0]] != cameras[drawn[:, 1]])]
    return np.array(same, np.int64), other[:n_others]


def _inverse(values: Float, chosen: Int) -> Float:
    """The inverse of the mean of (x - y)(x - y)^T."""
    differences = values[chosen[:, 0]] - values[chosen[:, 1]]
    spread = differences.T @ differences / len(differences)
    return np.linalg.inv(spread + RIDGE * np.trace(spread) / len(spread) * np.eye(len(spread)))
