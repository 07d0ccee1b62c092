"""The client, waiting and awaited, against a real service: the same answers as the library, errors with their cure."""

import asyncio

import numpy as np
import pytest

import bitscale as bs
from bitscale.errors import FileError, ServiceError
from bitscale.server.keys import KeyFile
from tests.server.serving import make_codes, make_photos, make_pictures, running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A real service over a collection of pictures, which needs keys."""
    folder = tmp_path_factory.mktemp("client")
    make_pictures(folder / "new", 2, side=48)
    make_photos(folder / "photos.bsc", make_pictures(folder / "holiday"))
    make_codes(folder / "coded.bsc", 30)
    secret, _ = KeyFile(folder / "keys.json").make("tests", "write")
    words = (folder / "photos.bsc", folder / "coded.bsc", "--keys", folder / "keys.json", "--require-keys")
    with running(*words) as service:
        yield service.address, secret, folder


def answers(photos, picture, bare=False):
    """What is asked of both clients, one call after the other."""
    yield photos.info()
    yield photos.search(picture, k=3, bits=32)
    yield photos.search(id=2, k=3, explain=True)
    yield photos.search(id=2, k=3, where=["size>0"])
    yield photos.search(picture, k=1, where={"size": 0})
    yield photos.items(limit=2)
    yield photos.item(1)
    yield photos.facets()
    yield photos.picture(1)
    yield photos.thumbnail(1, side=32)


def plain(answer):
    return {**answer, "took_ms": 0} if isinstance(answer, dict) and "took_ms" in answer else answer


def test_both_clients_give_the_answers_of_the_library(world):
    address, key, folder = world
    picture = folder / "holiday" / "03.png"
    with bs.Client(address, key=key) as client:
        waited = [plain(one) for one in answers(client.collection("photos"), picture)]
        assert [one["name"] for one in client.collections()] == ["photos", "coded"]

    async def awaited():
        async with bs.AsyncClient(address, key=key) as client:
            return [plain(await one) for one in answers(client.collection("photos"), picture.read_bytes())]

    assert asyncio.run(awaited()) == waited
    with bs.Collection.open(folder / "photos.bsc", read_only=True) as photos:
        row = photos.search(str(picture), k=3, bits=32)[0]
        assert [(m["id"], m["distance"]) for m in waited[1]["matches"]] == [
            (m.id, m.distance)
            for m in row[:3]  # by its path the picture is known to be an item, and is one row more
        ]
        assert waited[0]["model"] == photos.model
        assert waited[8] == (folder / "holiday" / "01.png").read_bytes()


def test_adding_and_removing(world):
    address, key, folder = world
    with bs.Client(address, key=key) as client:
        photos = client.collection("photos")
        added = photos.add(folder / "new" / "00.png", labels=["sea"], metadata={"camera": 3})
        assert added["created"]
        id = added["item"]["id"]
        assert photos.search(folder / "new" / "00.png", k=1)["matches"][0]["distance"] == 0
        assert photos.search(id=id, k=1, where={"camera": 3})["matches"][0]["id"] == id
        assert not photos.add(folder / "new" / "00.png")["created"]
        assert photos.picture(id) == (folder / "new" / "00.png").read_bytes()
        photos.remove(id)
        with pytest.raises(ServiceError, match="no item") as gone:
            photos.item(id)
        assert (gone.value.status, gone.value.type) == (404, "UnknownItem")
        coded = client.collection("coded")
        info = coded.info()
        [new] = coded.add_codes([bytes(8)], model=info["model"], labels=[["none"]])["ids"]
        assert coded.search(code=bytes(8), model=info["model"], k=1)["matches"][0]["id"] == new


def test_marks(world):
    address, key, folder = world
    said = {"id": 2, "right": [4, 5], "wrong": [7]}
    with bs.Client(address, key=key) as client, bs.Collection.open(folder / "coded.bsc", read_only=True) as library:
        coded = client.collection("coded")
        wanted = library.learn(2, [4, 5], [7])
        found = coded.search(**coded.learn(**said), k=5)["matches"]
        assert [one["id"] for one in found] == library.search(wanted.codes, 5, weights=wanted.weights).ids[0].tolist()
        by_code = {"code": library.index.get([2]).packed.tobytes(), "model": library.model}
        assert coded.learn(**by_code, right=[4, 5], wrong=[7]) == coded.learn(**said)
        kept = coded.mark(**said, picture=b"a picture")["mark"]
        assert library.marks()[-1].picture == b"a picture"
        assert [(one["id"], one["right"]) for one in coded.marks()["marks"]] == [(kept, [4, 5])]
        coded.take_back(kept)
        assert coded.marks() == {"marks": []}


def test_errors_say_what_to_do(world):
    address, key, _ = world
    with bs.Client(address, key="bitscale_wrong") as client:
        with pytest.raises(ServiceError, match="not valid") as refused:
            client.collections()
        assert refused.value.status == 401
    with bs.Client(address, key=key) as client:
        with pytest.raises(ServiceError, match="bits must be"):
            client.collection("photos").search(id=1, bits=65)
        with pytest.raises(FileError, match=r"no\.png cannot be read: No such file"):
            client.collection("photos").search("no.png")
        assert client.collection("coded").search(id=np.int64(3), k=1)["query"]["id"] == 3
        with pytest.raises(ServiceError, match="no collection"):
            client.collection("nowhere").info()
    with bs.Client("http://127.0.0.1:9", key=key) as client, pytest.raises(ServiceError, match="bitscale serve"):
        client.collections()
