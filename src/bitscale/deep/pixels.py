"""Images of one size and mode: brought to it, or a word on how to do so."""

from __future__ import annotations

import numpy as np

from bitscale.data.images import Pixels
from bitscale.errors import InputError
from bitscale.features.cnn import middle_square


def check_pixels(pixels: Pixels | list[Pixels], shape: tuple[int, ...]) -> Pixels:
    """A batch as one array (m, H, W, C), every image being of `shape` (C, H, W)."""
    channels, height, width = shape
    for image in pixels[:1] if isinstance(pixels, np.ndarray) else pixels:
        if image.shape != (height, width, channels):
            raise InputError(
                f"all images must be {height}x{width} with {channels} channel(s), as the first ones were. "
                f"Got one of {image.shape[0]}x{image.shape[1]} with {image.shape[2]}. Bring them to one size with "
                "input_size= or bitscale.data.images.Resized, and to one mode (grey or colour) first."
            )
    return np.ascontiguousarray(pixels)


def to_squares(pixels: Pixels | list[Pixels], side: int, colour: bool) -> list[Pixels]:
    """Every image's middle square, brought to `side` pixels; grey goes into all three colours where asked for."""
    squares = [middle_square(image, side) for image in pixels]
    return [image.repeat(3, axis=2) if colour and image.shape[2] == 1 else image for image in squares]


def at_a_time(shape: tuple[int, ...], most: int) -> int:
    """How many items to run through a network at once: fewer where they are large pictures."""
    return most if len(shape) == 1 else max(1, min(most, most * 4096 // (shape[1] * shape[2])))
