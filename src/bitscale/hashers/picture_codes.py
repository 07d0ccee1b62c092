"""Picture files through a model: decoded in worker processes while this one encodes, batch by batch."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import prod
from typing import Any

from bitscale.codes import Codes
from bitscale.data.decode import LIMITS, Form, Limits, Picture, fit_pixels, read_picture
from bitscale.data.images import Pixels, as_images, uniform
from bitscale.data.workers import decode_files
from bitscale.errors import InputError, UnreadablePicture
from bitscale.hashers import Hasher

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

    def __len__(self) -> int:
        return len(self.places) + len(self.broken)


def encode_files(
    hasher: Hasher,
    paths: Sequence[str],
    *,
    workers: int | None = None,
    batch: int | None = None,
    limits: Limits = LIMITS,
) -> Generator[Batch, None, None]:
    """Encode files in order; whatever is wrong with one costs that one. Close the iterator to end the workers."""
    form = hasher.picture_form
    size = batch or _batch_size(form)
    places: list[int] = []
    pictures: list[Picture] = []
    broken: list[tuple[int, UnreadablePicture]] = []
    with closing(decode_files(paths, form, workers=workers, limits=limits)) as results:
        start = time.monotonic()
        for place, result in enumerate(results):
            if isinstance(result, Picture):
                places.append(place)
                pictures.append(result)
            else:
                broken.append((place, result))
            full = len(places) + len(broken) >= size or time.monotonic() - start > _SECONDS
            if full or place + 1 == len(paths):
                yield Batch(places, pictures, hasher.encode(uniform([one.pixels for one in pictures])), broken)
                places, pictures, broken = [], [], []
                start = time.monotonic()


def encode_pictures(hasher: Hasher, paths: Sequence[str]) -> Codes:
    """The codes of a few files, decoded in this process as the workers would; the first broken one raises."""
    check_takes_pictures(hasher)
    return hasher.encode(uniform([read_picture(path, hasher.picture_form).pixels for path in paths]))


def encode_images(hasher: Hasher, images: Sequence[Pixels]) -> Codes:
    """The codes of images of any size, brought to the form the model takes as files are."""
    check_takes_pictures(hasher)
    given = as_images(list(images))
    return hasher.encode(uniform([fit_pixels(given[i], hasher.picture_form) for i in range(len(given))]))


def check_takes_pictures(hasher: Hasher) -> None:
    """Refuse a model whose codes are no bits, or that takes vectors."""
    if not hasher.binary:
        raise InputError(f"{hasher.name} gives real values, not codes. Take a hasher with codes, such as nested.")
    _ = hasher.picture_form


def _batch_size(form: Form) -> int:
    each = prod(form.size) * form.channels if form.size else _BYTES // 8
    return max(min(BATCH, _BYTES // each), 8)
