"""Work that takes long, kept in a folder of its own until it is complete: the same work finds its folder again.

The folder's name comes from all that the result depends on, so that other work never finds it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from bitscale.atomic import write_whole
from bitscale.data.labelled import Labelled
from bitscale.data.root import runs_root
from bitscale.errors import FileError

_DAMAGED = (OSError, ValueError, KeyError, EOFError, TypeError, BadZipFile, zlib.error)


def unfinished(what: str, identity: Any) -> Path:
    """The folder of a piece of work, below `runs_root()`; it is made by whoever writes to it first."""
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()
    return runs_root() / f"{what}-{digest[:20]}"


def finished(folder: Path) -> None:
    """Remove the folder of a piece of work that is complete and written elsewhere."""
    shutil.rmtree(folder, ignore_errors=True)


def part_identity(part: Labelled) -> list[str]:
    """Identifies a part of a dataset: the fingerprint of its images and that of its labels."""
    labels = hashlib.sha256(repr((part.labels.shape, str(part.labels.dtype))).encode() + part.labels.tobytes())
    return [part.images.fingerprint, labels.hexdigest()]


def file_identity(path: str | Path) -> list[Any]:
    """Identifies a file: its path, its size and when it was changed."""
    name = os.fsencode(os.path.abspath(path)).hex()
    try:
        status = os.stat(path)
    except OSError:
        return [name, None, None]
    return [name, status.st_size, status.st_mtime_ns]


def keep_arrays(folder: Path, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the next piece of work to its folder, whole or not at all."""
    named: dict[str, Any] = dict(arrays)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{number:06}.npz", lambda file: np.savez(file, allow_pickle=False, **named))
    except OSError as error:
        raise FileError(f"unfinished work cannot be kept in {folder}: {error.strerror}. Free the disk.") from error


def kept_arrays(folder: Path, number: int) -> dict[str, NDArray[Any]] | None:
    """A piece of work that was kept, or None where there is none that can be read."""
    try:
        with np.load(folder / f"{number:06}.npz", allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except _DAMAGED:
        return None
