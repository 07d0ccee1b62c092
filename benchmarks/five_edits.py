"""The five edits that rows on copies speak of, drawn by a seed; and edits of any strength to learn from."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageEnhance

Edit = Callable[[Image.Image, np.random.Generator], Image.Image]


def saved(picture: Image.Image, quality: int) -> Image.Image:
    """As JPEG of some quality, read again."""
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=quality)
    return Image.open(file).convert("RGB")


def cropped(picture: Image.Image, share: float, rng: np.random.Generator) -> Image.Image:
    """So much of the width and of the height cut off, divided between opposite sides by chance."""
    width, height = picture.size
    left, top = (share * side * rng.uniform() for side in (width, height))
    return picture.crop((round(left), round(top), round(left + (1 - share) * width), round(top + (1 - share) * height)))


def shaded(picture: Image.Image, brightness: float, colour: float) -> Image.Image:
    """Brighter or darker, paler or stronger."""
    return ImageEnhance.Color(ImageEnhance.Brightness(picture).enhance(brightness)).enhance(colour)


def mirrored(picture: Image.Image) -> Image.Image:
    """Left and right exchanged."""
    return picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def turned(picture: Image.Image, degrees: float, rng: np.random.Generator) -> Image.Image:
    """Turned to either side, the corners black."""
    return picture.rotate(degrees * (1 if rng.integers(2) else -1), Image.Resampling.BICUBIC)


FIVE: dict[str, Edit] = {
    "jpeg": lambda picture, rng: saved(picture, 40),
    "crop": lambda picture, rng: cropped(picture, 0.1, rng),
    "bright": lambda picture, rng: shaded(picture, 1.3, 0.6),
    "mirror": lambda picture, rng: mirrored(picture),
    "turn": lambda picture, rng: turned(picture, 8, rng),
}
FAMILIES: dict[str, Edit] = {
    "jpeg": lambda picture, rng: saved(picture, int(rng.integers(25, 65))),
    "crop": lambda picture, rng: cropped(picture, rng.uniform(0.05, 0.2), rng),
    "shade": lambda picture, rng: shaded(picture, rng.uniform(0.75, 1.4), rng.uniform(0.4, 1.2)),
    "mirror": lambda picture, rng: mirrored(picture),
    "turn": lambda picture, rng: turned(picture, rng.uniform(3, 12), rng),
}
OFTEN = {"jpeg": 0.35, "crop": 0.15, "shade": 0.15, "mirror": 0.1, "turn": 0.25}  # the harder, the more


def any_edit(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """An edit to learn from."""
    return FAMILIES[str(rng.choice(list(OFTEN), p=list(OFTEN.values())))](picture, rng)
