"""Where backups of a collection were written: a line each in a file beside its database.

It is a file and no table, because a backup is made by a reader, while another process writes.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

NOTES = "backups.jsonl"


def note_backup(folder: Path, destination: Path) -> bool:
    """Add a line; False where nothing can be written beside the collection."""
    line = json.dumps({"path": os.fspath(destination), "time": datetime.now(UTC).isoformat(timespec="seconds")})
    try:
        with (folder / NOTES).open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        return False
    return True


def noted_backups(folder: Path) -> list[str]:
    """The paths written to, each once, in order; a line that cannot be read is passed over."""
    try:
        lines = (folder / NOTES).read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    paths = []
    for line in lines:
        try:
            paths.append(str(json.loads(line)["path"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return list(dict.fromkeys(paths))
