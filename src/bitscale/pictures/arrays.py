"""Pictures as arrays: a decoded file with what is known of it, and images brought to the form a model takes."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bitscale.arrays import Pixels
from bitscale.pictures.decode import LIMITS, Limits, decode
from bitscale.pictures.form import AS_IT_IS, Form, fit, in_colour


@dataclass(frozen=True)
class Picture:
    """A decoded picture: pixels (H, W, C), and its file's sha256, size, time of change (ns), format and dimensions;
    the look of all of it (`pictures.look`), and what its camera wrote down (`pictures.exif`)."""

    pixels: Pixels
    content: bytes
    size: int
    modified: int
    format: str
    width: int
    height: int
    look: bytes = field(default=b"", repr=False)
    exif: dict[str, Any] = field(default_factory=dict)


def read_picture(path: str | os.PathLike[str], form: Form = AS_IT_IS, limits: Limits = LIMITS) -> Picture:
    """Decode one file in this process, or raise UnreadablePicture."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's about metadata, and about sizes, which are checked
        decoded = decode(os.fspath(path), form, limits)
    pixels = np.frombuffer(bytearray(decoded.data), np.uint8).reshape(decoded.shape)
    about = decoded.content, decoded.size, decoded.modified, decoded.format, decoded.width, decoded.height
    return Picture(pixels, *about, decoded.look, decoded.exif)


def fit_pixels(image: Pixels, form: Form) -> Pixels:
    """An image (H, W), (H, W, 1) or (H, W, 3) as a model takes pictures: (H', W', C)."""
    from PIL import Image

    if image.ndim == 3 and image.shape == (*(form.size or image.shape[:2]), form.channels):
        return image
    grey = image.ndim == 2 or image.shape[2] == 1
    picture = Image.fromarray(image.reshape(image.shape[:2]) if grey else image)
    pixels = np.asarray(fit(in_colour(picture, form.channels), form))
    return pixels[..., None] if pixels.ndim == 2 else pixels
