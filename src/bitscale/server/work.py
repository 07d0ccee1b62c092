"""Blocking work in a few threads, with a line of bounded length before them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bitscale.server.answers import Busy

Done = TypeVar("Done")


class Threads:
    """Runs work off the event loop; who finds the line full is sent away at once."""

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self.name, self.inside = name, 0
        self._most = threads + waiting
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"bitscale {name}")

    async def run(self, work: Callable[[], Done]) -> Done:
        """What the work returns, or raises."""
        if self.inside >= self._most:
            raise Busy(f"{self.inside} requests are waiting already. Try again in a moment.")
        self.inside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self.inside -= 1

    def close(self) -> None:
        """Finish what has begun."""
        self._executor.shutdown(wait=True, cancel_futures=True)
