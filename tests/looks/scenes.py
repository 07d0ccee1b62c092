"""Pictures with something on them, made by a number."""

import io

import numpy as np
from PIL import Image

from bitscale.looks.look import Looks, looks_of
from bitscale.pictures.look import look_of


def scene(seed, size=(120, 90)):
    """A picture with something on it, in colour."""
    noise = Image.fromarray(np.random.default_rng(seed).integers(0, 256, (9, 9, 3), np.uint8))
    return noise.resize(size, Image.Resampling.BICUBIC)


def as_jpeg(picture, quality=50):
    """The picture after it was stored as a JPEG."""
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=quality)
    return Image.open(io.BytesIO(data.getvalue()))


def looks(*pictures) -> Looks:
    """Their looks."""
    return looks_of([look_of(one.convert("RGB")) for one in pictures], [one.size for one in pictures])
