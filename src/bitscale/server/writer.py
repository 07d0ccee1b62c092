"""The writer of one collection: a thread that opens it when something is to be written, and lets go when idle.

Only one process may write to a collection. A service that held on to it would keep `bitscale index` and `reindex` out;
so it writes when asked, answers that another process is writing where one does, and closes after some idle seconds.

What takes time is to have a commit on disk. Additions of codes that wait while another is written are committed
together, and acknowledged after that one commit: many clients are served by as many commits as the disk can do.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bitscale.collection import Collection
from bitscale.errors import BitscaleError, FileError, MustReopen
from bitscale.server.answers import Busy

Done = TypeVar("Done")
Asked = TypeVar("Asked")
IDLE_SECONDS = 2.0
TOGETHER = 256  # changes in one commit


@dataclass(frozen=True, eq=False)
class Task:
    """A change that waits: its arguments, and the work that does it together with others of its kind."""

    asked: Any
    work: Callable[[Collection, Sequence[Any]], Sequence[Any]]  # an answer for each, in their order; one commit
    kind: str | None = None  # None: this one alone
    future: Future[Any] = field(default_factory=Future)


class Writer:
    """Does one change after the other, or several in one commit; each is on disk before its future is done."""

    def __init__(self, path: Path, waiting: int) -> None:
        self._path, self._tasks = path, queue.Queue[Task | None](waiting)
        self._put_back: list[Task | None] = []  # taken from the line, and still to be done
        self._collection: Collection | None = None
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[[Collection], Done]) -> Done:
        """Make a change: returns its result, or raises its error."""
        done: Done = await self._line_up(Task(None, lambda collection, _: [work(collection)]))
        return done

    async def run_together(
        self, kind: str, asked: Asked, work: Callable[[Collection, Sequence[Asked]], Sequence[Done]]
    ) -> Done:
        """As `run`, in one commit with changes of its kind that wait behind it."""
        done: Done = await self._line_up(Task(asked, work, kind))
        return done

    async def _line_up(self, task: Task) -> Any:
        try:
            self._tasks.put_nowait(task)
        except queue.Full:
            raise Busy("too many changes are waiting to be written. Try again in a moment.") from None
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=f"bitscale writer {self._path.name}", daemon=True)
            self._thread.start()
        return await asyncio.wrap_future(task.future)

    def notices(self) -> list[str]:
        """The notices of the open collection."""
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
                task = self._take(IDLE_SECONDS if self._collection else None)
            except queue.Empty:
                self._let_go()
                continue
            if task is None:
                self._let_go()
                return
            together = [one for one in self._with_others(task) if one.future.set_running_or_notify_cancel()]
            if together:
                self._do(together)

    def _take(self, seconds: float | None) -> Task | None:
        """The next in line."""
        return self._put_back.pop() if self._put_back else self._tasks.get(timeout=seconds)

    def _with_others(self, first: Task) -> list[Task]:
        """A task, and those of its kind that wait behind it; the order of changes stays as it is."""
        together = [first]
        while first.kind is not None and len(together) < TOGETHER:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                break
            if task is None or task.kind != first.kind:
                self._put_back.append(task)
                break
            together.append(task)
        return together

    def _do(self, together: Sequence[Task]) -> None:
        """Make changes in one commit; where one of them cannot be made, each alone, so that only it is refused."""
        try:
            done = self._done(together)
        except BaseException as error:  # whoever asked gets to know
            if len(together) > 1 and isinstance(error, BitscaleError) and not isinstance(error, FileError):
                for task in together:
                    self._do([task])
                return
            for task in together:  # a full disk, or another writer, is met by all alike
                task.future.set_exception(error)
            return
        for task, one in zip(together, done, strict=True):
            task.future.set_result(one)

    def _done(self, together: Sequence[Task]) -> Sequence[Any]:
        if self._collection is None:
            self._collection = Collection.open(self._path)
        try:
            return together[0].work(self._collection, [task.asked for task in together])
        except MustReopen:
            self._let_go()
            raise

    def _let_go(self) -> None:
        collection, self._collection = self._collection, None
        if collection is not None:
            with suppress(BitscaleError):  # nothing is lost without it
                collection.close()
