"""Picture files through a model: decoded in worker processes while this one encodes, batch by batch."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import prod
from typing import Any

from bitscale.arrays import Pixels
from bitscale.codes import Codes, Relaxed
from bitscale.data.images import as_images, uniform
from bitscale.errors import InputError, UnreadablePicture
from bitscale.hashers.base import Hasher
from bitscale.pictures.arrays import Picture, fit_pixels
from bitscale.pictures.decode import LIMITS, Limits
from bitscale.pictures.form import Form
from bitscale.pictures.pool import Pool
from bitscale.pictures.workers import decode_files

BATCH = 512  # pictures at most
_BYTES = 16 << 20  # of decoded pictures in a batch, about
_SECONDS = 5.0  # a batch that fills slowly is closed after these


@dataclass(frozen=True)
class Batch:
    """Some of the paths, by their places in the list: those encoded, with their codes, and those that are broken."""

    places: list[int]
    pictures: list[Picture]
    codes: Any  # Codes; Embeddings of a hasher without bits
    broken: list[tuple[int, UnreadablePicture]]
    relaxed: Relaxed | None = None  # where that was asked for

    def __len__(self) -> int:
        return len(self.places) + len(self.broken)


def encode_files(
    hasher: Hasher,
    paths: Sequence[str],
    *,
    workers: int | None = None,
    batch: int | None = None,
    limits: Limits = LIMITS,
    pool: Pool | None = None,
    places: bool = False,
    relax: bool = False,
) -> Generator[Batch, None, None]:
    """Encode files in order; whatever is wrong with one costs that one. Close the iterator to end the workers.

    With a `pool` its workers decode, under its limits, and go on to wait there. `places` reads from EXIF where a
    picture was taken, too; `relax`, for queries, gives the codes before the sign, and no hashes of the files.
    """
    form = hasher.picture_form
    size = batch or _batch_size(form)
    rows: list[int] = []
    pictures: list[Picture] = []
    broken: list[tuple[int, UnreadablePicture]] = []
    how: dict[str, Any] = {"workers": workers, "limits": limits, "pool": pool, "places": places, "hashed": not relax}
    with closing(decode_files(paths, form, **how)) as results:
        start = time.monotonic()
        for place, result in enumerate(results):
            if isinstance(result, Picture):
                rows.append(place)
                pictures.append(result)
            else:
                broken.append((place, result))
            full = len(rows) + len(broken) >= size or time.monotonic() - start > _SECONDS
            if full or place + 1 == len(paths):
                images = uniform([one.pixels for one in pictures])
                codes, relaxed = hasher.encode_both(images) if relax else (hasher.encode(images), None)
                yield Batch(rows, pictures, codes, broken, relaxed)
                rows, pictures, broken = [], [], []
                start = time.monotonic()


def encode_images(hasher: Hasher, images: Sequence[Pixels]) -> Codes:
    """The codes of images of any size, brought to the form the model takes as files are."""
    return encode_images_both(hasher, images)[0]


def encode_images_both(hasher: Hasher, images: Sequence[Pixels]) -> tuple[Codes, Relaxed]:
    """The codes of images of any size, and these before the sign."""
    check_takes_pictures(hasher)
    lazy = as_images(list(images))
    return hasher.encode_both(uniform([fit_pixels(lazy[i], hasher.picture_form) for i in range(len(lazy))]))


def check_takes_pictures(hasher: Hasher) -> None:
    """Refuse a model whose codes are no bits, or that takes vectors."""
    if not hasher.binary:
        raise InputError(f"{hasher.name} gives real values, not codes. Take a hasher with codes, such as nested.")
    _ = hasher.picture_form


def _batch_size(form: Form) -> int:
    each = prod(form.size) * form.channels if form.size else _BYTES // 8
    return max(min(BATCH, _BYTES // each), 8)
