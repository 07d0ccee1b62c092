"""LSH: signs of Gaussian random projections of the centred features (Charikar 2002; Datar et al. 2004)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bitscale.arrays import Float32
from bitscale.data.labelled import Labels
from bitscale.hashers.base import Arrays
from bitscale.hashers.linear import LinearHasher, linear_arrays


@dataclass(frozen=True)
class LSHSettings:
    """LSH has nothing to set but the seed."""


class LSH(LinearHasher):
    """Two items at angle t differ in a bit with probability t / pi; of the data only the mean is learned."""

    name = "lsh"
    supervised = False
    Settings = LSHSettings

    def _learn(self, x: Float32, labels: Labels, rng: np.random.Generator) -> Arrays:
        matrix = rng.standard_normal((x.shape[1], self.n_bits))
        return linear_arrays(matrix, x.mean(axis=0, dtype=np.float64))
