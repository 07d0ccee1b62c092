"""Methods on features: `_learn` makes arrays of features and labels, `_project` one real value a bit of features.

Their bits all weigh 1 (those of `unsupervised` apart): a shorter code is just its first bits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from bitscale.arrays import Float32
from bitscale.codes import Codes
from bitscale.data.labelled import Labelled, Labels
from bitscale.errors import InputError
from bitscale.hashers.base import ENCODE_ROWS, SPREAD_ROWS, Arrays, Hasher, digest, some_rows


class ClassicalHasher(Hasher):
    """A hasher whose bits are signs of a fixed function of the features."""

    shapes: ClassVar[Mapping[str, tuple[str, ...]]]  # the learned arrays: q bits, d features, 1, or free

    def fit(self, train: Labelled) -> Self:
        """Learn from a training part; returns itself."""
        self.fit_vectors(self._extract(train.images), np.asarray(train.labels))
        self.origin = train.origin
        return self

    def fit_vectors(self, x: Float32, labels: Labels) -> Self:
        """Learn from features that are ready, (n, d); returns itself."""
        if len(x) < 2:
            raise InputError(f"a hasher learns from at least two images. Got {len(x)}.")
        if len(labels) != len(x):
            raise InputError(f"every training image needs its label. Got {len(x)} images, {len(labels)} labels.")
        self.origin = None  # nobody said; `fit` does
        arrays = self._learn(x, labels, np.random.default_rng(self.seed))
        arrays = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}
        spread = np.sqrt(np.mean(self._project(x[:SPREAD_ROWS], arrays).astype(np.float64) ** 2, axis=0))  # (q,)
        return self.adopt(arrays | {"spread": np.maximum(spread, 1e-12).astype(np.float32)})

    def adopt(self, arrays: Arrays, details: Mapping[str, Any] | None = None) -> Self:
        """Take learned arrays from elsewhere (a file, another library), checked as strictly as a file's."""
        sizes = {"q": self.n_bits, "1": 1}
        expected = {**self.shapes, "spread": ("q",)}
        if arrays.keys() != expected.keys():
            raise InputError(f"{self.name} is made of {sorted(expected)}. Got {sorted(arrays)}.")
        for name, shape in expected.items():
            array = arrays[name]
            good = array.dtype == np.float32 and array.ndim == len(shape)
            good = good and all(sizes.setdefault(size, n) == n for size, n in zip(shape, array.shape, strict=True))
            if not good or not np.isfinite(array).all():
                wanted = tuple(sizes.get(size, size) for size in shape)
                raise InputError(
                    f"{name} of {self.name} must be finite float32 of shape {wanted}. "
                    f"Got {array.dtype} of shape {array.shape}."
                )
        self._arrays = dict(arrays)
        self._fingerprint = digest(self)
        return self

    @abstractmethod
    def _learn(self, x: Float32, labels: Labels, rng: np.random.Generator) -> Arrays:
        """The arrays named in `shapes`, from features (n, d) and labels."""

    @abstractmethod
    def _project(self, x: Float32, arrays: Arrays) -> Float32:
        """One real value a bit, (n, q), for features (n, d)."""

    def encode_vectors(self, x: Float32) -> Codes:
        """The codes of features that are ready, (n, d)."""
        packed = np.packbits(self._project(x, self.arrays) >= 0, axis=1)
        return Codes.from_packed(packed, self.bit_weights, n_bits=self.n_bits, model=self.fingerprint)

    def _values(self, images: Any) -> list[Float32]:
        """The projections of all images, block by block."""
        arrays = self.arrays
        blocks = []
        for start in range(0, len(images), ENCODE_ROWS):
            x = self._extract(some_rows(images, start, min(start + ENCODE_ROWS, len(images))))
            dim = self._dim()
            if x.shape[1] != dim:
                raise InputError(
                    f"this hasher was fitted on {dim} features an image. Got {x.shape[1]}; "
                    "use images of the size it was fitted on."
                )
            blocks.append(self._project(x, arrays))
        return blocks

    def _dim(self) -> int:
        for name, shape in self.shapes.items():
            if "d" in shape:
                return int(self.arrays[name].shape[shape.index("d")])
        raise InputError(f"{self.name} names no array with d features in its shapes.")
