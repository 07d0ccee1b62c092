"""A picture file as a small data: URI, upright; or the reason why there is none."""

from __future__ import annotations

import base64
import io
import os
import warnings

from bitscale.data.files import FORMATS, _rgb

SIDE = 192  # pixels at most


class NoPicture(Exception):
    """There is nothing to show; the message says why."""


def thumbnail(path: str, side: int = SIDE) -> str:
    """The picture at a path, at most `side` pixels wide and high, as a data: URI."""
    from PIL import Image, ImageOps

    if not os.path.exists(path):
        raise NoPicture("the file is missing")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as picture:
                picture.draft("RGB", (side, side))  # a JPEG is decoded small at once
                small = _rgb(ImageOps.exif_transpose(picture))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise NoPicture("the picture is too large to show") from None
    except Exception:  # a decoder may raise anything on a hostile file; the page goes on without it
        raise NoPicture("the picture cannot be read") from None
    small.thumbnail((side, side))
    kind = "PNG" if max(small.size) <= 64 else "JPEG"  # tiny pictures keep every pixel
    data = io.BytesIO()
    small.save(data, kind, quality=82)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(data.getvalue()).decode()}"
