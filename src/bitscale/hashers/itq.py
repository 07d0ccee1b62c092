"""ITQ: principal axes under the rotation that loses least when signs are taken (Gong and Lazebnik 2011)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bitscale.arrays import Float, Float32
from bitscale.data.labelled import Labels
from bitscale.errors import InputError
from bitscale.hashers.base import Arrays
from bitscale.hashers.linear import LinearHasher, linear_arrays, principal_axes, random_rotation


@dataclass(frozen=True)
class ITQSettings:
    """`iterations`: alternations between signs and rotation; the paper uses 50."""

    iterations: int = 50

    def __post_init__(self) -> None:
        if self.iterations < 0:
            raise InputError(f"iterations of itq must not be negative. Got {self.iterations}.")


class ITQ(LinearHasher):
    """Starts where PCA-RR ends: same axes, same random rotation for the same seed."""

    name = "itq"
    supervised = False
    Settings = ITQSettings

    def _learn(self, x: Float32, labels: Labels, rng: np.random.Generator) -> Arrays:
        mean, axes = principal_axes(x, self.n_bits, self.name)
        projected = x @ axes.astype(np.float32) - (mean @ axes).astype(np.float32)  # (n, q)
        start = random_rotation(self.n_bits, rng)
        rotation, _ = learn_rotation(projected, start, self.settings.iterations)
        return linear_arrays(axes @ rotation, mean)


def learn_rotation(projected: Float32, start: Float, iterations: int) -> tuple[Float, list[float]]:
    """Minimise Q(B, R) = |B - V R|^2 over signs B and rotations R in turn, from R = `start` (q, q).

    B = sign(V R) for fixed R; for fixed B the best R is U W^T, where V^T B = U D W^T (orthogonal Procrustes).
    Returns the rotation and Q before each step and at the end; Q never rises.
    """
    rotation, losses = start, []
    energy = float(np.square(projected, dtype=np.float64).sum())
    for _ in range(iterations):
        losses.append(_loss(projected, rotation, energy))
        rotated = projected @ rotation.astype(np.float32)  # (n, q)
        signs = np.where(rotated >= 0, np.float32(1), np.float32(-1))
        left, _, right = np.linalg.svd((projected.T @ signs).astype(np.float64))
        rotation = left @ right
    losses.append(_loss(projected, rotation, energy))
    return rotation, losses


def _loss(projected: Float32, rotation: Float, energy: float) -> float:
    # |B|^2 + |V R|^2 - 2 <B, V R>, and <B, V R> is the sum of |V R| as B holds its signs
    agreement = np.abs(projected @ rotation.astype(np.float32)).sum(dtype=np.float64)
    return float(projected.size + energy - 2.0 * agreement)
