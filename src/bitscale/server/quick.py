"""Searches that are quicker than handing them to a thread: done at once on the event loop, while that holds nobody up.

A search by a ready code takes a fraction of a millisecond; a thread would wait longer for its turn than it works. It
goes to a thread nevertheless when the index is about to be loaded anew, when searches have proved to be slow here, or
(see `gathered`) when another thread holds the database.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bitscale.collection.segments.serving import SEGMENTS

Done = TypeVar("Done")
SLOW = 0.003  # seconds that a search may keep the event loop, on average
SETTLED_SECONDS = 5.0  # after new segments came: by then they are named, and loaded by a thread
LOOK_SECONDS = 0.05  # after which that is looked up again: a new segment is named only after it is on disk
WEIGHT = 0.1  # of the latest search in the average
OUTLIER = 2 * SLOW  # one that takes longer counts as this: the machine was busy, or the index was touched first
LOOK_AGAIN = 100  # searches after which one is tried on the loop again, though they were slow


class Quick:
    """Decides whether a search may be done on the event loop, by how long the last ones took."""

    def __init__(self, path: Path) -> None:
        self._segments = path / SEGMENTS
        self._seconds, self._refused = 0.0, 0
        self._look_at, self._calm = 0.0, False

    def may(self) -> bool:
        """Whether to search on the event loop now, if the database is free."""
        if self._seconds > SLOW:
            self._refused += 1
            if self._refused < LOOK_AGAIN:
                return False
            self._seconds, self._refused = SLOW / 2, 0
        return self._settled()

    def _settled(self) -> bool:
        """Whether no segment came or went lately; looked up now and then."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            try:
                self._calm = time.time() - os.stat(self._segments).st_mtime > SETTLED_SECONDS
            except OSError:
                self._calm = False
        return self._calm

    def run(self, work: Callable[[], Done], searches: int = 1) -> Done:
        """Do it, and take the time of each of so many searches."""
        start = time.perf_counter()
        try:
            return work()
        finally:
            took = (time.perf_counter() - start) / searches
            self._seconds += WEIGHT * (min(took, OUTLIER) - self._seconds)
