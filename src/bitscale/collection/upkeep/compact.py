"""Compaction: one segment without the dead, and a database without a trace of what was removed.

Every step leaves a sound collection, so that it can be interrupted anywhere and run again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bitscale.collection.ingest.kept_features import forget_left
from bitscale.collection.segments import seal
from bitscale.collection.segments.serving import Serving
from bitscale.collection.store.database import Database
from bitscale.collection.store.log_holders import log_holders
from bitscale.collection.store.rows import count_change, unpacked_ids
from bitscale.collection.store.seen import forget_words
from bitscale.collection.uploads import tidy_uploads
from bitscale.errors import FileError


def compact(folder: Path, database: Database, serving: Serving) -> dict[str, Any]:
    """Merge, drop, vacuum, and empty the log; returns the sizes before and after, in bytes."""
    before = size_on_disk(folder)
    seal.seal(folder, database, serving, everything=True)
    serving.refresh()
    seal.tidy(folder, database)
    tidy_uploads(folder, database, whole=True)
    forget_left(folder)
    _forget_staged(database, serving)
    with database.lock:
        database.vacuum()
    if not database.checkpoint():  # SQLite itself has waited for readers to finish what they were reading
        holders = " and ".join(log_holders(database.path)) or "a reader"
        raise FileError(
            f"{folder} is compacted, but {holders} keeps the old log from being emptied. "
            "Close it and run compact again, to be sure that nothing removed is left on disk."
        )
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
    """Drop staged batches with codes of items that are gone, which a reindex makes again, and words kept of these."""
    with database.writing() as connection:
        if forget_words(connection):
            count_change(connection)
        for batch, blob in connection.execute("SELECT batch, ids FROM staged").fetchall():
            ids = unpacked_ids(blob)
            if not np.isin(ids, serving.index.holding(ids)).all():
                connection.execute("DELETE FROM staged WHERE batch = ?", (batch,))
                count_change(connection)
