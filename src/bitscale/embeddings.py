"""Embeddings: real vectors in the place of codes, ranked by squared Euclidean distance, exactly.

As with weights (`hamming.snap`), exact needs exact arithmetic: values are rounded on a grid so that every sum is a
whole number that float64 holds. Equal vectors are then equally far from anything, in any order and on any machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitscale.arrays import Float
from bitscale.codes import pick
from bitscale.errors import InputError, ModelMismatch


class Embeddings:
    """Real vectors of one model in the place of codes: `values` (n, d) float32, ranked by squared distance."""

    __slots__ = ("model", "values")

    def __init__(self, values: ArrayLike, *, model: str | None = None) -> None:
        array = np.ascontiguousarray(values, np.float32)
        if array.ndim != 2 or not np.isfinite(array).all():
            raise InputError(f"embeddings must be a (n, d) array of finite numbers. Got shape {array.shape}.")
        self.values: NDArray[np.float32] = array
        self.model = model

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, which: Any) -> Embeddings:
        return Embeddings(pick(self.values, which), model=self.model)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Embeddings):
            return NotImplemented
        return self.model == other.model and np.array_equal(self.values, other.values)

    __hash__ = None  # type: ignore[assignment]  # holds arrays

    def __repr__(self) -> str:
        return f"Embeddings({len(self)} x {self.values.shape[1]}, model={self.model!r})"

    def distances(self, others: Embeddings) -> Float:
        """Squared Euclidean distances, (n, len(others)): exact for values rounded on `grid_unit`."""
        unit = grid_unit(self, others)
        return squared_distances(self.on_grid(unit), others.on_grid(unit)) * unit**2

    def on_grid(self, unit: float) -> Float:
        """The values as whole numbers of a unit, (n, d) float64."""
        return np.rint(self.values.astype(np.float64) / unit)


def grid_unit(*embeddings: Embeddings) -> float:
    """A power of two so fine, and no finer, that squared distances between these are exact in float64, in any order.

    With whole numbers up to 2^k in d places no sum of |a|^2 + |b|^2 - 2 a.b exceeds 4 d 4^k, which stays below 2^53.
    For 64 values that is k = 22, two bits less than float32 has.
    """
    dims = {one.values.shape[1] for one in embeddings}
    if len(dims) != 1:
        raise ModelMismatch(f"embeddings of different length ({sorted(dims)}) have no distance. Use one model.")
    steps = (50 - (max(dims) - 1).bit_length()) // 2
    largest = max(float(np.abs(one.values).max(initial=0.0)) for one in embeddings)
    return float(2.0 ** (np.frexp(largest)[1] - steps)) if largest else 1.0


def squared_distances(a: Float, b: Float) -> Float:
    """|a_i - b_j|^2 of whole numbers on one grid, (n, m), exact."""
    squared: Float = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * (a @ b.T)
    return squared
