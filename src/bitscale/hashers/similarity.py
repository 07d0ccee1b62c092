"""Similarity of labelled items, +1 where they share a label and -1 where not, never as an n x n matrix.

Items with equal labels form a group, so S = E T E^T, where E (n, groups) says which group an item is in and
T (groups, groups) compares groups. With one class each the groups are the classes.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bitscale.data.splits import Labels
from bitscale.errors import InputError

Int = NDArray[np.int64]


class Similarity:
    """S of labels: int64 (n,) one class each, or bool (n, n_labels)."""

    def __init__(self, labels: Labels) -> None:
        distinct, group = np.unique(labels, axis=0, return_inverse=True)
        self.group: Int = group.reshape(-1).astype(np.int64)  # (n,)
        if labels.ndim == 1:
            shared = np.eye(len(distinct), dtype=bool)
        else:
            shared = (distinct.astype(np.float32) @ distinct.T.astype(np.float32)) > 0
        self.table: NDArray[np.float32] = np.where(shared, np.float32(1), np.float32(-1))  # (groups, groups)
        if (self.table > 0).all():
            raise InputError(
                "learning needs items that share no label, and all of these share one. Check labels."
            )
        self._by_group = np.argsort(self.group, kind="stable")
        self._starts = np.searchsorted(self.group[self._by_group], np.arange(len(distinct)))

    def __len__(self) -> int:
        return len(self.group)

    @property
    def n_groups(self) -> int:
        """How many distinct labels, or sets of labels, there are."""
        return len(self.table)

    def times(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """S @ x for x (n,) or (n, m), in the type of x."""
        sums = np.add.reduceat(x[self._by_group], self._starts, axis=0)  # (groups, ...)
        product: NDArray[np.floating] = (self.table.astype(x.dtype) @ sums)[self.group]
        return product

    def pairs(self, first: Int, second: Int) -> NDArray[np.float32]:
        """S of given pairs of items."""
        return self.table[self.group[first], self.group[second]]

    def draw_pairs(self, n: int, rng: np.random.Generator) -> tuple[Int, Int]:
        """`n` random pairs of items, about half of them similar.

        Half are drawn blindly; for the others first an item, then one of all the items similar to it.
        """
        first, second = rng.integers(len(self), size=n), rng.integers(len(self), size=n)
        half = n // 2
        chances = self._chances[self.group[first[:half]]]  # (half, groups)
        drawn = rng.random(half) * chances[:, -1]
        group = np.minimum((chances <= drawn[:, None]).sum(axis=1), self.n_groups - 1)
        place = (rng.random(half) * self._sizes[group]).astype(np.int64)
        second[:half] = self._by_group[self._starts[group] + place]
        return first, second

    @cached_property
    def _sizes(self) -> Int:
        return np.bincount(self.group, minlength=self.n_groups).astype(np.int64)

    @cached_property
    def _chances(self) -> NDArray[np.float64]:
        """Running number of items in the groups similar to each group: (groups, groups)."""
        return np.cumsum((self.table > 0) * self._sizes, axis=1, dtype=np.float64)


def draw_items(labels: Labels, n: int | None, rng: np.random.Generator) -> Int:
    """`n` items at random (all where n is None or too large); with one class each, equally many a class."""
    if n is None or n >= len(labels):
        return np.arange(len(labels))
    order = rng.permutation(len(labels))
    if labels.ndim == 2:
        return np.sort(order[:n])
    shuffled = labels[order]
    by_class = np.argsort(shuffled, kind="stable")
    starts = np.searchsorted(shuffled[by_class], shuffled[by_class])  # where each one's class begins
    turn = np.arange(len(labels)) - starts  # 0 for the first of a class, 1 for the second, ...
    return np.sort(order[by_class[np.argsort(turn, kind="stable")[:n]]])
