"""One picture file in, upright uint8 pixels as a model takes them out, with what is to be known of the file.

Only formats of the list below are tried. A file is read once: what is hashed is what is decoded. Large JPEGs are
decoded at a fraction of their size where the model needs no more (never below twice what it needs). Runs in workers,
which hold the limits on time and memory; the limits on pixels, tiles and bytes are held here. Workers start faster
without NumPy, so that nothing here needs it.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bitscale.errors import UnreadablePicture
from bitscale.pictures.exif import read_exif
from bitscale.pictures.form import Form, fit, in_colour
from bitscale.pictures.look import look_of

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "HEIF", "PPM")
SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".pnm"}
    | {".avif", ".heic", ".heif", ".hif"}
)
LEFT_OUT = {  # files of cameras that are no pictures to us: named, not taken in
    **dict.fromkeys((".cr2", ".cr3", ".nef", ".arw", ".dng", ".orf", ".rw2", ".raf", ".pef", ".srw"), "RAW"),
    **dict.fromkeys((".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mts", ".3gp", ".mpg", ".mpeg"), "video"),
}
_PLUGINS = ("Jpeg", "Png", "WebP", "Gif", "Bmp", "Tiff", "Avif", "Ppm")
_ORIENTATION = 0x0112  # in EXIF
_TILE_SIDES = 0x0142, 0x0143  # TIFF's tags for the width and the height of a tile
_ROOM = 2  # a JPEG is decoded at this many times the size needed, at least
_LONGEST_REASON = 160
PATIENCE = 3  # times the seconds a picture may take that its worker may wait for a processor, beside them
TOO_MUCH_MEMORY = "needs more memory than a picture may. Make a smaller copy."


@dataclass(frozen=True)
class Limits:
    """What one picture may cost before it is given up: the same for items, queries and thumbnails."""

    seconds: float = 8.0  # in a worker that has a processor: with all around it a picture takes 10 at most
    memory: int = 2 << 30  # bytes of a worker's address space
    pixels: int = 178_956_970  # of a picture, or of one tile of it: where Pillow itself takes a picture for an attack
    file: int = 1 << 30  # bytes


@dataclass(frozen=True)
class Decoded:
    """A picture as rows of bytes (height, width, channels), and what is known of its file: see `Picture`."""

    data: bytes
    shape: tuple[int, int, int]
    content: bytes
    size: int
    modified: int
    format: str
    width: int
    height: int
    look: bytes = b""  # of the whole picture: see `look`
    exif: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Small:
    """A small copy of a picture to look at: a file of its own."""

    data: bytes
    format: str  # "PNG" or "JPEG"


LIMITS = Limits()
TINY = 64  # pixels: a small copy up to this size keeps every pixel as it is


def decode(path: str, form: Form, limits: Limits, *, places: bool = False, hashed: bool = True) -> Decoded:
    """Decode one file in this process, or raise UnreadablePicture; Pillow's warnings come through.

    `places` reads from its EXIF where it was taken, too; without `hashed` the hash of its content is left out.
    """
    data, status = _read(path, limits.file)
    content = hashlib.sha256(data).digest() if hashed else b""
    with _one_line_errors(path):
        picture, kind, size = _open(data, path, form, limits)
        exif = read_exif(picture, places)
        whole = in_colour(_upright(picture), form.channels)
        shown = fit(whole, form)
        pixels, look = shown.tobytes(), look_of(whole)
    shape = (shown.height, shown.width, form.channels)
    return Decoded(pixels, shape, content, status.st_size, max(status.st_mtime_ns, 0), kind, *size, look, exif)


def small_copy(path: str, side: int, limits: Limits) -> Small:
    """The whole picture in colour and upright, at most `side` pixels high and wide."""
    data, _ = _read(path, limits.file)
    with _one_line_errors(path):
        small = in_colour(_upright(_open(data, path, Form((side, side)), limits)[0]), 3)
        small.thumbnail((side, side))
        kind = "PNG" if max(small.size) <= TINY else "JPEG"
        file = io.BytesIO()
        small.save(file, kind, quality=82)
    return Small(file.getvalue(), kind)


def decoded_image(picture: Image.Image, name: str, limits: Limits = LIMITS) -> Image.Image:
    """An image that the caller opened by Pillow: upright, grey or in colour, transparency laid on white.

    Pillow may not have decoded it yet: that happens here, in this process, within the limit on pixels alone.
    """
    _check_pixels(name, "", picture.size, limits.pixels)
    with _one_line_errors(name):
        picture.load()
        upright = _upright(picture)
        return in_colour(upright, 1 if upright.mode in ("1", "L") else 3)


@contextmanager
def _one_line_errors(path: str) -> Iterator[None]:
    """Whatever Pillow's decoders raise on broken files, which is of every kind, as UnreadablePicture."""
    try:
        yield
    except UnreadablePicture:
        raise
    except MemoryError as error:
        raise UnreadablePicture(path, TOO_MUCH_MEMORY) from error
    except Exception as error:
        said = f"cannot be read as an image ({_reason(error)}). It is damaged or not an image."
        raise UnreadablePicture(path, said) from error


def readable_formats() -> tuple[str, ...]:
    """Those of `FORMATS` that Pillow reads here; HEIF where pillow-heif is installed."""
    there = _formats()
    return tuple(name for name in FORMATS if name in there or (name == "HEIF" and find_spec("pillow_heif")))


def _formats() -> tuple[str, ...]:
    """The formats whose readers are loaded."""
    from PIL import Image

    load_readers()
    return tuple(name for name in FORMATS if name in Image.OPEN)


@cache
def load_readers() -> None:
    """Load the readers of all formats but HEIF."""
    for name in _PLUGINS:
        with suppress(ImportError):
            import_module(f"PIL.{name}ImagePlugin")


@cache
def _load_heif() -> None:
    """Load the reader of HEIF, which few need; it decodes in one thread, as others would take memory for theirs."""
    with suppress(ImportError):
        import_module("pillow_heif").register_heif_opener()
        import_module("pillow_heif.options").__dict__["DECODE_THREADS"] = 1


def _read(path: str, most: int) -> tuple[bytes, os.stat_result]:
    """The whole file and its status from before it was read: a change while reading shows in the next scan."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(handle, "rb", buffering=0) as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise UnreadablePicture(path, "is not a file but something else (a folder, pipe or device).", False)
            if status.st_size > most:
                raise UnreadablePicture(
                    path,
                    f"is larger than is safe to read ({status.st_size:,} bytes, {most:,} allowed). Make it smaller.",
                )
            data = file.read()
    except FileNotFoundError as error:
        raise UnreadablePicture(path, "is not there. Is the path right, or was it moved?", False) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UnreadablePicture(path, f"cannot be opened ({_reason(error)}).", False) from error
    except MemoryError as error:
        raise UnreadablePicture(path, TOO_MUCH_MEMORY) from error
    if not data:
        raise UnreadablePicture(path, "cannot be read as an image (it is empty).")
    return data, status


def _open(data: bytes, path: str, form: Form, limits: Limits) -> tuple[Image.Image, str, tuple[int, int]]:
    """The picture, loaded; its format; and its width and height as stored."""
    from PIL import Image, UnidentifiedImageError

    if _is_heif(data):
        _load_heif()
    try:
        picture = Image.open(io.BytesIO(data), formats=_formats())
    except UnidentifiedImageError as error:
        kinds = ", ".join(readable_formats())
        known = (
            "HEIC needs pillow-heif: pip install 'bitscale[heic]'"
            if _is_heif(data)
            else f"its format is none of {kinds}"
        )
        raise UnreadablePicture(path, f"cannot be read as an image ({known}).") from error
    except Image.DecompressionBombError as error:
        told = f"more than {limits.pixels:,} pixels"
        raise UnreadablePicture(path, f"is larger than is safe to decode ({told}). Make it smaller.") from error
    size = picture.size
    _check_pixels(path, "", size, limits.pixels)
    if picture.format == "TIFF":
        _check_pixels(path, "tiles of ", _tile_size(picture), limits.pixels)
    if form.size is not None and picture.format in ("JPEG", "MPO"):
        height, width = (n * _ROOM for n in form.size)
        wanted = (height, width) if _orientation(picture) > 4 else (width, height)
        picture.draft("L" if form.channels == 1 else None, wanted)
    picture.load()
    return picture, picture.format or "", size


def _check_pixels(path: str, what: str, size: tuple[int, int], most: int) -> None:
    if size[0] * size[1] > most:
        told = f"{what}{size[0]:,} x {size[1]:,} pixels, {most:,} in all allowed"
        raise UnreadablePicture(path, f"is larger than is safe to decode ({told}). Make it smaller.")


def _tile_size(picture: Any) -> tuple[int, int]:
    """Width and height of the tiles that a TIFF says it has; decoding takes memory for a whole one."""
    sides = (picture.tag_v2.get(tag, 0) for tag in _TILE_SIDES)
    width, height = (side if isinstance(side, int) else 0 for side in sides)
    return width, height


def _is_heif(data: bytes) -> bool:
    return data[4:8] == b"ftyp" and data[8:12] in (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")


def _orientation(picture: Image.Image) -> int:
    """1 to 8 as EXIF has it; a damaged EXIF block is no reason to lose a picture."""
    try:
        turn = picture.getexif().get(_ORIENTATION, 1)
        return turn if isinstance(turn, int) and 1 <= turn <= 8 else 1
    except Exception:
        return 1


def _upright(picture: Image.Image) -> Image.Image:
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT, 3: Transpose.ROTATE_180, 4: Transpose.FLIP_TOP_BOTTOM, 5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270, 7: Transpose.TRANSVERSE, 8: Transpose.ROTATE_90,
    }  # fmt: skip
    turn = turns.get(_orientation(picture))
    return picture if turn is None else picture.transpose(turn)


def _reason(error: Exception) -> str:
    """The text of an error, in one short line."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.strerror or errno.errorcode.get(error.errno, "input/output error")
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= _LONGEST_REASON else said[: _LONGEST_REASON - 3] + "..."
