"""Images that are files of any usual format and size, decoded when asked for."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bitscale.data.images import Pixels, Rows
from bitscale.data.splits import Images, Int
from bitscale.errors import DataError

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pnm"}
)


class FileImages:
    """Image files below a folder, each turned upright (EXIF) and given as (H, W, 3)."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self.names = folder, names

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> Pixels:
        return read_image(self.folder / self.names[i])

    def take(self, rows: Int) -> Images:
        """A lazy view of some rows."""
        return Rows(self, rows)

    @cached_property
    def fingerprint(self) -> str:
        """Names, sizes and times of change: the files are not read."""
        digest = hashlib.sha256()
        for name in self.names:
            try:
                facts = (self.folder / name).stat()
            except OSError as error:
                raise DataError(
                    f"{self.folder / name} cannot be read ({error.strerror}). Was it moved?"
                ) from error
            digest.update(f"{name}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
        return digest.hexdigest()


def read_image(path: Path) -> Pixels:
    """One image file as (H, W, 3) uint8, upright; transparency is laid on white."""
    from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as picture:
                return np.array(_rgb(ImageOps.exif_transpose(picture)))
    except FileNotFoundError as error:
        raise DataError(f"{path} is not there any more. Was it moved? Load the dataset again.") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(
            f"{path} is larger than is safe to decode ({error}). Make it smaller or remove it."
        ) from error
    except (
        OSError,
        SyntaxError,
        ValueError,
        EOFError,
        TypeError,
        IndexError,
        OverflowError,
        MemoryError,
    ) as error:
        raise DataError(
            f"{path} cannot be read as an image ({error}). It is damaged or not an image."
        ) from error


def _rgb(picture: Image.Image) -> Image.Image:
    from PIL import Image

    if picture.mode.startswith("I"):  # 16 or 32 bits of grey: convert() would clip them at 255
        grey = np.asarray(picture).astype(np.float64)
        scale = 255 / 65535 if grey.max(initial=0) > 255 else 1.0
        return Image.fromarray(np.clip(grey * scale, 0, 255).astype(np.uint8)).convert("RGB")
    if "A" in picture.getbands() or "transparency" in picture.info:
        layer = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return picture.convert("RGB")
