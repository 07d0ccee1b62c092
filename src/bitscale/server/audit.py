"""The audit log: a line for each request, saying who asked for what and how it ended; never a picture, never a key."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path

from starlette.types import Scope

from bitscale.errors import FileError
from bitscale.server.identity import Identity

BEGINS = b'{"time": "'  # every line
LONGEST = 500  # characters of a path


def check_ours(path: Path) -> None:
    """Refuse a file that is there and is no audit log."""
    try:
        with open(path, "rb") as file:
            start = file.read(len(BEGINS))
    except OSError:
        return
    if start and start != BEGINS:
        raise FileError(f"{path} is there and no audit log of bitscale. Choose another name.")


class Audit:
    """Writes lines of JSON to a file of mode 0600, and to the log "bitscale.audit" for whoever listens there."""

    def __init__(self, path: Path | None) -> None:
        self._log = logging.getLogger("bitscale.audit")
        self._file = None
        if path is not None:
            check_ours(path)
            try:
                handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            except OSError as error:
                raise FileError(f"{path} cannot be written: {error.strerror}.") from error
            self._file = os.fdopen(handle, "a", buffering=1, encoding="ascii")

    def write(self, scope: Scope, status: int, seconds: float) -> None:
        """Put down one request."""
        if self._file is None and not self._log.isEnabledFor(logging.INFO):
            return
        who = scope.get("bitscale.identity")
        line = json.dumps(
            {
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "who": who.name if isinstance(who, Identity) else "nobody",
                "address": scope["client"][0] if scope.get("client") else None,
                "method": scope["method"],
                "path": scope["path"][:LONGEST],
                "status": status,
                "ms": round(1e3 * seconds, 1),
            }
        )
        self._log.info("%s", line)
        if self._file is not None:
            self._file.write(line + "\n")

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
