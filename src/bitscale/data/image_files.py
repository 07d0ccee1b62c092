"""Images that are files of any usual format and size, decoded when asked for, in workers under limits."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from bitscale.arrays import Int, Pixels
from bitscale.data.images import Rows
from bitscale.data.labelled import Images
from bitscale.errors import DataError, UnreadablePicture
from bitscale.pictures.pool import Pool
from bitscale.pictures.workers import decode_files


class FileImages:
    """Image files below a folder, each turned upright (EXIF) and given as (H, W, 3)."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self.names = folder, names
        self._pool = Pool()  # a worker that stays warm; it ends with this

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> Pixels:
        return read_image(self.folder / self.names[i], self._pool)

    def take(self, rows: Int) -> Images:
        """A lazy view of some rows."""
        return Rows(self, rows)

    @cached_property
    def fingerprint(self) -> str:
        """Names, sizes and times of change: the files are not read."""
        digest = hashlib.sha256()
        for name in self.names:
            try:
                status = (self.folder / name).stat()
            except OSError as error:
                raise DataError(f"{self.folder / name} cannot be read ({error.strerror}). Was it moved?") from error
            digest.update(os.fsencode(name) + f"\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
        return digest.hexdigest()


def read_image(path: Path, pool: Pool | None = None) -> Pixels:
    """One image file as (H, W, 3) uint8, upright; transparency is laid on white."""
    [picture] = decode_files([str(path)], pool=pool)
    if isinstance(picture, UnreadablePicture):
        raise picture
    return picture.pixels
