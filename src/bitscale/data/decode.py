"""One picture file in, upright uint8 pixels as a model takes them out, with what is to be known of the file.

Only formats of the list below are tried. A file is read once: what is hashed is what is decoded. Large JPEGs are
decoded at a fraction of their size where the model needs no more (never below twice what it needs).
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import warnings
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bitscale.errors import UnreadablePicture

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "HEIF", "PPM")
SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".pnm"}
    | {".avif", ".heic", ".heif", ".hif"}
)
_PLUGINS = ("Jpeg", "Png", "WebP", "Gif", "Bmp", "Tiff", "Avif", "Ppm")
_ORIENTATION = 0x0112  # in EXIF
_ROOM = 2  # a JPEG is decoded at this many times the size needed, at least
_LONGEST_REASON = 160


@dataclass(frozen=True)
class Form:
    """How a model takes pictures: `size` (height, width) or None for their own; 3 channels, or 1 for grey.

    With `middle` the middle square is taken and brought to `size`, else all of the picture is stretched to it.
    """

    size: tuple[int, int] | None = None
    channels: int = 3
    middle: bool = False


@dataclass(frozen=True)
class Limits:
    """What one picture may cost before it is given up."""

    seconds: float = 30.0  # by the clock, in a worker
    memory: int = 2 << 30  # bytes of a worker's address space
    pixels: int = 178_956_970  # where Pillow itself takes a picture for an attack
    file: int = 1 << 30  # bytes


@dataclass(frozen=True)
class Picture:
    """A decoded picture: pixels (H, W, C), and its file's sha256, size, time of change (ns), format and dimensions."""

    pixels: NDArray[np.uint8]
    content: bytes
    size: int
    modified: int
    format: str
    width: int
    height: int


AS_IT_IS = Form()
LIMITS = Limits()


def read_picture(path: str | os.PathLike[str], form: Form = AS_IT_IS, limits: Limits = LIMITS) -> Picture:
    """Decode one file in this process, or raise UnreadablePicture."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's about metadata, and about sizes, which are checked here
        return decode(os.fspath(path), form, limits)


def decode(path: str, form: Form, limits: Limits) -> Picture:
    """As `read_picture`, warnings and all: for workers, which have none to disturb."""
    data, facts = _read(path, limits.file)
    content = hashlib.sha256(data).digest()
    try:
        picture, kind, size = _open(data, path, form, limits.pixels)
        shown = _fit(_colour(_upright(picture), form.channels), form)
    except UnreadablePicture:
        raise
    except MemoryError as error:
        raise UnreadablePicture(path, "needs more memory than a picture may. Make a smaller copy.") from error
    except Exception as error:  # what Pillow's decoders raise on broken files is of every kind
        said = f"cannot be read as an image ({_reason(error)}). It is damaged or not an image."
        raise UnreadablePicture(path, said) from error
    pixels = np.array(shown)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    return Picture(pixels, content, facts.st_size, max(facts.st_mtime_ns, 0), kind, *size)


def read_small(path: str | os.PathLike[str], side: int, limits: Limits = LIMITS) -> Image.Image:
    """The whole picture in colour and upright, at most `side` pixels high and wide: to look at."""
    name = os.fspath(path)
    data, _ = _read(name, limits.file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            small = _colour(_upright(_open(data, name, Form((side, side)), limits.pixels)[0]), 3)
            small.thumbnail((side, side))
            return small
    except UnreadablePicture:
        raise
    except Exception as error:  # as above; MemoryError is one of them
        raise UnreadablePicture(name, f"cannot be read as an image ({_reason(error)}).") from error


def fit_pixels(image: NDArray[np.uint8], form: Form) -> NDArray[np.uint8]:
    """An image (H, W), (H, W, 1) or (H, W, 3) as a model takes pictures: (H', W', C)."""
    from PIL import Image

    grey = image.ndim == 2 or image.shape[2] == 1
    picture = Image.fromarray(image.reshape(image.shape[:2]) if grey else image)
    pixels = np.asarray(_fit(_colour(picture, form.channels), form))
    return pixels[..., None] if pixels.ndim == 2 else pixels


@cache
def readable_formats() -> tuple[str, ...]:
    """Those of `FORMATS` that Pillow reads here; HEIF where pillow-heif is installed."""
    from PIL import Image

    for name in _PLUGINS:
        with suppress(ImportError):
            import_module(f"PIL.{name}ImagePlugin")
    with suppress(ImportError):
        import_module("pillow_heif").register_heif_opener()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _read(path: str, most: int) -> tuple[bytes, os.stat_result]:
    """The whole file and its facts from before it was read: a change while reading shows in the next scan."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(handle, "rb", buffering=0) as file:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode):
                raise UnreadablePicture(path, "is not a file but something else (a folder, pipe or device).", False)
            if facts.st_size > most:
                raise UnreadablePicture(
                    path,
                    f"is larger than is safe to read ({facts.st_size:,} bytes, {most:,} allowed). Make it smaller.",
                )
            data = file.read()
    except FileNotFoundError as error:
        raise UnreadablePicture(path, "is not there any more. Was it moved?", False) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise UnreadablePicture(path, f"cannot be opened ({_reason(error)}).", False) from error
    except MemoryError as error:
        raise UnreadablePicture(path, "needs more memory than a picture may. Make a smaller copy.") from error
    if not data:
        raise UnreadablePicture(path, "cannot be read as an image (it is empty).")
    return data, facts


def _open(data: bytes, path: str, form: Form, most: int) -> tuple[Image.Image, str, tuple[int, int]]:
    """The picture, loaded; its format; and its width and height as stored."""
    from PIL import Image, UnidentifiedImageError

    try:
        picture = Image.open(io.BytesIO(data), formats=readable_formats())
    except UnidentifiedImageError as error:
        kinds = ", ".join(readable_formats())
        known = (
            "HEIC needs pillow-heif: pip install pillow-heif" if _is_heif(data) else f"its format is none of {kinds}"
        )
        raise UnreadablePicture(path, f"cannot be read as an image ({known}).") from error
    except Image.DecompressionBombError as error:
        told = f"more than {most:,} pixels"
        raise UnreadablePicture(path, f"is larger than is safe to decode ({told}). Make it smaller.") from error
    size = picture.size
    if size[0] * size[1] > most:
        told = f"{size[0]:,} x {size[1]:,} pixels, {most:,} in all allowed"
        raise UnreadablePicture(path, f"is larger than is safe to decode ({told}). Make it smaller.")
    if form.size is not None and picture.format in ("JPEG", "MPO"):
        height, width = (n * _ROOM for n in form.size)
        wanted = (height, width) if _orientation(picture) > 4 else (width, height)
        picture.draft("L" if form.channels == 1 else None, wanted)
    picture.load()
    return picture, picture.format or "", size


def _is_heif(data: bytes) -> bool:
    return data[4:8] == b"ftyp" and data[8:12] in (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1")


def _orientation(picture: Image.Image) -> int:
    """1 to 8 as EXIF has it; a damaged EXIF block is no reason to lose a picture."""
    try:
        found = picture.getexif().get(_ORIENTATION, 1)
        return found if isinstance(found, int) and 1 <= found <= 8 else 1
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


def _colour(picture: Image.Image, channels: int) -> Image.Image:
    """In colour or grey with 8 bits a channel, transparency laid on white."""
    from PIL import Image

    mode = "L" if channels == 1 else "RGB"
    if picture.mode.startswith(("I", "F")):  # 16 or 32 bits of grey: convert() would clip them at 255
        grey = np.nan_to_num(np.asarray(picture).astype(np.float64))
        top = grey.max(initial=0)
        scale = 255 / 65535 if top > 255 else 255.0 if picture.mode == "F" and top <= 1 else 1.0
        picture = Image.fromarray(np.clip(grey * scale, 0, 255).astype(np.uint8))
    elif "A" in picture.getbands() or "a" in picture.getbands() or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return picture if picture.mode == mode else picture.convert(mode)


def _fit(picture: Image.Image, form: Form) -> Image.Image:
    from PIL.Image import Resampling

    if form.size is None:
        return picture
    width, height = picture.size
    if form.middle and width != height:
        side = min(width, height)
        left, top = (width - side) // 2, (height - side) // 2
        picture = picture.crop((left, top, left + side, top + side))
    wanted = (form.size[1], form.size[0])
    return picture if picture.size == wanted else picture.resize(wanted, Resampling.BILINEAR)


def _reason(error: Exception) -> str:
    """What an error says, in one short line."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.strerror or errno.errorcode.get(error.errno, "input/output error")
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= _LONGEST_REASON else said[: _LONGEST_REASON - 3] + "..."
