"""The writer: changes that wait are made in one commit, in their order, and each gets its own answer or error."""

import asyncio
import base64
import threading

import numpy as np
import pytest

from bitscale import Collection
from bitscale.errors import CollectionBusy, InputError, ModelMismatch
from bitscale.server.routes.adding import added_codes
from bitscale.server.schemas.asked import NewCodes
from bitscale.server.writer import Writer
from tests.server.serving import make_codes


@pytest.fixture
def home(tmp_path):
    return make_codes(tmp_path / "coded.bsc", 20)


@pytest.fixture
def writer(home):
    made = Writer(home, 100)
    yield made
    made.close()


def new_codes(rows, model, **facts):
    """A request for codes to be added."""
    items = [{"code": base64.b64encode(row.tobytes()).decode(), **facts} for row in rows]
    return NewCodes.model_validate({"model": model, "items": items})


async def behind_one_another(writer, *changes):
    """Answers, or errors, to changes that all wait while another is made."""
    begun, go_on = threading.Event(), threading.Event()

    def hold(photos):
        begun.set()
        go_on.wait(60)
        return photos.changes

    holding = asyncio.ensure_future(writer.run(hold))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    asked = [asyncio.ensure_future(change) for change in changes]
    await asyncio.sleep(0)  # all are in line
    go_on.set()
    return await holding, await asyncio.gather(*asked, return_exceptions=True)


def test_additions_that_wait_share_a_commit(writer, home):
    rows = np.random.default_rng(0).integers(0, 256, (12, 8), dtype=np.uint8)
    with Collection.open(home, read_only=True) as photos:
        bodies = [new_codes(rows[3 * i : 3 * i + 3], photos.model, labels=[f"n{i}"]) for i in range(4)]
    add = (writer.run_together("codes", body, added_codes) for body in bodies)
    before, ids = asyncio.run(behind_one_another(writer, *add))
    assert ids == [[20, 21, 22], [23, 24, 25], [26, 27, 28], [29, 30, 31]]
    with Collection.open(home, read_only=True) as photos:
        assert photos.changes == before + 1
        assert (photos.index.get(range(20, 32)).packed == rows).all()
        assert [photos.item(id).labels for id in (20, 23, 26, 31)] == [("n0",), ("n1",), ("n2",), ("n3",)]


def test_one_that_cannot_be_added_keeps_nobody_else_out(writer, home):
    rows = np.random.default_rng(0).integers(0, 256, (4, 8), dtype=np.uint8)
    with Collection.open(home, read_only=True) as photos:
        model = photos.model
    good, short = new_codes(rows[:1], model), new_codes(rows[:1, :3], model)
    strange, last = new_codes(rows[1:2], "f" * len(model)), new_codes(rows[2:], model)
    add = (writer.run_together("codes", body, added_codes) for body in (good, short, strange, last))
    _, answers = asyncio.run(behind_one_another(writer, *add))
    assert answers[0] == [20]
    assert [type(one) for one in answers[1:3]] == [InputError, ModelMismatch]
    assert answers[3] == [21, 22]


def test_the_order_of_changes_is_kept(writer, home):
    rows = np.random.default_rng(0).integers(0, 256, (2, 8), dtype=np.uint8)
    with Collection.open(home, read_only=True) as photos:
        first, second = (new_codes(row[None], photos.model) for row in rows)
    changes = [
        writer.run_together("codes", first, added_codes),
        writer.run(lambda photos: photos.remove(20)),
        writer.run_together("codes", second, added_codes),
    ]
    _, answers = asyncio.run(behind_one_another(writer, *changes))
    assert answers == [[20], 1, [21]]


def test_another_writer_is_told_of_to_all_that_wait(writer, home):
    rows = np.random.default_rng(0).integers(0, 256, (2, 8), dtype=np.uint8)

    async def ask():
        with Collection.open(home) as held:
            bodies = [new_codes(row[None], held.model) for row in rows]
            add = (writer.run_together("codes", body, added_codes) for body in bodies)
            refused = await asyncio.gather(*add, return_exceptions=True)
        return refused, await writer.run_together("codes", bodies[0], added_codes)

    refused, then = asyncio.run(ask())
    assert [type(one) for one in refused] == [CollectionBusy] * 2
    assert then == [20]
