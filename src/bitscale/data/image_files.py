"""Images that are files of any usual format and size, decoded when asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from bitscale.data.decode import read_picture
from bitscale.data.images import Pixels, Rows
from bitscale.data.splits import Images, Int
from bitscale.errors import DataError


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
                raise DataError(f"{self.folder / name} cannot be read ({error.strerror}). Was it moved?") from error
            digest.update(f"{name}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
        return digest.hexdigest()


def read_image(path: Path) -> Pixels:
    """One image file as (H, W, 3) uint8, upright; transparency is laid on white."""
    return read_picture(path).pixels
