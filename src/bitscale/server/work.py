"""Blocking work in a few threads, with a line of bounded length before them, and a bound on how long anybody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bitscale.server.answers import Busy

Done = TypeVar("Done")


class Threads:
    """Runs work off the event loop; who finds the line full is sent away at once, who waits too long after a while."""

    def __init__(self, name: str, threads: int, waiting: int, seconds: float) -> None:
        self.name, self.inside = name, 0
        self._most, self._seconds = threads + waiting, seconds
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"bitscale {name}")

    async def run(self, work: Callable[[], Done]) -> Done:
        """What the work returns, or raises."""
        if self.inside >= self._most:
            raise Busy(f"{self.inside} requests are waiting already. Try again in a moment.")
        self.inside += 1
        task = asyncio.get_running_loop().run_in_executor(self._executor, work)
        task.add_done_callback(self._ended)  # not before: a thread cannot be stopped
        done, _ = await asyncio.wait((task,), timeout=self._seconds)
        if not done:
            raise Busy(f"there was no answer within {self._seconds:.0f} seconds. Try again in a moment.")
        return task.result()

    def _ended(self, task: asyncio.Future[Done]) -> None:
        self.inside -= 1
        if not task.cancelled():
            task.exception()  # of work that nobody waits for any more: seen, so that nobody is told

    def close(self) -> None:
        """Finish what has begun."""
        self._executor.shutdown(wait=True, cancel_futures=True)
