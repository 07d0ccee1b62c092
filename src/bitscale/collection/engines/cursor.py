"""The cursor of a push: how far an engine is, and what the collection's log tells since."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from bitscale.collection.opened import Opened
from bitscale.collection.store.rows import TEXTS, read_changes, read_state
from bitscale.index.base import I64


class Cursor(NamedTuple):
    """A state of a collection, by which a later one is told from it."""

    seq: int  # the last change in its log
    changes: int  # commits
    texts: int  # commits that changed rows without a line in the log
    next_id: int

    def same_items(self, other: Cursor) -> bool:
        """Whether items and rows are the same: sealing, notes and marks are commits too."""
        return (self.seq, self.texts, self.next_id) == (other.seq, other.texts, other.next_id)

    def __str__(self) -> str:
        return ".".join(map(str, self))

    @classmethod
    def read(cls, text: str | None) -> Self | None:
        """A cursor as it was written; None where there is none."""
        try:
            return cls(*map(int, (text or "").split(".")))
        except (ValueError, TypeError):
            return None


def cursor_of(collection: Opened) -> Cursor:
    """Where a collection stands now."""
    with collection._database.reading() as connection:
        state = read_state(connection)
        texts = connection.execute("SELECT value FROM notes WHERE key = ?", (TEXTS,)).get
    return Cursor(state.seq, state.changes, int(texts or 0), state.next_id)


def since(collection: Opened, before: Cursor | None) -> tuple[I64, I64] | None:
    """The items added and removed since, ascending, as the log tells it; None where it does not tell all."""
    if before is None:
        return None
    collection.refresh()
    n_bytes = (collection.n_bits + 7) // 8
    with collection._database.reading() as connection:
        state = read_state(connection)
        texts = connection.execute("SELECT value FROM notes WHERE key = ?", (TEXTS,)).get
        changes = list(read_changes(connection, before.seq, n_bytes))
    if int(texts or 0) != before.texts or state.seq < before.seq or len(changes) != state.seq - before.seq:
        return None  # rows were changed, a backup was put in place, or sealing took lines away
    none = np.empty(0, np.int64)
    removed = np.unique(np.concatenate([none, *(change.ids for change in changes if change.codes is None)]))
    added = np.unique(np.concatenate([none, *(change.ids for change in changes if change.codes is not None)]))
    return np.setdiff1d(added, removed), removed
