"""Similarity of labelled items, +1 where they share a label and -1 where not, never as a matrix unless asked for.

Items with equal labels form a group, so S = E T E^T, where E (n, groups) says which group an item is in and
T (groups, groups) compares groups. With one class each the groups are the classes.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32, Int
from bitscale.data.labelled import Labels
from bitscale.errors import InputError


class Similarity:
    """S of labels: int64 (n,) one class each, or bool (n, n_labels)."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        alike = (labels == labels[0]).all() if labels.ndim == 1 else labels.all(axis=0).any()
        if alike:
            raise InputError("learning needs items that share no label, and all of these do. Check the labels.")

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def group(self) -> Int:
        """The group of each item: (n,)."""
        return np.unique(self.labels, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)

    @cached_property
    def table(self) -> Float32:
        """T, the similarity S of every two groups, (groups, groups)."""
        distinct = np.unique(self.labels, axis=0)
        if self.labels.ndim == 1:
            shared = np.eye(len(distinct), dtype=bool)
        else:
            shared = (distinct.astype(np.float32) @ distinct.T.astype(np.float32)) > 0
        return np.where(shared, np.float32(1), np.float32(-1))

    @property
    def n_groups(self) -> int:
        """How many distinct labels, or sets of labels, there are."""
        return len(self.table)

    def times(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """S @ x for x (n,) or (n, m), in the type of x."""
        order, starts = self._by_group
        sums = np.add.reduceat(x[order], starts, axis=0)  # (groups, ...)
        product: NDArray[np.floating] = (self.table.astype(x.dtype) @ sums)[self.group]
        return product

    def whole(self) -> Float32:
        """S itself, (n, n): for a few thousand items at most."""
        return self.table[self.group][:, self.group]

    def pairs(self, first: Int, second: Int) -> Float32:
        """The similarity S of these pairs of items."""
        if self.labels.ndim == 1:
            shared = self.labels[first] == self.labels[second]
        else:
            shared = (self.labels[first] & self.labels[second]).any(axis=1)
        return np.where(shared, np.float32(1), np.float32(-1))

    def draw_pairs(self, n: int, rng: np.random.Generator) -> tuple[Int, Int]:
        """`n` random pairs of items, about half of them similar.

        Half are drawn blindly; for the others first an item, then one of its labels, then an item with it.
        """
        first, second = rng.integers(len(self), size=n), rng.integers(len(self), size=n)
        half = n // 2
        owned, starts = self._by_item
        number = np.diff(starts)[first[:half]]  # of labels an item has; where 0, nothing is similar to it
        labelled = np.flatnonzero(number)
        chosen = owned[starts[first[labelled]] + (rng.random(half)[labelled] * number[labelled]).astype(np.int64)]
        members, begins = self._by_label
        place = begins[chosen] + (rng.random(half)[labelled] * np.diff(begins)[chosen]).astype(np.int64)
        second[labelled] = members[place]
        return first, second

    @cached_property
    def _by_group(self) -> tuple[Int, Int]:
        """Items ordered by group, and where each group begins."""
        order = np.argsort(self.group, kind="stable")
        return order, np.searchsorted(self.group[order], np.arange(self.n_groups))

    @cached_property
    def _by_item(self) -> tuple[Int, Int]:
        """The labels of all items one after the other, and where each item's begin."""
        item, label = self._ownership
        return label, np.concatenate([[0], np.cumsum(np.bincount(item, minlength=len(self)))])

    @cached_property
    def _by_label(self) -> tuple[Int, Int]:
        """The items of all labels one after the other, and where each label's begin."""
        item, label = self._ownership
        return item[np.argsort(label, kind="stable")], np.concatenate([[0], np.cumsum(np.bincount(label))])

    @cached_property
    def _ownership(self) -> tuple[Int, Int]:
        """Item and label of every label an item has, by item."""
        if self.labels.ndim == 1:
            return np.arange(len(self)), self.labels.astype(np.int64)
        item, label = np.nonzero(self.labels)
        return item.astype(np.int64), label.astype(np.int64)


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
