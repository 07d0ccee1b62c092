"""Which images make a batch: some classes, some images of each, drawn anew for every step from (seed, step) alone.

    fewer classes than asked for     all of them
    fewer images in a class          all of them, none twice: an image is no positive of itself
    label sets                       classes are tags; an image drawn for one tag is not drawn again for another
    images without any tag           never drawn
    cameras known                    a class is drawn from each of its cameras in turn, so that it is seen across them

Because a batch depends on nothing but the seed and the step, a resumed run sees what an unbroken one would have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Int
from bitscale.data.labelled import Labels
from bitscale.errors import InputError

_TRIES = 20  # batches looked at before saying that label sets give no triplets
_BATCH, _HOLD_OUT = 1, 2  # streams of randomness under one seed


class Sampler:
    """Draws batches of `classes_per_batch` x `images_per_class` rows, grouped by class."""

    def __init__(
        self,
        labels: Labels,
        classes_per_batch: int,
        images_per_class: int,
        seed: int,
        cameras: Int | None = None,
    ) -> None:
        if classes_per_batch < 2 or images_per_class < 2:
            raise InputError(
                "a triplet needs two classes and two images of one: classes_per_batch and images_per_class must be "
                f"at least 2. Got {classes_per_batch} and {images_per_class}."
            )
        self.labels, self.seed = labels, seed
        self.classes_per_batch, self.images_per_class = classes_per_batch, images_per_class
        self.members, self.cameras = _members(labels), cameras
        if labels.ndim == 2 and not any(_has_triplet(labels[self.batch(step)]) for step in range(_TRIES)):
            raise InputError(
                "these label sets give no triplets: no image has both another that shares a label and one that "
                "shares none. Drop labels that every image carries."
            )

    def batch(self, step: int) -> Int:
        """The rows of one step's batch."""
        rng = np.random.default_rng([self.seed, step, _BATCH])
        n = min(self.classes_per_batch, len(self.members))
        chosen = rng.choice(len(self.members), n, replace=False)
        if self.labels.ndim == 1:
            return np.concatenate([self._draw(self.members[i], rng) for i in chosen])
        taken = np.zeros(0, np.int64)
        for i in chosen:
            free = np.setdiff1d(self.members[i], taken, assume_unique=True) if taken.size else self.members[i]
            taken = np.concatenate([taken, self._draw(free, rng)])
        return taken

    def _draw(self, rows: Int, rng: np.random.Generator) -> Int:
        """Some rows of a class, none twice; of each of its cameras alike, as far as they go."""
        if self.cameras is None:
            drawn: Int = rng.choice(rows, min(self.images_per_class, len(rows)), replace=False)
            return drawn
        rows = rng.permutation(rows)
        cameras = self.cameras[rows]
        before = np.array([np.count_nonzero(cameras[:i] == camera) for i, camera in enumerate(cameras)])
        return rows[np.argsort(before, kind="stable")[: self.images_per_class]]


def hold_out(labels: Labels, share: float, seed: int, by: str = "images") -> tuple[Int, Int]:
    """Rows to train on and rows kept back to choose a model by: `share` of every class but two images.

    By "classes" it is all images of a share of the classes, as where new persons are to be told apart.
    """
    if not 0 <= share < 1:
        raise InputError(f"validation_share must be at least 0 and below 1. Got {share}.")
    if not share:
        return np.arange(len(labels)), np.zeros(0, np.int64)
    rng = np.random.default_rng([seed, 0, _HOLD_OUT])
    if by == "classes":
        return _whole_classes(labels, share, rng)
    held_out: list[Int] = [np.zeros(0, np.int64)]
    groups = [np.flatnonzero(labels == c) for c in np.unique(labels)] if labels.ndim == 1 else [np.arange(len(labels))]
    for rows in groups:
        n = max(min(round(share * len(rows)), len(rows) - 2), 0)
        held_out.append(rng.permutation(rows)[:n])
    away = np.sort(np.concatenate(held_out))
    return np.setdiff1d(np.arange(len(labels)), away, assume_unique=True), away


def _whole_classes(labels: Labels, share: float, rng: np.random.Generator) -> tuple[Int, Int]:
    if labels.ndim == 2:
        raise InputError("validation_by=classes needs one class an image. With label sets use validation_by=images.")
    names = np.unique(labels)
    n = round(share * len(names))
    if not 2 <= n <= len(names) - 2:
        raise InputError(
            f"validation_by=classes keeps back two classes at least, and leaves two to learn from. {share:g} of "
            f"{len(names)} is {n}: choose another validation_share."
        )
    away = np.isin(labels, rng.permutation(names)[:n])
    return np.flatnonzero(~away), np.flatnonzero(away)


def _members(labels: Labels) -> list[Int]:
    """The rows of each class, or of each tag that at least two images carry."""
    if labels.ndim == 2:
        tags = [rows for column in labels.T if len(rows := np.flatnonzero(column)) >= 2]
        if len(tags) < 2:
            raise InputError(
                f"learning from label sets takes at least two labels that two images carry. Got {len(tags)}."
            )
        return tags
    order = np.argsort(labels, kind="stable")
    names, starts = np.unique(labels[order], return_index=True)
    if len(names) < 2:
        raise InputError(
            f"learning by comparison takes at least two classes. All {len(labels)} images are of class {names[0]}; "
            "add images of another, or use a method without labels (itq, sh)."
        )
    groups = np.split(order.astype(np.int64), starts[1:])
    alone = [int(name) for name, rows in zip(names, groups, strict=True) if len(rows) < 2]
    if alone:
        raise InputError(
            f"every class needs two images, to be compared with each other. {len(alone)} have one "
            f"(class {alone[0]} for one). Add images to them or leave these classes out."
        )
    return groups


def _has_triplet(sets: NDArray[Any]) -> bool:
    shared = sets.astype(np.int32) @ sets.astype(np.int32).T > 0
    np.fill_diagonal(shared, False)
    n_positive = shared.sum(1)
    return bool(((n_positive > 0) & (n_positive < len(sets) - 1)).any())
