"""Ours for images without labels: one code of which every prefix keeps the neighbours that the features have.

Its directions are learned from the features (`nested_map`). All bits weigh the same: weights by what a bit explains
would let a few heavy bits drown what the long rest of a code tells.

For features whose map was learned beforehand on many photographs (`prior`) that map is taken as it is, about a middle
that the images move: learned further on some hundreds of images, it found fewer neighbours of others. Images of another
kind, if they are enough, get first bits of their own before those of that map: short codes of both are tried on each
third of them, after a few steps of learning, which tell the kind as well as all of them would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32
from bitscale.data.labelled import Labels
from bitscale.errors import InputError
from bitscale.hashers.base import Arrays
from bitscale.hashers.linear import LinearHasher, linear_arrays
from bitscale.hashers.neighbours import neighbours_kept, unit
from bitscale.hashers.nested_map import AXES, nested_map
from bitscale.hashers.prior import WORTH, Prior, read_prior
from bitscale.hashers.settings import later

ENOUGH = 600  # images: from so many on, a map of their own is tried against one learned beforehand
TRIED = 1_200  # images of the trial, at most
SHORT = 32  # bits of the trial
FEW_STEPS = 25  # of learning, for the trial
OWN = 256  # first bits that images of another kind get; those after them are the map's
CLEARLY = 0.01  # of the neighbours: so many more must be kept by a map of their own


@dataclass(frozen=True)
class UnsupervisedSettings:
    """`iterations` of ITQ at the start, and `steps` and `rate` of learning after it."""

    iterations: int = 50
    steps: int = later(400)
    rate: float = later(0.002)

    def __post_init__(self) -> None:
        if self.iterations < 0 or self.steps < 0 or not 0 < self.rate < 1:
            raise InputError(
                "iterations and steps of unsupervised must not be negative, and rate lies between 0 and 1. "
                f"Got {self.iterations}, {self.steps} and {self.rate}."
            )


class Unsupervised(LinearHasher):
    """Codes learned without labels, good at every length."""

    name = "unsupervised"
    supervised = False
    Settings = UnsupervisedSettings
    shapes: ClassVar = {**LinearHasher.shapes, "weights": ("q",)}

    @property
    def bit_weights(self) -> NDArray[np.float64]:
        """Ones; models of earlier versions weigh a bit by what it explains."""
        return self.arrays["weights"].astype(np.float64)

    def fit_vectors(self, x: Float32, labels: Labels) -> Self:
        """Learn from features that are ready, (n, d); returns itself. Of a map learned beforehand, one item will do."""
        prior = self._prior(x)
        if prior is None:
            return super().fit_vectors(x, labels)
        n = len(x)
        super().fit_vectors(*((np.repeat(x, 2, axis=0), np.repeat(labels, 2)) if n == 1 else (x, labels)))
        squares = n * np.square(self.arrays["spread"]) + WORTH * np.square(prior.spread[: self.n_bits])
        return self.adopt({**self.arrays, "spread": np.sqrt(squares / (n + WORTH)).astype(np.float32)})

    def _prior(self, x: Float32) -> Prior | None:
        prior = read_prior(self.features)
        return prior if prior is not None and prior.matrix.shape[0] == x.shape[1] else None

    def _learn(self, x: Float32, labels: Labels, rng: np.random.Generator) -> Arrays:
        prior = self._prior(x)
        if prior is None:
            mean, matrix = self._learned(x, self.n_bits, self.settings.steps, AXES, rng)
        else:
            mean, matrix = self._moved(x, prior)
            if len(x) >= ENOUGH and self._knows_better(x, prior, rng):
                own = min(self.n_bits, OWN)
                mean, first = self._learned(x, own, self.settings.steps, own, rng)
                matrix = np.concatenate([first, matrix[:, own:]], axis=1)
        return {**linear_arrays(matrix, mean), "weights": np.ones(self.n_bits, np.float32)}

    def _knows_better(self, x: Float32, prior: Prior, rng: np.random.Generator) -> bool:
        """Whether short codes learned on these features keep clearly more neighbours than those of the map.

        They are learned on two thirds at a time, and tried on the third that is left.
        """
        order, bits = rng.permutation(len(x))[:TRIED], min(self.n_bits, SHORT)
        more = []
        for third in np.array_split(order, 3):
            two_thirds, others = x[np.setdiff1d(order, third)], x[third]
            z = unit(others - two_thirds.mean(axis=0))
            learned = self._learned(two_thirds, bits, min(self.settings.steps, FEW_STEPS), bits, rng)
            own, general = (
                neighbours_kept(z, ((others - mean) @ matrix[:, :bits]).astype(np.float32))
                for mean, matrix in (learned, self._moved(two_thirds, prior))
            )
            more.append(own - general)
        return float(np.mean(more)) > CLEARLY

    def _learned(
        self, x: Float32, n_bits: int, steps: int, axes: int, rng: np.random.Generator
    ) -> tuple[Float32, Float32]:
        """Mean and directions, from these features alone, in so many steps along so many of their principal axes."""
        how = self.settings
        return nested_map(x, n_bits, iterations=how.iterations, steps=steps, rate=how.rate, rng=rng, most_axes=axes)

    def _moved(self, x: Float32, prior: Prior) -> tuple[Float32, Float32]:
        """A map learned beforehand, about a middle that these features move."""
        mean = (x.sum(axis=0, dtype=np.float64) + WORTH * prior.mean) / (len(x) + WORTH)
        return mean.astype(np.float32), prior.matrix[:, : self.n_bits]

    def adopt(self, arrays: Arrays, details: Mapping[str, Any] | None = None) -> Self:
        """Take learned arrays from elsewhere (a file, another library), checked as strictly as a file's."""
        weights = arrays.get("weights", np.ones(1, np.float32))
        if not (weights > 0).all() or (np.diff(weights) > 0).any():
            raise InputError(f"weights of {self.name} must be above 0 and never increase.")
        return super().adopt(arrays, details)
