"""Blocking work in a few threads, with a line of bounded length before them, and a bound on how long anybody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from bitscale.server.answers import Busy

Done = TypeVar("Done")


class Threads:
    """Runs work off the event loop; who finds the line full is sent away at once, who waits too long after a while."""

    def __init__(self, name: str, threads: int, waiting: int, seconds: float) -> None:
        self.name, self.inside = name, 0
        self._threads, self._most, self._seconds = threads, threads + waiting, seconds
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"bitscale {name}")

    @property
    def free(self) -> bool:
        """Whether a thread is there for the next work at once."""
        return self.inside < self._threads

    async def run(self, work: Callable[[], Done]) -> Done:
        """Do the work in a thread: returns its result, or raises its error."""
        if self.inside >= self._most:
            raise Busy(f"{self.inside} requests are waiting already. Try again in a moment.")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Done] = loop.create_future()
        task = self._executor.submit(work)
        self.inside += 1
        task.add_done_callback(lambda done: tell(loop, self._ended, done, answer))
        timer = loop.call_later(self._seconds, self._late, answer)
        try:
            return await answer
        finally:
            timer.cancel()

    def _late(self, answer: asyncio.Future[Done]) -> None:
        if not answer.done():
            answer.set_exception(
                Busy(f"there was no answer within {self._seconds:.0f} seconds. Try again in a moment.")
            )

    def _ended(self, task: Future[Done], answer: asyncio.Future[Done]) -> None:
        """The thread is free again, not before: it cannot be stopped. Nobody may wait for its answer any more."""
        self.inside -= 1
        if answer.done():
            return
        if task.cancelled():
            answer.cancel()
        elif (error := task.exception()) is not None:
            answer.set_exception(error)
        else:
            answer.set_result(task.result())

    def close(self) -> None:
        """Finish what has begun."""
        self._executor.shutdown(wait=True, cancel_futures=True)


def tell(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *about: object) -> None:
    """Have the event loop do something, from another thread; one that is closed has nobody waiting."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *about)
