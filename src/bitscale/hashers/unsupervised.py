"""Ours for images without labels: bits in the order of what they explain, and weighted by it.

Principal axes are taken in blocks of 8, 8, 16, 32, ... and each block is turned as ITQ does, within itself. So the
first 8, 16, 32, ... bits hold the axes that explain most, and nothing of the rest; within a block, signs lose least.
A bit's weight is the variance along its direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bitscale.data.splits import Labels
from bitscale.errors import InputError
from bitscale.hashers.base import Arrays, Float32
from bitscale.hashers.itq import ITQSettings, learn_rotation
from bitscale.hashers.linear import LinearHasher, linear_arrays, principal_axes, random_rotation

FIRST = 8  # bits in the first block
_LEAST = 1e-6  # of the largest weight: a direction without variance still tells items apart


class Unsupervised(LinearHasher):
    """Codes learned without labels; every block's end is a good place to cut."""

    name = "unsupervised"
    supervised = False
    Settings = ITQSettings
    shapes: ClassVar = {**LinearHasher.shapes, "weights": ("q",)}

    @property
    def bit_weights(self) -> NDArray[np.float64]:
        """The share of variance that each bit's direction explains, the first being 1."""
        return self.arrays["weights"].astype(np.float64)

    def _learn(self, x: Float32, labels: Labels, rng: np.random.Generator) -> Arrays:
        mean, axes = principal_axes(x, self.n_bits, self.name)
        projected = x @ axes.astype(np.float32) - (mean @ axes).astype(np.float32)  # (n, q)
        matrix, explained, start = np.empty_like(axes), np.empty(self.n_bits), 0
        while start < self.n_bits:
            block = slice(start, min(max(2 * start, FIRST), self.n_bits))
            n = block.stop - start
            turn, _ = learn_rotation(projected[:, block], random_rotation(n, rng), self.settings.iterations)
            variance = np.square(projected[:, block] @ turn).mean(axis=0)
            order = np.argsort(-variance, kind="stable")
            matrix[:, block] = (axes[:, block] @ turn)[:, order]
            explained[block] = variance[order]
            start = block.stop
        # blocks follow one another by their axes' variance; rounding must not say otherwise
        weights = np.minimum.accumulate(np.maximum(explained / max(explained.max(), 1e-30), _LEAST))
        return {**linear_arrays(matrix, mean), "weights": (weights / weights[0]).astype(np.float32)}

    def adopt(self, arrays: Arrays, details: Mapping[str, Any] | None = None) -> Self:
        """Take learned arrays from elsewhere (a file, another library), checked as strictly as a file's."""
        weights = arrays.get("weights", np.ones(1, np.float32))
        if not (weights > 0).all() or (np.diff(weights) > 0).any():
            raise InputError(f"weights of {self.name} must be above 0 and never increase.")
        return super().adopt(arrays, details)
