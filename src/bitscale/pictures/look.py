"""The look of a whole picture, to tell copies by: 32x32 grey levels, and 16x16 of two colours, in 1,536 bytes.

Made where pictures are decoded, from pixels that are there already; needs nothing but Pillow. `bitscale.looks`
compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

SIDE = 32  # of the grey levels
COLOUR_SIDE = 16  # of each of the two colours
LOOK_BYTES = SIDE * SIDE + 2 * COLOUR_SIDE * COLOUR_SIDE


def look_of(picture: Image.Image) -> bytes:
    """The look of an upright picture, in RGB or grey: grey levels, then blue and red against grey (YCbCr)."""
    from PIL import Image

    box, between = Image.Resampling.BOX, Image.Resampling.BILINEAR
    small = picture.resize((SIDE, SIDE), between if min(picture.size) < 2 * SIDE else box, reducing_gap=2.0)
    if small.mode == "L":
        return small.tobytes() + bytes([128]) * (LOOK_BYTES - SIDE * SIDE)
    grey, blue, red = small.convert("YCbCr").split()
    colours = (one.resize((COLOUR_SIDE, COLOUR_SIDE), box).tobytes() for one in (blue, red))
    return b"".join((grey.tobytes(), *colours))
