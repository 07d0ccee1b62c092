"""Edits that people make to photographs, drawn by a seed: what a copy may have gone through."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont

Edit = Callable[[Image.Image, np.random.Generator], Image.Image]


def at_size(share: float) -> Edit:
    """A smaller copy."""
    return lambda picture, rng: picture.resize(
        (max(round(picture.width * share), 1), max(round(picture.height * share), 1)), Image.Resampling.LANCZOS
    )


def thumbnail(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """At most 128 pixels high and wide."""
    small = picture.copy()
    small.thumbnail((128, 128))
    return small


def watermark(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Half transparent words in a corner, over a fifth of the width or more."""
    layer = Image.new("RGBA", picture.size)
    size = max(int(picture.width * rng.uniform(0.04, 0.07)), 8)
    corner = int(rng.integers(4))
    words = "(c) example.org"
    font = ImageFont.load_default(size)
    wide, high = int(font.getlength(words)), int(size * 1.3)
    x = size // 2 if corner % 2 else picture.width - wide - size // 2
    y = size // 2 if corner < 2 else picture.height - high - size // 2
    ImageDraw.Draw(layer).text((x, y), words, (255, 255, 255, 150), font)
    return Image.alpha_composite(picture.convert("RGBA"), layer).convert("RGB")


def words(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """A line of opaque text across the picture, white with a black edge, as memes have it."""
    new = picture.copy()
    size = max(int(picture.width / 12), 8)
    place = picture.width // 2, int(picture.height * rng.uniform(0.1, 0.9))
    font = ImageFont.load_default(size)
    edge = max(size // 12, 1)
    ImageDraw.Draw(new).text(place, "what a day that was", "white", font, "mm", stroke_width=edge, stroke_fill="black")
    return new


def border(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """A frame of one colour, 3 to 6 % of the width on every side."""
    wide = max(round(picture.width * rng.uniform(0.03, 0.06)), 1)
    colour = tuple(int(level) for level in (rng.integers(2) * np.array([255, 255, 255])))
    new = Image.new("RGB", (picture.width + 2 * wide, picture.height + 2 * wide), colour)
    new.paste(picture, (wide, wide))
    return new


def crop(share: float) -> Edit:
    """So much of the width and of the height cut off, divided between opposite sides by chance."""

    def edit(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
        across, down = share * picture.width, share * picture.height
        left, top = across * rng.uniform(), down * rng.uniform()
        box = (round(left), round(top), round(picture.width - across + left), round(picture.height - down + top))
        return picture.crop(box)

    return edit


def turned(degrees: float) -> Edit:
    """Turned a little to either side, the corners black."""
    return lambda picture, rng: picture.rotate(
        degrees * (1 if rng.integers(2) else -1), Image.Resampling.BICUBIC, expand=False
    )


def quarter_turn(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Turned by 90 degrees, to either side."""
    return picture.transpose(Image.Transpose.ROTATE_90 if rng.integers(2) else Image.Transpose.ROTATE_270)


def mirrored(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Left and right exchanged."""
    return picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def as_it_is(picture: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Nothing; what is done to it is in how it is saved."""
    return picture


EDITS: dict[str, tuple[Edit, str, int]] = {  # what is done, and the format and quality it is saved in
    "jpeg 40": (as_it_is, "JPEG", 40),
    "webp": (as_it_is, "WEBP", 70),
    "half": (at_size(0.5), "JPEG", 88),
    "quarter": (at_size(0.25), "JPEG", 88),
    "thumbnail": (thumbnail, "JPEG", 80),
    "grey": (lambda picture, rng: picture.convert("L").convert("RGB"), "JPEG", 90),
    "watermark": (watermark, "JPEG", 90),
    "border": (border, "JPEG", 90),
    "crop 3 %": (crop(0.03), "JPEG", 90),
    "crop 10 %": (crop(0.10), "JPEG", 90),
    "turned 2": (turned(2), "JPEG", 90),
    "turned 90": (quarter_turn, "JPEG", 90),
    "mirrored": (mirrored, "JPEG", 90),
    "brighter": (lambda picture, rng: ImageEnhance.Brightness(picture).enhance(rng.uniform(1.2, 1.4)), "JPEG", 90),
    "paler": (
        lambda picture, rng: ImageEnhance.Contrast(ImageEnhance.Color(picture).enhance(0.6)).enhance(0.7),
        "JPEG",
        90,
    ),
    "blurred": (lambda picture, rng: picture.filter(ImageFilter.GaussianBlur(picture.width / 250)), "JPEG", 90),
    "words": (words, "JPEG", 90),
}
ENDINGS = {"JPEG": ".jpg", "WEBP": ".webp"}


def edit_path(name: str, folder: Path, stem: str) -> Path:
    """Where an edited copy is saved."""
    return folder / f"{stem}~{name.replace(' ', '-').replace('%', 'pc')}{ENDINGS[EDITS[name][1]]}"


def write_edit(picture: Image.Image, name: str, folder: Path, stem: str, rng: np.random.Generator) -> Path:
    """Save one edited copy, and say where."""
    edit, kind, quality = EDITS[name]
    path = edit_path(name, folder, stem)
    file = io.BytesIO()
    edit(picture, rng).save(file, kind, quality=quality)
    path.write_bytes(file.getvalue())
    return path
