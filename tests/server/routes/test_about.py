"""What the service tells of a collection: its model, and what that is worth at each length; and of its own mistakes."""

import bitscale as bs
from tests.server.serving import error_of


def test_a_model_that_was_measured_tells_its_map(serve, photos):
    info = serve(photos).get("/v1/collections/photos").json()
    measured = bs.load_hasher("fashion-mnist").measured
    assert info["map_by_bits"] == {str(bits): value for bits, value in measured.map_by_bits.items()}
    assert info["map_on"] == measured.on


def test_only_networks_are_said_to_learn_from_marks(serve, coded, photos):
    told = serve(coded, photos).get("/v1/collections").json()["collections"]
    assert {one["name"]: one["fine_tunes"] for one in told} == {"coded": False, "photos": True}


def test_one_that_was_not_tells_none(serve, coded):
    info = serve(coded).get("/v1/collections/coded").json()
    assert (info["map_by_bits"], info["map_on"]) == (None, None)


def test_a_mistake_of_ours_is_told_in_the_one_shape(serve, coded, caplog):
    client = serve(coded)

    @client.service.routes.get("/v1/collections/{collection}/broken")
    async def broken(collection: str):
        raise ZeroDivisionError("a secret detail")

    answer = client.get("/v1/collections/coded/broken")
    assert error_of(answer)["type"] == "Mistake"
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "ZeroDivisionError" in caplog.text
    assert client.get("/v1/collections/coded").status_code == 200
