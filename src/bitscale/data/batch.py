"""A batch of images as one array: each brought to the size a network takes, or checked to be of one shape."""

from __future__ import annotations

import numpy as np

from bitscale.arrays import Pixels
from bitscale.errors import InputError
from bitscale.pictures.arrays import fit_pixels
from bitscale.pictures.form import Form


def to_size(images: Pixels | list[Pixels], size: tuple[int, int], *, colour: bool, middle: bool) -> list[Pixels]:
    """Every image, or its middle part of that shape, brought to `size` (height, width).

    Grey goes into all three colours where `colour` is asked for.
    """
    return [fit_pixels(image, Form(size, 3 if colour else image.shape[2], middle=middle)) for image in images]


def one_array(images: Pixels | list[Pixels], shape: tuple[int, ...]) -> Pixels:
    """The images as one array (m, H, W, C), or say which is not of `shape` (C, H, W)."""
    channels, height, width = shape
    for image in images[:1] if isinstance(images, np.ndarray) else images:
        if image.shape != (height, width, channels):
            raise InputError(
                f"all images must be {height}x{width} with {channels} channel(s), as the first ones were. "
                f"Got one of {image.shape[0]}x{image.shape[1]} with {image.shape[2]}. Bring them to one size with "
                "input_size= or bitscale.data.images.Resized, and to one mode (grey or colour) first."
            )
    return np.ascontiguousarray(images)
