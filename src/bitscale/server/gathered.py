"""Work of one kind that comes within one turn of the event loop, done in one go.

Under load several searches are read from their connections in one turn. What each would ask of the database and of the
index alone, they then ask together; one that comes alone waits for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from bitscale.errors import BitscaleError

Work = Callable[[Sequence[Any]], Sequence[Any]]  # an answer for each that asked, in their order


class Gathered:
    """Those who ask in this turn, by what they can be answered together with. Only the event loop asks."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, tuple[Work, list[tuple[Any, asyncio.Future[Any]]]]] = {}

    async def run(self, kind: Hashable, asked: Any, work: Work) -> Any:
        """What `work` answers to `asked`; all of a kind are handed to the work of the first."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._answer)
        self._waiting.setdefault(kind, (work, []))[1].append((asked, answer))
        return await answer

    def _answer(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for work, some in waiting.values():
            here = [(asked, answer) for asked, answer in some if not answer.done()]  # the others were given up
            try:
                done = work([asked for asked, _ in here])
            except Exception as error:
                self._one_by_one(work, here, error)
            else:
                for (_, answer), one in zip(here, done, strict=True):
                    answer.set_result(one)

    @staticmethod
    def _one_by_one(work: Work, some: list[tuple[Any, asyncio.Future[Any]]], error: Exception) -> None:
        """After an error: whose it was is seen when each is answered alone; one who was alone has it already."""
        for asked, answer in some:
            if len(some) > 1 and isinstance(error, BitscaleError):
                try:
                    answer.set_result(work([asked])[0])
                except Exception as own:
                    answer.set_exception(own)
            else:
                answer.set_exception(error)
