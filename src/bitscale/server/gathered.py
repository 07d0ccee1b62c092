"""Work of one kind that comes within one turn of the event loop, done in one go.

Under load several searches are read from their connections in one turn. What each would ask of the database and of the
index alone, they then ask together; one that comes alone waits for nobody.

Where the work cannot be done on the event loop just now, it is done in one thread for all of them, and those who come
meanwhile wait for its return, to be answered together as well. A thread for each takes a third more of the processor,
and the next to come may find the database held by one of these: under load that can go on and on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from functools import partial
from typing import Any

from bitscale.errors import BitscaleError
from bitscale.server.answers import Busy

Work = Callable[[Sequence[Any]], Sequence[Any]]  # an answer for each that asked, in their order
Waiting = list[tuple[Any, "asyncio.Future[Any]"]]  # what is asked, and who waits for the answer
Outcome = tuple[Any, Exception | None]
Task = Callable[[], list[Outcome]]


class Gathered:
    """Those who ask in this turn, by what they can be answered together with. Only the event loop asks.

    may      whether the work may be done on the event loop just now
    here     does it there, for so many
    away     does it in a thread
    most     how many may wait for a thread's return; `seconds` how long
    """

    def __init__(
        self,
        may: Callable[[], bool],
        here: Callable[[Task, int], list[Outcome]],
        away: Callable[[Task], Awaitable[list[Outcome]]],
        most: int,
        seconds: float,
    ) -> None:
        self._may, self._here, self._away = may, here, away
        self._most, self._seconds = most, seconds
        self._kinds: dict[Hashable, tuple[Work, Waiting]] = {}
        self._planned = False  # whether the end of this turn, or a thread's return, will answer
        self._thread: asyncio.Task[None] | None = None
        self._behind = 0  # who wait for a thread's return

    async def run(self, kind: Hashable, asked: Any, work: Work) -> Any:
        """The answer of `work` to `asked`; requests of one kind are answered together, by the work of the first."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        if self._thread is not None:
            return await self._wait(loop, kind, asked, work, answer)
        if not self._planned:
            self._planned = True
            loop.call_soon(self._answer)
        self._kinds.setdefault(kind, (work, []))[1].append((asked, answer))
        return await answer

    async def _wait(
        self, loop: asyncio.AbstractEventLoop, kind: Hashable, asked: Any, work: Work, answer: asyncio.Future[Any]
    ) -> Any:
        """Wait, among the requests of this kind, until the thread at work takes them all at once."""
        if self._behind >= self._most:
            raise Busy(f"{self._behind} requests are waiting already. Try again in a moment.")
        self._behind += 1
        timer = loop.call_later(self._seconds, late, answer, self._seconds)
        try:
            self._kinds.setdefault(kind, (work, []))[1].append((asked, answer))
            return await answer
        finally:
            self._behind -= 1
            timer.cancel()

    def _answer(self) -> None:
        """Answer all who wait: at once, or by a thread, which answers those who come meanwhile when it is back."""
        kinds, self._kinds, self._planned = self._kinds, {}, False
        for kind, (work, waiting) in kinds.items():
            here = [(asked, answer) for asked, answer in waiting if not answer.done()]  # the others were given up
            if not here:
                continue
            if self._thread is not None:
                self._kinds[kind] = work, here
                continue
            task = partial(outcomes, work, [asked for asked, _ in here])
            if self._may():
                tell(here, self._here(task, len(here)))
            else:
                self._thread = asyncio.get_running_loop().create_task(self._by_thread(task, here))

    async def _by_thread(self, task: Task, waiting: Waiting) -> None:
        try:
            answers = await self._away(task)
        except Exception as error:  # no thread is to be had, or it takes too long
            answers = [(None, error)] * len(waiting)
        finally:
            self._thread = None
        tell(waiting, answers)
        self._answer()


def outcomes(work: Work, asked: Sequence[Any]) -> list[Outcome]:
    """An answer or an error for each. After an error: whose it was is seen when each is answered alone."""
    try:
        return [(one, None) for one in work(asked)]
    except Exception as error:
        if len(asked) == 1 or not isinstance(error, BitscaleError):
            return [(None, error)] * len(asked)
    return [outcomes(work, [one])[0] for one in asked]


def tell(waiting: Waiting, outcomes: Sequence[Outcome]) -> None:
    """Give each request its own answer or error."""
    for (_, answer), (done, error) in zip(waiting, outcomes, strict=True):
        if answer.done():  # given up meanwhile
            continue
        if error is None:
            answer.set_result(done)
        else:
            answer.set_exception(error)


def late(answer: asyncio.Future[Any], seconds: float) -> None:
    """Fail a request that had no answer in time."""
    if not answer.done():
        answer.set_exception(Busy(f"there was no answer within {seconds:.0f} seconds. Try again in a moment."))
