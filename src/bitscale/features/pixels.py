"""Pixels as features: each image flattened, divided by 255."""

from __future__ import annotations

import numpy as np

from bitscale.data.images import Pixels, resize
from bitscale.errors import InputError
from bitscale.features.base import Features, Float32


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
