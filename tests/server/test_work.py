"""Work in threads: a full line sends away, a wait has an end, and what goes on counts until it is done."""

import asyncio
import threading

import pytest

from bitscale.errors import InputError
from bitscale.server.answers import Busy
from bitscale.server.work import Threads


def fail():
    raise InputError("no")


def test_work_returns_and_raises():
    async def both(threads):
        assert await threads.run(lambda: 3) == 3
        with pytest.raises(InputError, match="no"):
            await threads.run(fail)
        await asyncio.sleep(0)
        assert threads.inside == 0

    threads = Threads("test", 1, 0, 60.0)
    asyncio.run(both(threads))
    threads.close()


def test_who_waits_too_long_is_sent_away_and_the_work_counts_until_it_is_done():
    go_on = threading.Event()

    async def wait(threads):
        for _ in range(2):
            with pytest.raises(Busy, match="no answer within") as refused:
                await threads.run(go_on.wait)
            assert int(refused.value.headers["Retry-After"]) >= 1
        assert threads.inside == 2
        with pytest.raises(Busy, match="2 requests are waiting"):
            await threads.run(go_on.wait)
        go_on.set()
        while threads.inside:
            await asyncio.sleep(0.001)

    threads = Threads("test", 1, 1, 0.01)
    try:
        asyncio.run(asyncio.wait_for(wait(threads), 60))
    finally:
        go_on.set()
        threads.close()
