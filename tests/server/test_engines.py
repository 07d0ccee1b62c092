"""Collections on real engines, served: the same answers as from their folders; nothing is changed through a service."""

import pytest

import bitscale as bs
from bitscale.collection.engines.push import push
from bitscale.errors import EngineError, InputError
from bitscale.index.engines import connect
from bitscale.server.homes import named
from tests import servers
from tests.conftest import until

pytestmark = pytest.mark.slow


@pytest.fixture(params=["postgres", "milvus"])
def there(request, photos):
    address = servers.address(request.param, "web")
    for left in connect.existing(address):
        left.drop()
    with bs.Collection.open(photos, read_only=True) as folder:
        push(folder, address)
    yield address
    for left in connect.existing(address):
        left.drop()


def test_the_same_answers_as_from_the_folder(serve, photos, there):
    model = bs.load_hasher("fashion-mnist")
    client = serve(photos, f"far={there}", models=(model,))

    def told(name, path="", **how):
        answer = client.get(f"/v1/collections/{name}{path}", params=how)
        assert answer.status_code == 200, answer.text
        return answer.json()

    ours, theirs = told("photos"), told("far")
    assert (theirs["items"], theirs["model"], theirs["n_bits"]) == (ours["items"], ours["model"], ours["n_bits"])
    assert ours["writable"]
    assert not theirs["writable"]
    for path in ("/facets", "/items", "/items/3"):
        assert told("far", path) == told("photos", path)
    for body in ({"id": 2, "k": 5, "explain": True}, {"id": 2, "bits": 16, "where": ["size>100"]}):
        answers = [client.post(f"/v1/collections/{name}/search", json=body).json() for name in ("photos", "far")]
        for answer in answers:
            del answer["took_ms"], answer["collection"]
        assert answers[0] == answers[1]
    picture = client.get("/v1/collections/far/items/3/picture")
    assert picture.content == client.get("/v1/collections/photos/items/3/picture").content
    found = client.post(
        "/v1/collections/far/search/picture", content=picture.content, headers={"content-type": "image/png"}
    )
    assert found.json()["matches"][0]["distance"] == 0
    assert client.delete("/v1/collections/far/items/3").status_code == 403
    until(lambda: client.get("/v1/collections/far/duplicates").status_code == 200)  # 202 while it is looking
    assert client.get("/v1/collections/far/duplicates").json()["status"] == "done"
    assert client.get("/v1/ready").json()["status"] == "ready"


def test_a_model_is_needed_and_names_come_from_addresses(serve, there):
    with pytest.raises(InputError, match="Name that model"):
        serve(there)
    with pytest.raises(EngineError, match="holds no collection"):
        serve(there.replace("web", "nobody"))
    assert named(there)[0].startswith("web")
    assert named(f"far={there}") == ("far", there)
