"""Looks as arrays, the eight ways to lay a picture down, and a perceptual hash by which candidates are found.

The hash is pHash's: the signs of the 64 lowest waves (a cosine transform of 32x32 grey levels) about their median. A
mirrored or turned copy has the hash of the picture mirrored or turned, so that one side's eight hashes are looked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Float32
from bitscale.errors import CorruptFile
from bitscale.pictures.look import COLOUR_SIDE, LOOK_BYTES, SIDE

U8 = NDArray[np.uint8]
HASH_BITS = 64
_LOWEST = 8  # waves across and down
FORMS = (  # how a copy lies, turned to the left: each is left out of its name where it is as the other
    "",
    "mirrored",
    "upside down",
    "turned by 180 degrees",
    "mirrored and turned",
    "turned by 90 degrees",
    "turned by 270 degrees",
    "mirrored and turned",
)
UNDONE = {5: 6, 6: 5}  # how the other lies, seen from the copy; the other forms undo themselves


@dataclass(frozen=True, eq=False)
class Looks:
    """The looks of some pictures, and their sizes in full."""

    raw: U8  # (n, LOOK_BYTES) as `pictures.look` makes them
    width: NDArray[np.int64]
    height: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.raw)

    def __getitem__(self, rows: NDArray[np.int64]) -> Looks:
        return Looks(self.raw[rows], self.width[rows], self.height[rows])

    @property
    def grey(self) -> Float32:
        """Grey levels, (n, SIDE, SIDE)."""
        return self.raw[:, : SIDE * SIDE].reshape(-1, SIDE, SIDE).astype(np.float32)

    @property
    def colours(self) -> Float32:
        """Blue and red against grey, 0 where there is no colour: (n, COLOUR_SIDE, COLOUR_SIDE, 2)."""
        both = self.raw[:, SIDE * SIDE :].reshape(-1, 2, COLOUR_SIDE, COLOUR_SIDE).astype(np.float32) - 128
        return np.moveaxis(both, 1, 3)


def looks_of(blobs: Sequence[bytes], sizes: Sequence[tuple[int, int]]) -> Looks:
    """Looks from the bytes they are kept as, and (width, height) of each picture."""
    if any(len(blob) != LOOK_BYTES for blob in blobs):
        raise CorruptFile("the look of a picture is cut short. Restore the collection from a backup.")
    raw = np.frombuffer(b"".join(blobs), np.uint8).reshape(len(blobs), LOOK_BYTES)
    both = np.array(sizes, np.int64).reshape(-1, 2)
    return Looks(raw, both[:, 0], both[:, 1])


def laid(pictures: Float32, form: int) -> Float32:
    """Square pictures (n, S, S, ...) laid down in one of the eight ways."""
    if form >= 4:
        pictures = pictures.swapaxes(1, 2)
    if form & 2:
        pictures = pictures[:, ::-1]
    return pictures[:, :, ::-1] if form & 1 else pictures


def each_laid(pictures: Float32, forms: NDArray[np.int64]) -> Float32:
    """Every picture turned or mirrored in a way of its own."""
    new = np.empty_like(pictures)
    for form in np.unique(forms).tolist():
        rows = forms == form
        new[rows] = laid(pictures[rows], form)
    return new


def perceptual_hashes(grey: Float32) -> U8:
    """64 bits of each picture's grey levels (n, SIDE, SIDE), packed: (n, 8)."""
    place, wave = np.arange(SIDE), np.arange(_LOWEST)
    cosines = np.cos(np.pi * wave[:, None] * (2 * place + 1) / (2 * SIDE)).astype(np.float32)  # (8, SIDE)
    waves = (cosines @ grey @ cosines.T).reshape(len(grey), HASH_BITS)
    return np.packbits(waves > np.median(waves, axis=1, keepdims=True), axis=1)
