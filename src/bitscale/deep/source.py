"""The input of a network: batches of images read when asked for, or of vectors, as float tensors."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bitscale.arrays import Int
from bitscale.data.batch import one_array, to_size
from bitscale.data.images import as_images, read
from bitscale.data.labelled import Images
from bitscale.data.sets.array import Vectors
from bitscale.errors import InputError

HASH_ROWS = 16_384
STATISTICS_ROWS = 5_000  # training images that mean and spread are measured on


class ImageSource:
    """Images of one size and mode, read by the batch; with a `size`, brought to it, `colour`ed where asked for.

    It is an image's `middle` that is brought to it, or else all of it, stretched.
    """

    def __init__(
        self, images: Any, size: tuple[int, int] | None = None, colour: bool = False, middle: bool = True
    ) -> None:
        self.images: Images = as_images(images)
        self.size, self.colour, self.middle = size, colour, middle
        *own, channels = self.images[0].shape if len(self.images) else (1, 1, 1)
        self.shape: tuple[int, ...] = (3 if colour else channels, *(size or own))

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, rows: Int) -> Tensor:
        """float32 (m, C, H, W), values 0 to 255."""
        images = read(self.images, rows)
        if self.size:
            images = to_size(images, self.size, colour=self.colour, middle=self.middle)
        return torch.from_numpy(one_array(images, self.shape)).permute(0, 3, 1, 2).to(torch.float32)

    def fingerprint(self) -> str:
        """Identifies the images and their order."""
        return self.images.fingerprint


class VectorSource:
    """Vectors (n, d) in the place of images: features, or the user's own embeddings."""

    def __init__(self, vectors: NDArray[np.float32] | Vectors) -> None:
        self.vectors = vectors
        self.shape: tuple[int, ...] = (vectors.shape[1],)

    def __len__(self) -> int:
        return len(self.vectors)

    def batch(self, rows: Int) -> Tensor:
        """float32 (m, d)."""
        return torch.from_numpy(self.vectors[rows])

    def fingerprint(self) -> str:
        """Identifies the vectors and their order."""
        digest = hashlib.sha256()
        for start in range(0, len(self), HASH_ROWS):  # mapped vectors are not drawn into memory at once
            digest.update(np.ascontiguousarray(self.vectors[start : start + HASH_ROWS]).data)
        return digest.hexdigest()


Source = ImageSource | VectorSource


def statistics(source: Source, rows: Int, seed: int) -> tuple[Tensor, Tensor]:
    """Mean and spread of each channel or dimension over some of `rows`: (C, 1, 1) or (d,)."""
    drawn = np.sort(np.random.default_rng(seed).permutation(rows)[:STATISTICS_ROWS])
    dims = (0, 2, 3) if len(source.shape) == 3 else (0,)
    total, squares, n = torch.zeros(()), torch.zeros(()), 0
    first, differ = source.batch(drawn[:1]), False
    for start in range(0, len(drawn), 500):
        batch = source.batch(drawn[start : start + 500])
        differ = differ or not torch.equal(batch, first.expand_as(batch))
        batch = batch.to(torch.float64)
        total = total + batch.sum(dims)
        squares = squares + batch.square().sum(dims)
        n += batch.numel() // source.shape[0]
    mean = total / n
    spread = (squares / n - mean.square()).clamp(min=0).sqrt()
    if not differ or not (spread > 0).any():
        raise InputError(
            "the training items are all equal, so there is nothing to learn from. Check how they were read."
        )
    spread = torch.where(spread > 1e-6 * spread.max(), spread, spread.max())  # a constant channel stays quiet
    shape = (-1, 1, 1) if len(source.shape) == 3 else (-1,)
    return mean.view(shape).float(), spread.view(shape).float()
