"""What the service tells of a collection: its model, and what that is worth at each length where it was measured."""

import bitscale as bs


def test_a_model_that_was_measured_tells_its_map(serve, photos):
    info = serve(photos).get("/v1/collections/photos").json()
    measured = bs.load_hasher("fashion-mnist").measured
    assert info["map_by_bits"] == {str(bits): value for bits, value in measured.map_by_bits.items()}
    assert info["map_on"] == measured.on


def test_one_that_was_not_tells_none(serve, coded):
    info = serve(coded).get("/v1/collections/coded").json()
    assert (info["map_by_bits"], info["map_on"]) == (None, None)
