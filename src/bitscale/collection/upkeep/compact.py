"""Compaction: one segment without the dead, and a database without a trace of what was removed.

Every step leaves a sound collection, so that it can be interrupted anywhere and run again.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.collection import seal
from bitscale.collection.database import Database
from bitscale.collection.serving import Serving
from bitscale.collection.store import count_change, unpacked_ids
from bitscale.errors import FileError

PATIENCE = 5.0  # seconds to wait for readers to finish what they are reading


def compact(folder: Path, database: Database, serving: Serving) -> dict[str, Any]:
    """Merge, drop, vacuum, and empty the log; what it came to, before and after, in bytes."""
    before = size_on_disk(folder)
    seal.seal(folder, database, serving, everything=True)
    serving.refresh()
    seal.tidy(folder, database)
    _forget_staged(database, serving)
    with database.lock:
        database.vacuum()
    deadline = time.monotonic() + PATIENCE
    while not database.checkpoint():
        if time.monotonic() > deadline:
            raise FileError(
                f"{folder} is compacted, but a reader keeps the old log from being emptied. "
                "Close it and run compact again, to be sure that nothing removed is left on disk."
            )
        time.sleep(0.05)
    return {"items": len(serving.index), "bytes_before": before, "bytes_after": size_on_disk(folder)}


def size_on_disk(folder: Path) -> int:
    """Bytes of all files below a folder."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def _forget_staged(database: Database, serving: Serving) -> None:
    """Drop staged batches with codes of items that are gone; a reindex makes them again."""
    with database.writing() as connection:
        for batch, blob in connection.execute("SELECT batch, ids FROM staged").fetchall():
            ids = unpacked_ids(blob)
            if not np.isin(ids, serving.index.holding(ids)).all():
                connection.execute("DELETE FROM staged WHERE batch = ?", (batch,))
                count_change(connection)
