"""Pixels as features: each image flattened, divided by 255."""

from __future__ import annotations

import math

import numpy as np

from bitscale.arrays import Float32, Pixels
from bitscale.data.images import resize
from bitscale.errors import InputError
from bitscale.features.base import Features
from bitscale.pictures.form import AS_IT_IS, Form


class PixelFeatures(Features):
    """Flattened pixels / 255; with `size` images are first brought to size x size."""

    name = "pixels"
    batch_size = 1024
    cacheable = False  # quicker made than read

    def __init__(self, size: int | None = None) -> None:
        if size is not None and not 1 <= size <= 2048:
            raise InputError(f"pixels take a size of 1 to 2048. Got {size}.")
        self.size = size
        self.dim = None
        self.form = AS_IT_IS if size is None else Form((size, size))

    @property
    def settings(self) -> str:
        """The size."""
        return f"size={self.size}"

    def prepare(self, batch: Pixels | list[Pixels]) -> Pixels:
        """One array (m, H, W, C), resized where a size was asked for."""
        if self.size is not None:
            batch = [resize(image, (self.size, self.size)) for image in batch]
        shapes = {image.shape for image in batch}
        if len(shapes) > 1:
            raise InputError(
                f"pixels as features need images of one size. Got {', '.join(map(str, sorted(shapes)[:3]))}; "
                'choose a size, as in features="pixels@32".'
            )
        return np.asarray(batch)

    def compute(self, prepared: Pixels) -> Float32:
        """(m, H, W, C) uint8 -> (m, H * W * C) float32 in [0, 1]."""
        return prepared.reshape(len(prepared), -1).astype(np.float32) / np.float32(255)


def square_form(dim: int) -> Form:
    """The square pictures that have so many values; no number is that of a grey and of a colour square."""
    for channels in (1, 3):
        side = math.isqrt(dim // channels)
        if side * side * channels == dim:
            return Form((side, side), channels)
    raise InputError(
        f"this model was fitted on pixels of pictures with {dim} values, which no square has, so files cannot be "
        'brought to their size. Fit it with a size, as in features="pixels@32", or encode arrays.'
    )
