"""The official cuhk-03.mat, read by h5py a picture at a time.

    labeled, detected   1 x 5 cells, one a camera pair; in each, persons x 10 cells of pictures, some of them empty;
                        shots 1 to 5 are of the pair's first camera, 6 to 10 of its second
    testsets            20 cells of 100 x 2 numbers: camera pair and person, both counted from 1

MATLAB stores by columns: everything comes out transposed.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.arrays import Int, Pixels
from bitscale.data.images import Rows
from bitscale.data.labelled import Images
from bitscale.data.origin import whole
from bitscale.data.people import People
from bitscale.errors import DataError

MAT = "cuhk-03.mat"
SHOTS = 10
HDF5 = b"\x89HDF\r\n\x1a\n"
MATLAB_HEADER = 512  # bytes before the HDF5 signature


class MatImages:
    """Pictures in the file, by (pair, person, shot) counted from 0; read when asked for."""

    def __init__(self, path: Path, boxes: str, cells: Int) -> None:
        self.path, self.boxes, self.cells = path, boxes, cells  # (n, 3)

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, i: int) -> Pixels:
        pair, person, shot = (int(part) for part in self.cells[i])
        with _opened(self.path) as file:
            table = file[file[self.boxes][0, pair]]
            picture = np.asarray(file[table[shot, person]])
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[0] != 3:
            raise DataError(f"{self.path}: shot {shot + 1} of person {person + 1} in pair {pair + 1} is no picture.")
        return np.ascontiguousarray(picture.transpose(2, 1, 0))

    def take(self, rows: Int) -> Images:
        """A lazy view of some rows."""
        return Rows(self, rows)

    @cached_property
    def fingerprint(self) -> str:
        """Which pictures of which file: its size and time of change, for it has gigabytes."""
        status = self.path.stat()
        identity = f"{self.boxes} {status.st_size} {status.st_mtime_ns}"
        return hashlib.sha256(identity.encode() + self.cells.tobytes()).hexdigest()


def read_mat(path: Path, boxes: str) -> People:
    """All persons of the file; those named 1-0001 and on are of camera pair 1."""
    cells: list[tuple[int, int, int]] = []
    with _opened(path) as file:
        if boxes not in file:
            raise DataError(f"{path} has no {boxes!r}: it is not cuhk-03.mat. It has {', '.join(file) or 'nothing'}.")
        for pair, reference in enumerate(file[boxes][0]):
            table = file[reference]
            if table.ndim != 2 or table.shape[0] != SHOTS:
                raise DataError(f"{path}: pair {pair + 1} must have {SHOTS} shots a person. Got {table.shape}.")
            for person in range(table.shape[1]):
                shots = (shot for shot in range(SHOTS) if file[table[shot, person]].ndim == 3)
                cells += [(pair, person, shot) for shot in shots]
    if not cells:
        raise DataError(f"{path} holds no picture under {boxes!r}.")
    where = np.array(cells, np.int64)
    names, persons = np.unique([f"{pair + 1}-{person + 1:04d}" for pair, person, _ in cells], return_inverse=True)
    seen, cameras = np.unique([f"{pair + 1}{'AB'[shot // 5]}" for pair, _, shot in cells], return_inverse=True)
    return People(
        MatImages(path, boxes, where),
        persons.astype(np.int64),
        cameras.astype(np.int64),
        tuple(str(name) for name in names),
        tuple(str(name) for name in seen),
        origin=whole("cuhk03", [boxes.encode(), where.tobytes()]),
        paths=tuple(f"{p + 1}_{one + 1:03d}_{shot // 5 + 1}_{shot + 1:02d}.png" for p, one, shot in cells),
    )


def read_testsets(path: Path) -> list[tuple[str, ...]]:
    """The file's own 20 test sets: the names of the persons in each."""
    with _opened(path) as file:
        if "testsets" not in file:
            raise DataError(f"{path} has no 'testsets': it is not cuhk-03.mat.")
        tables = [np.asarray(file[reference]).T.astype(np.int64) for reference in file["testsets"][0]]
    return [tuple(f"{pair}-{person:04d}" for pair, person in table) for table in tables]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file, open; or say what is wrong with it."""
    if importlib.util.find_spec("h5py") is None:
        raise DataError(f"reading {path.name} needs h5py. Install it: pip install 'bitscale[datasets]'.")
    import h5py

    _check_version(path)
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, KeyError, ValueError, IndexError) as error:
        raise DataError(f"{path} is cut short or damaged ({error}). Get it again.") from error


def _check_version(path: Path) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(MATLAB_HEADER + len(HDF5))
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).") from error
    if head.startswith(HDF5) or head[MATLAB_HEADER:] == HDF5:
        return
    if head.startswith(b"MATLAB 5.0"):
        raise DataError(f"{path} is of MATLAB's version 5; the official cuhk-03.mat is of version 7.3. Get it again.")
    raise DataError(f"{path} is no MATLAB file of version 7.3. Get cuhk-03.mat again.")
