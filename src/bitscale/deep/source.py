"""What a network is fed: batches of images read when asked for, or of vectors, as float tensors."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bitscale.data.images import as_images, read
from bitscale.data.splits import Images, Int
from bitscale.data.vectors import Vectors
from bitscale.deep.pixels import check_pixels, to_squares
from bitscale.errors import InputError

HASH_ROWS = 16_384
STATISTICS_ROWS = 5_000  # training images that mean and spread are measured on


class ImageSource:
    """Images of one size and mode, or brought to squares of a `side`, in colour where asked for; read by the batch."""

    def __init__(self, images: Any, side: int = 0, colour: bool = False) -> None:
        self.images: Images = as_images(images)
        self.side, self.colour = side, colour
        height, width, channels = self.images[0].shape if len(self.images) else (1, 1, 1)
        self.shape: tuple[int, ...] = (3 if colour else channels, side or height, side or width)

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, rows: Int) -> Tensor:
        """float32 (m, C, H, W), values 0 to 255."""
        found = read(self.images, rows)
        pixels = check_pixels(to_squares(found, self.side, self.colour) if self.side else found, self.shape)
        return torch.from_numpy(pixels).permute(0, 3, 1, 2).to(torch.float32)

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
    some = np.sort(np.random.default_rng(seed).permutation(rows)[:STATISTICS_ROWS])
    dims = (0, 2, 3) if len(source.shape) == 3 else (0,)
    total, squares, n = torch.zeros(()), torch.zeros(()), 0
    first, differ = source.batch(some[:1]), False
    for start in range(0, len(some), 500):
        batch = source.batch(some[start : start + 500])
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


def augment(batch: Tensor, moves: Int | None = None, flips: NDArray[np.bool_] | None = None) -> Tensor:
    """Images flipped left-right where chosen, then moved by whole pixels, (m, 2) down and right, filled with 0."""
    if batch.ndim != 4:
        return batch
    if flips is not None:
        chosen = torch.from_numpy(flips)
        batch = torch.where(chosen[:, None, None, None], batch.flip(3), batch)
    if moves is not None and moves.any():
        reach, (height, width) = int(np.abs(moves).max()), batch.shape[2:]
        padded = torch.nn.functional.pad(batch, (reach,) * 4)
        windows = padded.unfold(2, height, 1).unfold(3, width, 1)  # (m, C, 2 reach + 1, 2 reach + 1, H, W)
        down, right = torch.from_numpy(reach - moves).T
        batch = windows[torch.arange(len(batch)), :, down, right].contiguous()
    return batch
