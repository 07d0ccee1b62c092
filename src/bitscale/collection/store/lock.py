"""One writer at a time: an inter-process lock that says who holds it, and is free once its holder is gone."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bitscale.errors import CollectionBusy, FileError

if TYPE_CHECKING:
    from filelock import FileLock

LOCK = "writer.lock"
HOLDER = "writer.json"


class WriterLock:
    """Held from opening for writing to closing; the operating system frees it when its holder dies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: FileLock | None = None  # readers need none

    def acquire(self) -> None:
        """Take the lock at once, or tell who has it."""
        from filelock import FileLock, Timeout

        if self._lock is None:
            self._lock = FileLock(self.folder / LOCK, timeout=0)
        try:
            self._lock.acquire()
        except Timeout:
            raise CollectionBusy(
                f"{self.folder} is being written to by {self.holder()}. Wait until it is done, or stop it; "
                "searching works meanwhile."
            ) from None
        except OSError as error:
            raise FileError(
                f"{self.folder} cannot be locked for writing ({error.strerror or error}). "
                "Check that it may be written to; searching needs no lock."
            ) from error
        with contextlib.suppress(OSError):  # only to be polite to the next writer
            (self.folder / HOLDER).write_text(json.dumps(_myself()))

    def release(self) -> None:
        """Let the next writer in."""
        if self._lock is not None and self._lock.is_locked:
            with contextlib.suppress(OSError):
                (self.folder / HOLDER).unlink(missing_ok=True)
            self._lock.release()

    def holder(self) -> str:
        """The process that holds the lock, in words."""
        try:
            who = json.loads((self.folder / HOLDER).read_text())
            return f"process {who['pid']} on {who['host']} ({who['command']}, since {who['since']})"
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return "another process"


def _myself() -> dict[str, object]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:2]]) if sys.argv and sys.argv[0] else "python",
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
