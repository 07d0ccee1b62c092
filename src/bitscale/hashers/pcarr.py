"""PCA-RR: principal axes under one random rotation (Gong and Lazebnik 2011, the start of ITQ)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bitscale.arrays import Float32
from bitscale.data.labelled import Labels
from bitscale.hashers.base import Arrays
from bitscale.hashers.linear import LinearHasher, linear_arrays, principal_axes, random_rotation


@dataclass(frozen=True)
class PCARRSettings:
    """PCA-RR has nothing to set but the seed."""


class PCARR(LinearHasher):
    """The rotation spreads the variance of the first axes over all bits."""

    name = "pca-rr"
    supervised = False
    Settings = PCARRSettings

    def _learn(self, x: Float32, labels: Labels, rng: np.random.Generator) -> Arrays:
        mean, axes = principal_axes(x, self.n_bits, self.name)
        return linear_arrays(axes @ random_rotation(self.n_bits, rng), mean)
