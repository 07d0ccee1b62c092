"""One run at a time writes to a folder; the lock is free once its holder is gone, however it went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bitscale.errors import FileError

NAME = ".lock"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder, or say at once that somebody else does."""
    from filelock import FileLock, Timeout

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / NAME, timeout=0)
        lock.acquire()
    except Timeout:
        raise FileError(
            f"another run is at work in {folder}. Wait until it is done, or stop it; `--status` works meanwhile."
        ) from None
    except OSError as error:
        raise FileError(f"{folder} cannot be used: {error.strerror or error}. Choose another folder.") from error
    try:
        yield
    finally:
        lock.release()
