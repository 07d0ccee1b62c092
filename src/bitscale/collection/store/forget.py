"""Forgetting a path: notes on unread files and on folders go with its items, so that compaction leaves no trace."""

from __future__ import annotations

import json

import apsw

from bitscale.collection.items import stored_path
from bitscale.collection.store.rows import is_below, read_skipped

ROOTS = "roots"  # the note that keeps which folders were taken in


def forget_below(connection: apsw.Connection, path: str) -> None:
    """Drop files that could not be read and folders taken in, at a path or below it, in the caller's transaction."""
    unread = [(stored_path(one.path),) for one in read_skipped(connection, path)]
    connection.executemany("DELETE FROM skipped WHERE path = ?", unread)
    noted = read_roots(connection)
    roots = [root for root in noted if not is_below(root, path)]
    if roots != noted:
        connection.execute("UPDATE notes SET value = ? WHERE key = ?", (json.dumps(roots), ROOTS))


def read_roots(connection: apsw.Connection) -> list[str]:
    """The folders taken in; none where the note is not a list of them."""
    noted = connection.execute("SELECT value FROM notes WHERE key = ?", (ROOTS,)).get
    try:
        roots = json.loads(str(noted or "[]"))
    except (ValueError, RecursionError):
        return []
    return [root for root in roots if isinstance(root, str)] if isinstance(roots, list) else []
