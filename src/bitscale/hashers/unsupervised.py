"""Ours for images without labels: one code of which every prefix keeps the neighbours that the features have.

A start is made with ITQ: the first 16 bits turn the first 16 principal axes, the next 16 are some of those that turn
the first 32, and so on. Then all directions are learned together, so that neighbours and copies are found by the first
16, 32, 64, ... bits alike (`neighbours`). All bits weigh the same: weights by what a bit explains would let a few heavy
bits drown what the long rest of a code tells.

For features whose map was learned beforehand on many photographs (`prior`) that map is taken as it is, about a middle
that the images move: learned further on some hundreds of images, it found fewer neighbours of others. Images of another
kind, if they are enough, get a map of their own: short codes of both are tried on a third of them.
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
from bitscale.hashers.itq import learn_rotation
from bitscale.hashers.linear import LinearHasher, covariance, linear_arrays, random_rotation
from bitscale.hashers.neighbours import learn_directions, neighbours_kept, unit
from bitscale.hashers.prior import WORTH, Prior, read_prior
from bitscale.hashers.settings import later

LENGTHS = (16, 32, 64, 128, 256, 512, 1024)  # every one is learned for
AXES = 512  # principal axes that are looked at
ENOUGH = 600  # images: from so many on, a map of their own is tried against one learned beforehand
SHORT = 32  # bits of the trial
_WIDE = 128  # axes: more are turned fewer times, since each time costs the cube of them


@dataclass(frozen=True)
class UnsupervisedSettings:
    """`iterations` of ITQ at the start, and `steps` and `rate` of learning after it."""

    iterations: int = 50
    steps: int = later(400)
    rate: float = later(0.003)

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
        if prior is None or (len(x) >= ENOUGH and self._knows_better(x, prior, rng)):
            mean, matrix = self._learned(x, self.n_bits, rng)
        else:
            mean, matrix = self._moved(x, prior)
        return {**linear_arrays(matrix, mean), "weights": np.ones(self.n_bits, np.float32)}

    def _knows_better(self, x: Float32, prior: Prior, rng: np.random.Generator) -> bool:
        """Whether short codes learned on two thirds of these features keep more neighbours among the others."""
        order, bits = rng.permutation(len(x)), min(self.n_bits, SHORT)
        some, others = x[order[len(x) // 3 :]], x[order[: len(x) // 3]]
        z = unit(others - some.mean(axis=0))
        kept = []
        for mean, matrix in (self._learned(some, bits, rng), self._moved(some, prior)):
            kept.append(neighbours_kept(z, ((others - mean) @ matrix[:, :bits]).astype(np.float32)))
        return kept[0] > kept[1]

    def _learned(self, x: Float32, n_bits: int, rng: np.random.Generator) -> tuple[Float32, Float32]:
        """Mean and directions, from these features alone."""
        mean = x.mean(axis=0, dtype=np.float64).astype(np.float32)
        z = unit(x - mean)
        variance, axes = np.linalg.eigh(covariance(z)[1])
        n_axes = min(AXES, int((variance > 1e-9 * max(variance[-1], 1e-30)).sum()), len(x) - 1)
        if variance[-1] < 1e-12 or n_axes < 1:
            raise InputError(f"{self.name} cannot learn from items that are all the same. Give others.")
        axes = axes[:, ::-1][:, :n_axes].astype(np.float32)
        y = z @ axes
        how: dict[str, Any] = {"steps": self.settings.steps, "rate": self.settings.rate, "rng": rng}
        lengths = [*(length for length in LENGTHS if length < n_bits), n_bits]
        return mean, axes @ learn_directions(unit(y), self._start(y, lengths, rng), lengths, **how)

    def _moved(self, x: Float32, prior: Prior) -> tuple[Float32, Float32]:
        """A map learned beforehand, about a middle that these features move."""
        mean = (x.sum(axis=0, dtype=np.float64) + WORTH * prior.mean) / (len(x) + WORTH)
        return mean.astype(np.float32), prior.matrix[:, : self.n_bits]

    def _start(self, y: Float32, lengths: list[int], rng: np.random.Generator) -> Float32:
        """Directions in the space of the principal axes (p, q): some of ITQ's for every length."""
        p, before = y.shape[1], 0
        start = np.zeros((p, lengths[-1]), np.float32)
        for length in lengths:
            top, more = min(length, p), length - before
            iterations = self.settings.iterations if top <= _WIDE else self.settings.iterations // 5
            turn, _ = learn_rotation(y[:, :top], random_rotation(top, rng), iterations)
            some = turn[:, rng.permutation(top)[:more]]
            extra = rng.standard_normal((top, more - some.shape[1])) / np.sqrt(top)  # more bits than axes
            start[:top, before:length] = np.concatenate([some, extra], axis=1)
            before = length
        return start

    def adopt(self, arrays: Arrays, details: Mapping[str, Any] | None = None) -> Self:
        """Take learned arrays from elsewhere (a file, another library), checked as strictly as a file's."""
        weights = arrays.get("weights", np.ones(1, np.float32))
        if not (weights > 0).all() or (np.diff(weights) > 0).any():
            raise InputError(f"weights of {self.name} must be above 0 and never increase.")
        return super().adopt(arrays, details)
