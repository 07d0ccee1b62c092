"""Folders that appear whole or not at all: made under a name of their own, held by their maker, renamed at the end.

A folder left by a maker that died is removed by the next one. While its maker lives it is locked, so that two processes
that make the same collection at the same time leave each other's work alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from bitscale.errors import FileError


@contextmanager
def partial_folder(final: Path) -> Iterator[Path]:
    """A new folder beside `final`, gone when the block is left, unless it was renamed."""
    for leftover in final.parent.glob(f".{escape(final.name)}.*.partial"):
        _remove_unless_held(leftover)
    folder, hold = _made(final)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(hold)


def rename_new(folder: Path, final: Path) -> None:
    """Give a folder its name, which another process may have taken in the meantime."""
    try:
        folder.rename(final)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise FileError(f"{final} is already there. Open it, or choose another name.") from None


def _made(final: Path) -> tuple[Path, int]:
    """A folder that is ours, and the handle that holds it."""
    while True:
        folder = final.with_name(f".{final.name}.{secrets.token_hex(6)}.partial")
        folder.mkdir()
        hold = _held(folder)
        if hold is not None:
            if folder.exists():
                return folder, hold
            os.close(hold)  # another process took it for a leftover before it was held


def _held(folder: Path) -> int | None:
    """A handle that holds a folder; None where another process holds it, or it is gone."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _remove_unless_held(folder: Path) -> None:
    hold = _held(folder)
    if hold is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(hold)
