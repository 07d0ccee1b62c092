"""Pictures of persons: who is on each, which camera took it, and when."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bitscale.arrays import Float, Float32, Int
from bitscale.data.images import ArrayImages, Resized
from bitscale.data.labelled import Images, Labelled
from bitscale.data.origin import Origin
from bitscale.errors import DataError, UnreadablePicture

KEPT_BYTES = 1 << 31  # pictures brought to one size are kept in memory up to this, and read when used beyond


@dataclass(frozen=True)
class People:
    """Pictures with person, camera and time; `names` and `camera_names` are what the numbers stand for."""

    images: Images
    persons: Int  # (n,), rows of `names`
    cameras: Int  # (n,), rows of `camera_names`
    names: tuple[str, ...]
    camera_names: tuple[str, ...]
    times: Float | None = None  # (n,) seconds, NaN where not known
    origin: Origin | None = None
    note: str = ""  # what belongs beside every number: that a part is missing, that a box type is unknown
    paths: tuple[
        str, ...
    ] = ()  # below the root, where pictures are files; of cuhk-03.mat, as they are called extracted
    vectors: Float32 | None = None  # what another network says of each picture, (n, d), where it is to teach

    def __post_init__(self) -> None:
        n = len(self.images)
        for name, rows, known in (("person", self.persons, self.names), ("camera", self.cameras, self.camera_names)):
            if rows.shape != (n,):
                raise DataError(f"every picture needs its {name}. Got {n} pictures, and {name}s of shape {rows.shape}.")
            if n and not 0 <= rows.min() <= rows.max() < len(known):
                raise DataError(f"{name}s must lie between 0 and {len(known) - 1}. Got {rows.min()} to {rows.max()}.")
        if self.times is not None and self.times.shape != (n,):
            raise DataError(f"every picture needs its time, or NaN. Got {n} pictures, {len(self.times)} times.")

    def __len__(self) -> int:
        return len(self.persons)

    @property
    def n_persons(self) -> int:
        """How many persons there are pictures of."""
        return len(np.unique(self.persons))

    @property
    def n_cameras(self) -> int:
        """How many cameras took them."""
        return len(np.unique(self.cameras))

    def take(self, rows: Int) -> People:
        """Some pictures, lazily; names keep their numbers."""
        times = None if self.times is None else self.times[rows]
        paths = tuple(self.paths[int(i)] for i in rows) if self.paths else ()
        return replace(
            self, images=self.images.take(rows), persons=self.persons[rows], cameras=self.cameras[rows],
            times=times, paths=paths, vectors=None if self.vectors is None else self.vectors[rows],
        )  # fmt: skip

    def of(self, persons: Int) -> People:
        """All pictures of some persons."""
        return self.take(np.flatnonzero(np.isin(self.persons, persons)))

    def at(self, size: tuple[int, int]) -> People:
        """The same pictures stretched to `size` (height, width); read once and kept where memory allows.

        Pictures that cannot be read are then left out and counted in `note`.
        """
        small = Resized(self.images, size)
        if len(self) * size[0] * size[1] * 3 > KEPT_BYTES:
            return replace(self, images=small)
        pixels, sound = np.zeros((len(self), *size, 3), np.uint8), np.ones(len(self), bool)
        for i in range(len(self)):
            try:
                pixels[i] = small[i]
            except UnreadablePicture:
                sound[i] = False
        readable = self.take(np.flatnonzero(sound))
        bad = int((~sound).sum())
        unreadable = f"{bad:,} of {len(self):,} pictures cannot be read and were left out." if bad else ""
        note = " ".join(part for part in (self.note, unreadable) if part)
        return replace(readable, images=ArrayImages(pixels[sound] if bad else pixels), note=note)

    def labelled(self) -> Labelled:
        """Persons as classes, with cameras: what a hasher learns from."""
        return Labelled(self.images, self.persons, self.names, self.origin, cameras=self.cameras)
