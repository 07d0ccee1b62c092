"""A picture file as a small data: URI, upright."""

from __future__ import annotations

import base64
import io

from bitscale.data.decode import Limits, read_small

SIDE = 192  # pixels at most
LIMITS = Limits(pixels=80_000_000, file=1 << 28)  # decoded in this process
TINY = 64  # pictures up to this keep every pixel


def thumbnail(path: str, side: int = SIDE) -> str:
    """The picture at a path, at most `side` pixels wide and high; raises UnreadablePicture."""
    small = read_small(path, side, LIMITS)
    kind = "PNG" if max(small.size) <= TINY else "JPEG"
    data = io.BytesIO()
    small.save(data, kind, quality=82)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(data.getvalue()).decode()}"
