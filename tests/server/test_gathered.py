"""Searches that come in one turn of the event loop: each gets the answer, or the error, that it would get alone."""

import asyncio
import base64
import math
import threading

import httpx
import pytest

from bitscale import Collection
from bitscale.errors import InputError
from bitscale.server.answers import Busy
from bitscale.server.gathered import Gathered
from tests.server.serving import error_of


def gathering(idle=True, most=256, seconds=60.0):
    """What gathers, and the tasks that it handed to a thread: each a task, and the future of what became of it."""
    handed = []

    def away(task):
        handed.append((task, asyncio.get_running_loop().create_future()))
        return handed[-1][1]

    return Gathered(lambda: idle, lambda task, n: task(), away, most, seconds), handed


async def turns(n=5):
    """Let the event loop go round."""
    for _ in range(n):
        await asyncio.sleep(0)


def test_those_of_a_kind_are_answered_in_one_go():
    seen = []

    def doubled(many):
        seen.append(list(many))
        return [2 * one for one in many]

    async def ask():
        gathered, _ = gathering()
        asking = [gathered.run(one % 2, one, doubled) for one in range(6)]
        first = await asyncio.gather(*asking)
        return first, await gathered.run(0, 10, doubled)

    assert asyncio.run(ask()) == ([0, 2, 4, 6, 8, 10], 20)
    assert seen == [[0, 2, 4], [1, 3, 5], [10]]


def test_an_error_goes_to_whom_it_concerns():
    def picky(many):
        if 3 in many:
            raise InputError("no 3")
        return many

    async def ask():
        gathered, _ = gathering()
        return await asyncio.gather(*(gathered.run("one", one, picky) for one in (1, 3, 4)), return_exceptions=True)

    one, error, four = asyncio.run(ask())
    assert (one, four) == (1, 4)
    assert isinstance(error, InputError)


def test_a_mistake_is_told_to_all_and_nobody_waits_for_ever():
    def broken(many):
        raise ZeroDivisionError

    async def ask():
        gathered, _ = gathering()
        return await asyncio.gather(*(gathered.run("one", one, broken) for one in range(3)), return_exceptions=True)

    assert [type(one) for one in asyncio.run(ask())] == [ZeroDivisionError] * 3


def test_who_gave_up_is_not_answered():
    seen = []

    async def ask():
        gathered, _ = gathering()
        loop = asyncio.get_running_loop()
        gone = loop.create_task(gathered.run("one", "gone", lambda many: seen.append(list(many)) or many))
        there = loop.create_task(gathered.run("one", "there", lambda many: seen.append(list(many)) or many))
        loop.call_soon(gone.cancel)
        await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await gone
        return await there

    assert asyncio.run(ask()) == "there"
    assert "there" in seen[-1]


def test_those_who_come_while_a_thread_is_at_work_are_answered_together_when_it_is_back():
    seen = []

    def doubled(many):
        seen.append(list(many))
        return [2 * one for one in many]

    async def ask():
        gathered, handed = gathering(idle=False)
        asking = [asyncio.ensure_future(gathered.run("one", one, doubled)) for one in (1, 2)]
        await turns()
        later = []
        for one in (3, 4, 5):  # each in a turn of its own
            later.append(asyncio.ensure_future(gathered.run("one", one, doubled)))
            await turns()
        while handed:
            assert len(handed) == 1  # one thread at a time
            task, future = handed.pop()
            future.set_result(task())
            await turns()
        return await asyncio.gather(*asking, *later)

    assert asyncio.run(asyncio.wait_for(ask(), 60)) == [2, 4, 6, 8, 10]
    assert seen == [[1, 2], [3, 4, 5]]


def test_who_waits_for_a_thread_is_sent_away_where_the_line_is_full_and_after_a_while():
    async def ask():
        gathered, handed = gathering(idle=False, most=1, seconds=0.01)
        first = asyncio.ensure_future(gathered.run("one", 1, lambda many: many))
        await turns()
        told = await asyncio.gather(
            *(gathered.run("one", one, lambda many: many) for one in (2, 3)), return_exceptions=True
        )
        task, future = handed.pop()
        future.set_result(task())
        return await first, told

    answer, told = asyncio.run(asyncio.wait_for(ask(), 60))
    assert answer == 1
    assert [type(one) for one in told] == [Busy, Busy]
    assert "no answer within" in told[0].message
    assert "1 requests are waiting already" in told[1].message


def test_where_no_thread_is_to_be_had_all_are_told_and_the_next_is_answered():
    async def ask():
        gathered, handed = gathering(idle=False)
        asking = [asyncio.ensure_future(gathered.run("one", one, lambda many: many)) for one in (1, 2)]
        await turns()
        handed.pop()[1].set_exception(Busy("the line is full"))
        told = await asyncio.gather(*asking, return_exceptions=True)
        last = asyncio.ensure_future(gathered.run("one", 3, lambda many: many))
        await turns()
        task, future = handed.pop()
        future.set_result(task())
        return told, await last

    told, last = asyncio.run(asyncio.wait_for(ask(), 60))
    assert [type(one) for one in told] == [Busy, Busy]
    assert last == 3


def test_searches_that_come_at_once_are_answered_as_each_alone(serve, coded):
    with Collection.open(coded, read_only=True) as library:
        model, codes = library.model, library.index.get(range(40))
        wanted = {k: [[(m.id, m.distance) for m in row] for row in library.search(codes, k)] for k in (3, 20)}
    service = serve(coded).service
    home = service.homes["coded"]
    home._quick._look_at, home._quick._calm = math.inf, True  # its segments are new: they would go to threads
    bodies = [
        {"code": base64.b64encode(row.tobytes()).decode(), "model": model, "k": k}
        for k in (3, 20)
        for row in codes.packed
    ]
    bad = [bodies[0] | {"code": "AAAA"}, bodies[0] | {"bits": 65}, bodies[0] | {"model": "f" * len(model)}]

    async def ask():
        transport = httpx.ASGITransport(service)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            asking = (http.post("/v1/collections/coded/search", json=body) for body in [*bodies, *bad])
            return await asyncio.gather(*asking)

    answers = asyncio.run(ask())
    found = [[(m["id"], m["distance"]) for m in answer.json()["matches"]] for answer in answers[: len(bodies)]]
    assert found == wanted[3] + wanted[20]
    assert [answer.json()["query"]["code"] for answer in answers[: len(bodies)]] == [body["code"] for body in bodies]
    assert [error_of(answer)["status"] for answer in answers[len(bodies) :]] == [422] * 3


def test_a_search_does_not_wait_on_the_event_loop_for_a_thread_at_the_database(serve, coded):
    service = serve(coded).service
    home = service.homes["coded"]
    home._quick._look_at, home._quick._calm = math.inf, True
    model, begun, go_on = home._reader.model, threading.Event(), threading.Event()

    def hold(photos):
        with photos._database.reading():
            begun.set()
            go_on.wait(60)

    async def ask():
        gathering = asyncio.ensure_future(home.search("one", "asked", lambda photos, many: [model] * len(many)))
        holding = asyncio.ensure_future(home.read(hold))  # gets there before the turn is over
        await asyncio.sleep(0)  # both have begun
        assert begun.wait(60)
        await asyncio.sleep(0)  # the turn in which it is answered: here it would wait for ever
        go_on.set()
        await holding
        return await gathering

    assert asyncio.run(asyncio.wait_for(ask(), 60)) == model


def test_while_a_thread_is_at_the_database_searches_take_one_thread_together(serve, coded):
    service = serve(coded).service
    home = service.homes["coded"]
    home._quick._look_at, home._quick._calm = math.inf, True
    begun, go_on, threads = threading.Event(), threading.Event(), []

    def hold(photos):
        with photos._database.reading():
            begun.set()
            go_on.wait(60)

    def doubled(photos, many):
        with photos._database.reading():
            return [2 * one for one in many]

    async def ask():
        holding = asyncio.ensure_future(home.read(hold))
        await asyncio.sleep(0)
        assert begun.wait(60)
        asking = []
        for one in range(20):
            asking.append(asyncio.ensure_future(home.search("one", one, doubled)))
            await turns()
            threads.append(service.homes.searching.inside)
        go_on.set()
        await holding
        return await asyncio.gather(*asking)

    assert asyncio.run(asyncio.wait_for(ask(), 60)) == [2 * one for one in range(20)]
    assert threads == [2] * 20  # the one that holds on, and one for all searches
