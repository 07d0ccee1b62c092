"""Images that are read when asked for: rows of an array or records of a file, views of them, several joined."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property
from io import RawIOBase
from pathlib import Path

import numpy as np

from bitscale.arrays import Int, Pixels
from bitscale.data.labelled import Images
from bitscale.errors import DataError, InputError
from bitscale.pictures.arrays import fit_pixels
from bitscale.pictures.form import Form

_HASH_CHUNK = 1 << 24  # bytes hashed at a time, so that a mapped file is not drawn into memory at once


class ArrayImages:
    """Images that are rows of one uint8 array, in memory or mapped: (n, H, W), (n, H, W, C).

    With `planar` the array is (n, C, H, W), as CIFAR stores it; images still come out as (H, W, C).
    """

    def __init__(self, pixels: Pixels, *, planar: bool = False) -> None:
        if pixels.dtype != np.uint8 or pixels.ndim not in (3, 4):
            raise InputError(
                "images must be a uint8 array of shape (n, H, W) or (n, H, W, C). "
                f"Got {pixels.dtype} of shape {pixels.shape}; values from 0 to 1 become pixels by "
                "(255 * values).round().astype(np.uint8), once NaN is repaired."
            )
        view = pixels[..., None] if pixels.ndim == 3 else pixels.transpose(0, 2, 3, 1) if planar else pixels
        if view.shape[3] not in (1, 3):
            raise InputError(f"images must have 1 or 3 channels. Got {view.shape[3]} (shape {pixels.shape}).")
        self.pixels: Pixels = view  # (n, H, W, C)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, i: int) -> Pixels:
        return np.ascontiguousarray(self.pixels[i])

    def take(self, rows: Int) -> Images:
        """A lazy view of some rows."""
        return Rows(self, rows)

    def batch(self, rows: Int) -> Pixels:
        """Several images at once: (m, H, W, C)."""
        return np.ascontiguousarray(self.pixels[rows])

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of shape and pixels."""
        digest = hashlib.sha256(repr(self.pixels.shape).encode())
        step = max(1, _HASH_CHUNK // max(1, self.pixels[:1].size))
        for start in range(0, len(self), step):
            digest.update(np.ascontiguousarray(self.pixels[start : start + step]).data)
        return digest.hexdigest()


class RecordImages:
    """Images in a file of equal records: `skip` bytes of something else, then the pixels.

    Only the records asked for are read, so memory stays flat however large the file is; a mapping would not do, since
    the kernel keeps pages around those touched. `shape` is that of one image as stored: (H, W), (H, W, C) or,
    `planar`, (C, H, W).
    """

    def __init__(
        self, path: Path, shape: tuple[int, ...], *, offset: int = 0, skip: int = 0, planar: bool = False
    ) -> None:
        self.path, self.shape, self.offset, self.skip, self.planar = path, shape, offset, skip, planar
        self.record = skip + int(np.prod(shape))
        length, spare = divmod(path.stat().st_size - offset, self.record)
        if spare or length < 0:
            raise DataError(
                f"{path} must hold records of {self.record} bytes after the first {offset}. {spare} are "
                "left over: it is cut short or not this format. Fetch it again."
            )
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> Pixels:
        if not -self.length <= i < self.length:
            raise IndexError(f"image {i} of {self.length}")
        image: Pixels = self.batch(np.array([i % self.length]))[0]
        return image

    def take(self, rows: Int) -> Images:
        """A lazy view of some rows."""
        return Rows(self, rows)

    def batch(self, rows: Int) -> Pixels:
        """Several images at once: (m, H, W, C)."""
        records = np.empty((len(rows), self.record), np.uint8)
        rows = np.asarray(rows, np.int64)
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1  # consecutive rows are read at once
        with self.path.open("rb", buffering=0) as file:
            for begin, end in itertools.pairwise([0, *breaks.tolist(), len(rows)]):
                if begin < end:
                    self._fill(file, records[begin:end], int(rows[begin]))
        pixels = records[:, self.skip :].reshape(-1, *self.shape)
        if len(self.shape) == 2:
            return pixels[..., None]
        return np.ascontiguousarray(pixels.transpose(0, 2, 3, 1)) if self.planar else pixels

    def _fill(self, file: RawIOBase, records: Pixels, first: int) -> None:
        """Read consecutive records."""
        file.seek(self.offset + first * self.record)
        rest = records.data.cast("B")
        while rest:
            read = file.readinto(rest)
            if not read:
                raise DataError(f"{self.path} became shorter while it was read. Fetch it again.")
            rest = rest[read:]

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of the whole file, and how it is read."""
        digest = hashlib.sha256(repr((self.shape, self.offset, self.skip, self.planar)).encode())
        with self.path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()


class ListImages:
    """Images of a Python sequence, sizes may differ; each (H, W) or (H, W, C) uint8."""

    def __init__(self, items: Sequence[Pixels]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Pixels:
        image = np.asarray(self.items[i])
        if image.dtype != np.uint8 or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
            raise InputError(
                f"an image must be uint8 of shape (H, W), (H, W, 1) or (H, W, 3). "
                f"Image {i} is {image.dtype} of shape {image.shape}."
            )
        return image[..., None] if image.ndim == 2 else image

    def take(self, rows: Int) -> Images:
        """A lazy view of some rows."""
        return Rows(self, rows)

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of all shapes and pixels."""
        digest = hashlib.sha256()
        for i in range(len(self)):
            image = self[i]
            digest.update(repr(image.shape).encode() + np.ascontiguousarray(image).tobytes())
        return digest.hexdigest()


class Rows:
    """A lazy view of some rows of other images."""

    def __init__(self, base: Images, rows: Int) -> None:
        rows = np.asarray(rows, np.int64)
        if rows.size and not 0 <= rows.min() <= rows.max() < len(base):
            raise InputError(f"rows must lie between 0 and {len(base) - 1}. Got {rows.min()} to {rows.max()}.")
        self.base, self.rows = base, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> Pixels:
        return self.base[int(self.rows[i])]

    def take(self, rows: Int) -> Images:
        """A lazy view of some rows, straight onto the images this is a view of."""
        return Rows(self.base, self.rows[rows])

    def batch(self, rows: Int) -> Pixels | list[Pixels]:
        """Several images at once."""
        return read(self.base, self.rows[rows])

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the images and which rows of them are taken."""
        return hashlib.sha256(self.base.fingerprint.encode() + self.rows.tobytes()).hexdigest()


class Joined:
    """Several lots of images, one after the other."""

    def __init__(self, parts: Sequence[Images]) -> None:
        self.parts = tuple(parts)
        self.starts: Int = np.cumsum([0, *(len(part) for part in self.parts)]).astype(np.int64)  # (n_parts + 1,)

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, i: int) -> Pixels:
        if i < 0:
            i += len(self)
        if not 0 <= i < len(self):
            raise IndexError(f"image {i} of {len(self)}")
        part = int(np.searchsorted(self.starts, i, "right")) - 1
        return self.parts[part][i - int(self.starts[part])]

    def take(self, rows: Int) -> Images:
        """A lazy view of some rows."""
        return Rows(self, rows)

    def batch(self, rows: Int) -> Pixels | list[Pixels]:
        """Several images at once, each part asked once."""
        owner = np.searchsorted(self.starts, rows, "right") - 1
        images: list[Pixels | None] = [None] * len(rows)
        for part in np.unique(owner):
            where = np.flatnonzero(owner == part)
            for place, image in zip(where, read(self.parts[part], rows[where] - self.starts[part]), strict=True):
                images[place] = image
        return uniform([image for image in images if image is not None])

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the images of all parts, in their order."""
        return hashlib.sha256("".join(part.fingerprint for part in self.parts).encode()).hexdigest()


class Resized:
    """Images brought to one size when read: `size` is (height, width)."""

    def __init__(self, images: Images, size: tuple[int, int]) -> None:
        if min(size) < 1:
            raise InputError(f"a size must be (height, width), both at least 1. Got {size}.")
        self.images, self.size = images, size

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> Pixels:
        return resize(self.images[i], self.size)

    def take(self, rows: Int) -> Images:
        """A lazy view of some rows."""
        return Resized(self.images.take(rows), self.size)

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the images and the size they are brought to."""
        return hashlib.sha256(f"{self.images.fingerprint} {self.size}".encode()).hexdigest()


def resize(image: Pixels, size: tuple[int, int]) -> Pixels:
    """One image (H, W, C) at another (height, width), antialiased."""
    return fit_pixels(image, Form(size, image.shape[2]))


def uniform(images: list[Pixels]) -> Pixels | list[Pixels]:
    """One array where all images have one shape, else the list."""
    return np.stack(images) if len({image.shape for image in images}) == 1 else images


def read(images: Images, rows: Int) -> Pixels | list[Pixels]:
    """Some images now: (m, H, W, C) where they have one size, else a list."""
    batch = getattr(images, "batch", None)
    if batch is not None:
        images_read: Pixels | list[Pixels] = batch(np.asarray(rows, np.int64))
        return images_read
    return uniform([images[int(i)] for i in rows])


def batches(images: Images, size: int) -> Iterator[Pixels | list[Pixels]]:
    """All images, `size` at a time."""
    for start in range(0, len(images), size):
        yield read(images, np.arange(start, min(start + size, len(images))))


def is_lazy(images: object) -> bool:
    """Whether these are images read when asked for; their fingerprint is not computed to find out."""
    return hasattr(type(images), "take") and hasattr(type(images), "fingerprint")


def as_images(images: Images | Sequence[Pixels] | Pixels) -> Images:
    """`images` itself where it is lazy already; an array or a sequence of uint8 images wrapped to be so."""
    if isinstance(images, np.ndarray):
        return ArrayImages(images)
    if getattr(images, "are_vectors", False):
        raise InputError('these are vectors, not images. Use features="none" (--features none) for them.')
    if is_lazy(images):
        return images  # type: ignore[return-value]
    if isinstance(images, Sequence):
        return ListImages(images)
    raise InputError(
        "images must be a uint8 array, a sequence of uint8 arrays, or the images of a dataset. "
        f"Got {type(images).__name__}."
    )
