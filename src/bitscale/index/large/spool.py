"""Arrays on disk that grow at their end and are read in slices, and the folder they live in while a build runs.

They are read and written, never mapped: what a build holds in memory is what it asked for.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bitscale.errors import CorruptFile

AT_ONCE = 1 << 30  # bytes to one call of the system
ENDING = ".building"


@contextmanager
def scratch_beside(path: Path) -> Iterator[Path]:
    """A folder of a build of `path`, gone afterwards; those that killed builds of it left are removed first."""
    start = f".{path.name[:40]}."
    for left in path.parent.glob(f"{_literal(start)}*{ENDING}"):
        with suppress(OSError), _locked(left):  # whose owner is gone is free
            shutil.rmtree(left)
    folder = path.with_name(f"{start}{secrets.token_hex(6)}{ENDING}")
    folder.mkdir()
    try:
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _literal(name: str) -> str:
    """A name as a pattern that matches itself alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


class Spool:
    """Rows of one shape in a file of their own."""

    def __init__(self, path: Path, dtype: DTypeLike, inner: tuple[int, ...] = ()) -> None:
        self.path, self.dtype, self.inner = path, np.dtype(dtype), inner
        self.row_bytes = self.dtype.itemsize * int(np.prod(inner, dtype=np.int64))
        self.rows = 0
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)

    def append(self, array: NDArray[Any]) -> None:
        """Put rows behind those that are there."""
        write_at(self._handle, np.ascontiguousarray(array, self.dtype), self.rows * self.row_bytes)
        self.rows += len(array)

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """The rows [begin, end)."""
        rows = np.empty((end - begin, *self.inner), self.dtype)
        self.read_into(rows, begin)
        return rows

    def read_into(self, rows: NDArray[Any], begin: int) -> None:
        """Fill `rows` with those from `begin` on."""
        read_at(self._handle, rows, begin * self.row_bytes)

    def remove(self) -> None:
        """Give the space back."""
        os.close(self._handle)
        self.path.unlink()


def write_at(handle: int, array: NDArray[Any], at: int) -> None:
    """Write a contiguous array to a place in a file."""
    data = array.reshape(-1).view(np.uint8).data
    while data:
        written = os.pwrite(handle, data[:AT_ONCE], at)
        data, at = data[written:], at + written


def read_at(handle: int, array: NDArray[Any], at: int) -> None:
    """Fill a contiguous array from a place in a file."""
    data = array.reshape(-1).view(np.uint8).data
    while data:
        got = os.preadv(handle, [data[:AT_ONCE]], at)
        if not got:
            raise CorruptFile("a file of this build was cut short by something else. Build again.")
        data, at = data[got:], at + got
