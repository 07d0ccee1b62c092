"""The writer of one collection: a thread that opens it when something is to be written, and lets go when idle.

Only one process may write to a collection. A service that held on to it would keep `bitscale index` and `reindex` out;
so it writes when asked, answers that another process is writing where one does, and closes after some idle seconds.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from bitscale.collection import Collection
from bitscale.errors import BitscaleError, MustReopen
from bitscale.server.answers import Busy

Done = TypeVar("Done")
IDLE_SECONDS = 2.0
Task = tuple[Callable[[Collection], Any], "Future[Any]"]


class Writer:
    """Does one change after the other; each is on disk before its future is done."""

    def __init__(self, path: Path, waiting: int) -> None:
        self._path, self._tasks = path, queue.Queue[Task | None](waiting)
        self._collection: Collection | None = None
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[[Collection], Done]) -> Done:
        """What a change returns, or raises."""
        future: Future[Done] = Future()
        try:
            self._tasks.put_nowait((work, future))
        except queue.Full:
            raise Busy("too many changes are waiting to be written. Try again in a moment.") from None
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=f"bitscale writer {self._path.name}", daemon=True)
            self._thread.start()
        return await asyncio.wrap_future(future)

    def notices(self) -> list[str]:
        """What the open collection says about itself."""
        collection = self._collection
        return [] if collection is None else collection.notices()

    def close(self) -> None:
        """Write what is waiting, then let go."""
        if self._thread is not None:
            self._tasks.put(None)
            self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                task = self._tasks.get(timeout=IDLE_SECONDS if self._collection else None)
            except queue.Empty:
                self._let_go()
                continue
            if task is None:
                self._let_go()
                return
            self._do(*task)

    def _do(self, work: Callable[[Collection], Any], future: Future[Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(self._done(work))
        except BaseException as error:  # whoever asked gets to know
            future.set_exception(error)

    def _done(self, work: Callable[[Collection], Any]) -> Any:
        if self._collection is None:
            self._collection = Collection.open(self._path)
        try:
            return work(self._collection)
        except MustReopen:
            self._let_go()
            raise

    def _let_go(self) -> None:
        collection, self._collection = self._collection, None
        if collection is not None:
            with suppress(BitscaleError):  # nothing is lost without it
                collection.close()
