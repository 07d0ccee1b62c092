"""The form in which a model takes pictures, and the one way to bring a picture to it.

Training, indexing and searching all come through here, so that a model is always shown what it was trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True)
class Form:
    """How a model takes pictures: `size` (height, width) or None for their own; 3 channels, or 1 for grey.

    With `middle` the middle part of that shape is taken and brought to `size`, else all of the picture is stretched.
    """

    size: tuple[int, int] | None = None
    channels: int = 3
    middle: bool = False


AS_IT_IS = Form()


def in_colour(picture: Image.Image, channels: int) -> Image.Image:
    """In colour or grey with 8 bits a channel, transparency laid on white."""
    from PIL import Image

    mode = "L" if channels == 1 else "RGB"
    if picture.mode.startswith(("I", "F")):  # 16 or 32 bits of grey: convert() would clip them at 255
        import numpy as np

        grey = np.nan_to_num(np.asarray(picture).astype(np.float64))
        top = grey.max(initial=0)
        scale = 255 / 65535 if top > 255 else 255.0 if picture.mode == "F" and top <= 1 else 1.0
        picture = Image.fromarray(np.clip(grey * scale, 0, 255).astype(np.uint8))
    elif "A" in picture.getbands() or "a" in picture.getbands() or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return picture if picture.mode == mode else picture.convert(mode)


def fit(picture: Image.Image, form: Form) -> Image.Image:
    """At the size of the form: all of the picture stretched to it, or its middle part of that shape."""
    from PIL.Image import Resampling

    if form.size is None:
        return picture
    width, height = picture.size
    wanted = (form.size[1], form.size[0])
    if form.middle and width * wanted[1] != height * wanted[0]:
        wide = max(1, min(width, height * wanted[0] // wanted[1]))
        high = max(1, min(height, width * wanted[1] // wanted[0]))
        left, top = (width - wide) // 2, (height - high) // 2
        picture = picture.crop((left, top, left + wide, top + high))
    return picture if picture.size == wanted else picture.resize(wanted, Resampling.BILINEAR)
