"""Pictures by id: the file as it was taken in, or a small copy of it; never anything else of this machine."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections import OrderedDict
from contextlib import closing

from starlette.responses import Response

from bitscale.collection import Collection, Item
from bitscale.collection.store.rows import is_below
from bitscale.errors import UnreadablePicture
from bitscale.pictures.decode import LIMITS, Small
from bitscale.pictures.pool import Pool
from bitscale.pictures.workers import draw_small
from bitscale.server.answers import NotFound, refused_for
from bitscale.server.homes import Home

KINDS = {  # how a picture file begins: what it is sent as
    b"\xff\xd8\xff": "image/jpeg",
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
    b"II*\0": "image/tiff",
    b"MM\0*": "image/tiff",
    b"RIFF": "image/webp",
}
BRANDS = {b"avif": "image/avif", b"avis": "image/avif", b"heic": "image/heic", b"heix": "image/heic"}
UNKNOWN = "application/octet-stream"
HEADERS = {
    "Cache-Control": "private, max-age=300",
    "Content-Security-Policy": "default-src 'none'; sandbox",  # should a browser show it as a page
}
GONE = "item {} has no picture to show: its file is not there any more, or holds another picture by now."


def picture_of(home: Home, photos: Collection, id: int) -> Response:
    """The file of an item, byte by byte what was taken in."""
    data = taken_in(photos.item(id), home.roots(photos))
    return Response(data, media_type=kind_of(data), headers=HEADERS)


def kind_of(data: bytes) -> str:
    """The media type of a file, by its first bytes."""
    if data[4:8] == b"ftyp":
        return BRANDS.get(data[8:12], UNKNOWN)
    if data[:1] == b"P" and data[1:2] in b"123456" and data[2:3].isspace():
        return "image/x-portable-anymap"
    return next((kind for start, kind in KINDS.items() if data.startswith(start)), UNKNOWN)


def taken_in(item: Item, roots: list[str]) -> bytes:
    """The bytes of an item's file, if they are those that were taken in.

    Links are resolved first: what they lead to must be a regular file below a folder that was taken in, or be the very
    file that was. Its content must be the item's, so that no file that took its place is ever given out.
    """
    gone = NotFound(GONE.format(item.id))
    if not item.path or item.content is None:
        raise gone
    real = os.path.realpath(item.path)
    itself = os.path.join(os.path.realpath(os.path.dirname(item.path)), os.path.basename(item.path))
    if real != itself and not any(is_below(real, os.path.realpath(root)) for root in roots):
        raise gone
    try:
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise gone from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size != item.size or status.st_size > LIMITS.file:
            raise gone
        data = file.read(item.size + 1)
    if hashlib.sha256(data).digest() != item.content:
        raise gone
    return data


class Thumbnails:
    """Small copies, the latest kept in memory; drawn by workers of our own."""

    def __init__(self, most_bytes: int = 64 << 20) -> None:
        self._kept: OrderedDict[tuple[bytes, int], Small] = OrderedDict()
        self._bytes, self._most = 0, most_bytes
        self._lock = threading.Lock()
        self._pool = Pool()

    def of(self, home: Home, photos: Collection, id: int, side: int) -> Response:
        """A small copy of an item's picture."""
        item = photos.item(id)
        small = None if item.content is None else self._known((item.content, side))
        if small is None:
            small = self._drawn(item, home.roots(photos), side)
        return Response(small.data, media_type=f"image/{small.format.lower()}", headers=HEADERS)

    def close(self) -> None:
        """End the workers."""
        self._pool.close()

    def _known(self, key: tuple[bytes, int]) -> Small | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _drawn(self, item: Item, roots: list[str], side: int) -> Small:
        taken_in(item, roots)
        with closing(draw_small([item.path], side, pool=self._pool)) as copies:
            small = next(copies)
        if isinstance(small, UnreadablePicture):
            raise refused_for(small)
        assert item.content is not None
        with self._lock:
            self._bytes += len(small.data) - len(self._kept.pop((item.content, side), Small(b"", "")).data)
            self._kept[item.content, side] = small
            while self._bytes > self._most:
                self._bytes -= len(self._kept.popitem(last=False)[1].data)
        return small
