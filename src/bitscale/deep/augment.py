"""A batch of images changed at random: shifts, flips and blank rectangles, drawn and made."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bitscale.arrays import Int
from bitscale.deep.settings import DeepSettings

GREY = 127.5


def draw_moves(settings: DeepSettings, n: int, rng: np.random.Generator) -> Int:
    """By how many pixels each of `n` images is shifted, down and right: (n, 2)."""
    if not settings.shift:
        return np.zeros((n, 2), np.int64)
    drawn = rng.integers(-settings.shift, settings.shift + 1, (n if settings.shift_by == "image" else 1, 2))
    return np.broadcast_to(drawn, (n, 2))


def draw_holes(share: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rectangles to blank in `share` of `n` images: top, left, height and width as shares of an image, (n, 4)."""
    area, ratio = rng.uniform(0.02, 0.25, n), np.exp(rng.uniform(-1, 1, n))
    sides = np.minimum(np.stack([np.sqrt(area * ratio), np.sqrt(area / ratio)], 1), 0.9)
    sides[rng.random(n) >= share] = 0
    return np.concatenate([rng.random((n, 2)) * (1 - sides), sides], 1)


def augment(
    batch: Tensor,
    moves: Int | None = None,
    flips: NDArray[np.bool_] | None = None,
    holes: NDArray[np.float64] | None = None,
) -> Tensor:
    """Images flipped left-right where chosen, then moved by whole pixels, (m, 2) down and right, filled with 0.

    `holes` are made last, in the middle grey: top, left, height and width as shares of the image, (m, 4).
    """
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
    return batch if holes is None else _erase(batch, holes)


def _erase(batch: Tensor, holes: NDArray[np.float64]) -> Tensor:
    sides = np.array(batch.shape[2:])
    first = np.round(holes[:, :2] * sides).astype(int)
    last = np.round((holes[:, :2] + holes[:, 2:]) * sides).astype(int)
    batch = batch.clone()
    for image, (top, left), (bottom, right) in zip(batch, first, last, strict=True):
        image[:, top:bottom, left:right] = GREY
    return batch
