"""Linear hash functions, sign(x W - t): the form in which most methods end, and the PCA many begin with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float, Float32
from bitscale.codes import Codes, Relaxed
from bitscale.errors import InputError
from bitscale.features.joint import JointFeatures
from bitscale.features.own_names import JOINT
from bitscale.hashers.base import Arrays
from bitscale.hashers.classical import ClassicalHasher

_ROWS = 8_192  # rows whose product is added up in float32 before it goes to float64


class LinearHasher(ClassicalHasher):
    """A hasher that has learned a matrix and one threshold a bit."""

    shapes: ClassVar = {"matrix": ("d", "q"), "offset": ("q",)}

    def _project(self, x: Float32, arrays: Arrays) -> Float32:
        return x @ arrays["matrix"] - arrays["offset"]

    @property
    def takes_words(self) -> bool:
        """Whether words have codes too: where the features are of a joint image-text model."""
        return self.features.startswith(JOINT)

    @property
    def words_centre(self) -> Float32 | None:
        """The vector subtracted from those of words before they become codes, (d,); they lie apart from pictures."""
        if self.takes_words and self.kept_centre is None:
            assert isinstance(self.extractor, JointFeatures)
            self.kept_centre = self.extractor.words_centre
        return self.kept_centre

    def encode_words(self, texts: Sequence[str]) -> tuple[Codes, Relaxed]:
        """The codes of words, and these before the sign: projections about a centre of their own.

        How far words lie from their centre says nothing of how far pictures do, so that the values before the sign are
        brought to the spread that pictures have.
        """
        centre = self.words_centre
        if centre is None:
            return super().encode_words(texts)
        assert isinstance(self.extractor, JointFeatures)
        values = (self.extractor.words(texts) - centre) @ self.arrays["matrix"]
        spread = values / self.arrays["spread"]
        spread /= np.maximum(np.sqrt(np.square(spread).mean(axis=1, keepdims=True)), 1e-12)
        packed = np.packbits(values >= 0, axis=1)
        codes = Codes.from_packed(packed, self.bit_weights, n_bits=self.n_bits, model=self.fingerprint)
        return codes, Relaxed(np.tanh(spread), self.bit_weights, model=self.fingerprint)


def linear_arrays(matrix: NDArray[np.floating], mean: NDArray[np.floating]) -> Arrays:
    """Arrays of a linear hasher that projects *centred* features: x W - mean W."""
    return {"matrix": matrix.astype(np.float32), "offset": (mean @ matrix).astype(np.float32)}


def covariance(x: Float32) -> tuple[Float, Float]:
    """Mean (d,) and covariance (d, d) of the rows of x, in float64 without a float64 copy of x."""
    mean = x.mean(axis=0, dtype=np.float64)
    total = np.zeros((x.shape[1], x.shape[1]))
    for start in range(0, len(x), _ROWS):
        block = x[start : start + _ROWS] - mean.astype(np.float32)
        total += block.T @ block
    return mean, total / len(x)


def principal_axes(x: Float32, n_axes: int, method: str) -> tuple[Float, Float]:
    """Mean (d,) and the `n_axes` directions of largest variance (d, n_axes), largest first.

    Each direction is turned so that its largest entry is positive: an axis has no sign of its own.
    """
    if n_axes > min(x.shape):
        raise InputError(
            f"{method} makes at most one bit a principal axis: {x.shape[0]} items of {x.shape[1]} features "
            f"have {min(x.shape)}. Got n_bits={n_axes}; ask for fewer bits or give more features."
        )
    mean, cov = covariance(x)
    axes = np.linalg.eigh(cov)[1][:, ::-1][:, :n_axes]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0)
    return mean, axes * np.where(largest < 0, -1.0, 1.0)


def random_rotation(n: int, rng: np.random.Generator) -> Float:
    """An orthogonal matrix (n, n), uniform over all of them."""
    q, r = np.linalg.qr(rng.standard_normal((n, n)))
    rotation: Float = q * np.where(np.diag(r) < 0, -1.0, 1.0)
    return rotation
