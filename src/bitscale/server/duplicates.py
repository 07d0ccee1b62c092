"""Looking for duplicates in the background: one search at a time for a collection, its result kept until it changes."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from bitscale.collection import Collection
from bitscale.collection.duplicates.find import Duplicates, find_duplicates
from bitscale.errors import BitscaleError
from bitscale.server.answers import Busy

WAIT_SECONDS = 0.5  # a small collection is done by then


@dataclass
class Looking:
    """A search under way, or done."""

    within: float | None
    changes: int  # commits of the collection when it began
    doing: str = "comparing codes"
    done: int = 0
    total: int = 0
    result: Duplicates | None = None
    error: BitscaleError | None = None


class Finder:
    """Finds duplicates of one collection in a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._search: Looking | None = None
        self._thread: threading.Thread | None = None

    def found(self, photos: Collection, within: float | None) -> Looking:
        """The search by these settings, as far as it is; begun where there is none of the collection as it is."""
        now = photos.changes
        with self._lock:
            running = self._thread is not None and self._thread.is_alive()
            search = self._search
            if search is None or (search.within, search.changes) != (within, now):
                if running:
                    raise Busy("duplicates are being looked for with other settings. Ask again when that is done.", 5)
                search = self._search = Looking(within, now)
                self._thread = threading.Thread(target=self._run, args=(photos, search), daemon=True)
                self._thread.start()
            thread = self._thread
        if thread is not None:
            thread.join(WAIT_SECONDS)
        if search.error is not None:
            self._search = None
            raise search.error
        return search

    def _run(self, photos: Collection, search: Looking) -> None:
        def tell(doing: str, done: int, total: int) -> None:
            search.doing, search.done, search.total = doing, done, total

        try:
            search.result = find_duplicates(photos, within=search.within, progress=tell)
        except BitscaleError as error:
            search.error = error
        except Exception as error:
            search.error = BitscaleError(f"looking for duplicates failed ({type(error).__name__}). Try again.")
