"""Where data is looked for, and unfinished work is kept, on this machine."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from bitscale.errors import FileError


def data_root(root: str | Path | None = None) -> Path:
    """Where data is looked for: `root`, else BITSCALE_DATA, else the user's data directory."""
    if root is not None:
        return Path(root)
    if folder := os.environ.get("BITSCALE_DATA"):
        return Path(folder)
    from platformdirs import user_data_path

    return user_data_path("bitscale", appauthor=False)


def runs_root() -> Path:
    """Where unfinished work is kept: BITSCALE_RUNS, else `runs` in the user's data directory.

    Where nothing may be written there, as in a home that is read-only, it is a folder of this user for temporary files.
    """
    if folder := os.environ.get("BITSCALE_RUNS"):
        root, cure = Path(folder), "Let BITSCALE_RUNS name a folder that may be written to."
    else:
        from platformdirs import user_data_path

        root, cure = user_data_path("bitscale", appauthor=False) / "runs", "Set BITSCALE_RUNS to another folder."
        if not may_be_written(root):
            root = Path(tempfile.gettempdir()) / f"bitscale-runs-{os.getuid()}"
    if not may_be_written(root):
        raise FileError(f"unfinished work cannot be kept in {root}: nothing may be written there. {cure}")
    return root


def may_be_written(folder: Path) -> bool:
    """Whether a folder is there, or can be made, is this user's to write to, and is no other user's trap."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        shared = folder.parent.stat().st_mode & stat.S_ISVTX  # where anybody may have made it
        return os.access(folder, os.W_OK | os.X_OK) and not (shared and folder.lstat().st_uid != os.getuid())
    except OSError:
        return False
