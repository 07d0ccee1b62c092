"""Images of one size and mode, or a word on how to make them so."""

from __future__ import annotations

import numpy as np

from bitscale.data.images import Pixels
from bitscale.errors import InputError


def check_pixels(pixels: Pixels | list[Pixels], shape: tuple[int, ...]) -> Pixels:
    """A batch as one array (m, H, W, C), every image being of `shape` (C, H, W)."""
    channels, height, width = shape
    for image in pixels[:1] if isinstance(pixels, np.ndarray) else pixels:
        if image.shape != (height, width, channels):
            raise InputError(
                f"all images must be {height}x{width} with {channels} channel(s), as the first ones were. "
                f"Got one of {image.shape[0]}x{image.shape[1]} with {image.shape[2]}. Bring them to one size with "
                "bitscale.data.images.Resized and to one mode (grey or colour) first."
            )
    return np.ascontiguousarray(pixels)
