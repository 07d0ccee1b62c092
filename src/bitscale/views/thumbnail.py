"""Picture files as small data: URIs, upright, read in worker processes under the limits of all pictures."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from contextlib import closing

from bitscale.errors import UnreadablePicture
from bitscale.pictures.pool import Pool
from bitscale.pictures.workers import draw_small

SIDE = 192  # pixels at most


def thumbnails(paths: Iterable[str], pool: Pool | None = None) -> dict[str, str | UnreadablePicture]:
    """For every path its picture, at most SIDE pixels wide and high, or the error that says why there is none."""
    files = list(dict.fromkeys(paths))
    with closing(draw_small(files, SIDE, pool=pool)) as copies:
        return {
            path: copy if isinstance(copy, UnreadablePicture) else data_uri(copy.data, copy.format)
            for path, copy in zip(files, copies, strict=True)
        }


def data_uri(data: bytes, kind: str) -> str:
    """A picture file as text that stands in a page in its place."""
    return f"data:image/{kind.lower()};base64,{base64.b64encode(data).decode()}"
