"""The interface of feature extractors: images in, float32 (n, d) out, a batch at a time, cached where asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bitscale.arrays import Float32, Pixels, Progress
from bitscale.data.images import as_images, read
from bitscale.data.labelled import Images
from bitscale.errors import InputError
from bitscale.features.cache import cached_extract
from bitscale.pictures.form import AS_IT_IS, Form
from bitscale.threads import ahead

GIST_VERSION = 2  # the only features whose computation has changed
AnyImages = Images | Sequence[Pixels] | Pixels
Encodable = AnyImages | ArrayLike  # or vectors of one's own, (n, d)


class Features(ABC):
    """An extractor. `dim` is None where it depends on the images (pixels at their own size)."""

    name: str
    dim: int | None
    batch_size: int = 64
    cache: Path | None = None  # where results are kept, None for nowhere
    cacheable: bool = True
    version: int = 1  # of the computation; a model keeps the one it was fitted on
    form: Form = AS_IT_IS  # how picture files are best decoded for it
    takes_words: bool = False  # whether it has `words` too: see `joint`

    @property
    @abstractmethod
    def settings(self) -> str:
        """Everything besides the name that changes the result; part of the cache's key."""

    @abstractmethod
    def compute(self, prepared: Any) -> Float32:
        """The features of one prepared batch: (m, d)."""

    def prepare(self, batch: Pixels | list[Pixels]) -> Any:
        """The first part of the work on a batch, done in another thread while the batch before is computed."""
        return batch

    def load(self) -> None:  # noqa: B027  # most have nothing to load
        """Load what `compute` needs, where that takes time: to be done while something else is waited for."""

    def extract(self, images: AnyImages, progress: Progress | None = None) -> Float32:
        """The features of all images: float32 (n, d); mapped from the cache where there is one."""
        lazy = as_images(images)
        if self.cache is not None and self.cacheable and len(lazy):
            return cached_extract(self, lazy, self.cache, progress)
        vectors: Float32 | None = None
        for start, block in self.blocks(lazy):
            if vectors is None:
                vectors = np.empty((len(lazy), block.shape[1]), np.float32)
            vectors[start : start + len(block)] = block
            if progress:
                progress(start + len(block), len(lazy))
        return np.zeros((0, self.dim or 0), np.float32) if vectors is None else vectors

    def blocks(self, images: Images, start: int = 0) -> Iterator[tuple[int, Float32]]:
        """Pairs of (first row, features of some rows), from `start` on; the next batch is read ahead."""
        starts = range(start, len(images), self.batch_size)
        read_ahead = ahead(lambda at: self._read(images, at), starts, threads=1, most=1)
        for at, batch in zip(starts, read_ahead, strict=True):
            yield at, self.compute(batch)

    def _read(self, images: Images, start: int) -> Any:
        return self.prepare(read(images, np.arange(start, min(start + self.batch_size, len(images)))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings})"


class Given(Features):
    """No extraction: the user's own vectors stand in the place of images (`features="none"`)."""

    name = "none"
    dim = None
    cacheable = False
    settings = ""

    def extract(self, images: Any, progress: Progress | None = None) -> Float32:
        """The vectors themselves, checked: (n, d), finite, as float32."""
        vectors = np.asarray(images)
        if vectors.ndim != 2 or vectors.dtype.kind != "f":
            raise InputError(
                'with features="none" give your own vectors as a float32 array of shape (n, d). '
                f"Got {vectors.dtype} of shape {vectors.shape}; for images choose other features."
            )
        if not np.isfinite(vectors).all():
            raise InputError("the vectors hold NaN or infinity. Clean them before hashing.")
        return np.ascontiguousarray(vectors, np.float32)

    def compute(self, prepared: Any) -> Float32:
        """As `extract`."""
        return self.extract(prepared)
