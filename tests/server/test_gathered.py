"""Searches that come in one turn of the event loop: each gets the answer, or the error, that it would get alone."""

import asyncio
import base64
import math
import threading

import httpx
import pytest

from bitscale import Collection
from bitscale.errors import InputError
from bitscale.server.gathered import Gathered
from tests.server.serving import error_of


def test_those_of_a_kind_are_answered_in_one_go():
    seen = []

    def doubled(many):
        seen.append(list(many))
        return [2 * one for one in many]

    async def ask():
        gathered = Gathered()
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
        gathered = Gathered()
        return await asyncio.gather(*(gathered.run("one", one, picky) for one in (1, 3, 4)), return_exceptions=True)

    one, error, four = asyncio.run(ask())
    assert (one, four) == (1, 4)
    assert isinstance(error, InputError)


def test_a_mistake_is_told_to_all_and_nobody_waits_for_ever():
    def broken(many):
        raise ZeroDivisionError

    async def ask():
        gathered = Gathered()
        return await asyncio.gather(*(gathered.run("one", one, broken) for one in range(3)), return_exceptions=True)

    assert [type(one) for one in asyncio.run(ask())] == [ZeroDivisionError] * 3


def test_who_gave_up_is_not_answered():
    seen = []

    async def ask():
        gathered = Gathered()
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
        gathering = asyncio.ensure_future(
            home.search_together("one", "asked", lambda photos, many: [model] * len(many))
        )
        holding = asyncio.ensure_future(home.read(hold))  # gets there before the turn is over
        await asyncio.sleep(0)  # both have begun
        assert begun.wait(60)
        await asyncio.sleep(0)  # the turn in which it is answered: here it would wait for ever
        go_on.set()
        await holding
        return await gathering

    assert asyncio.run(asyncio.wait_for(ask(), 60)) == model
