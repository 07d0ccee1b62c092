"""Hash look-up: the precision of what lies within a small Hamming radius of a query (HAM2 at radius 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Bool, Float, Int
from bitscale.errors import InputError


@dataclass(frozen=True)
class Balls:
    """How many items, and relevant ones, lie within `radius` of each query."""

    radius: float
    items: Int  # (n_queries,)
    relevant: Int  # (n_queries,)  relevant ones among them
    n_relevant: Int  # (n_queries,)  relevant ones anywhere

    def precision(self) -> Float:
        """Share of relevant items in each ball, 0 where it is empty; NaN where no item at all is relevant."""
        return np.where(self.n_relevant > 0, self.relevant / np.maximum(self.items, 1), np.nan)

    def empty(self) -> Float:
        """1 where a ball is empty, else 0 (NaN as above); its mean is the share of empty balls."""
        return np.where(self.n_relevant > 0, self.items == 0, np.nan)


def balls(
    distances: NDArray[Any], relevant: Bool, *, left_out: Sequence[Int] | None = None, radius: float = 2
) -> Balls:
    """Count the items of a block within `radius`; `distances` are *plain* Hamming, whatever the bit weights.

    Arguments are those of `rank`.
    """
    if distances.ndim != 2 or distances.shape != relevant.shape or not distances.size:
        raise InputError(
            "distances and relevant must both be (n_queries, n_items), with at least one of each. "
            f"Got {distances.shape} and {relevant.shape}."
        )
    inside = distances <= radius  # (n_queries, n_items)
    if left_out is not None:
        relevant = relevant.copy()
        for i, rows in enumerate(left_out):
            inside[i, rows] = relevant[i, rows] = False
    return Balls(
        radius,
        np.count_nonzero(inside, axis=1).astype(np.int64),
        np.count_nonzero(inside & relevant, axis=1).astype(np.int64),
        np.count_nonzero(relevant, axis=1).astype(np.int64),
    )
