"""The order of results: the item itself first, ties by what tells them apart, and every place with its reason."""

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from bitscale import Codes, Collection, Relaxed
from bitscale.collection import NewItem
from bitscale.collection.search.order import TIES
from tests.collection.made import hasher


@pytest.fixture
def photos(tmp_path):
    """Forty items whose first eight bits are all the same; the other eight count up."""
    with Collection.create(tmp_path / "c.bsc", hasher(16)) as made:
        packed = np.stack([np.zeros(40, np.uint8), np.arange(40, dtype=np.uint8)], axis=1)
        made.apply(codes=Codes(packed, made.bit_weights, made.model), items=[NewItem(f"/p/{i}.jpg") for i in range(40)])
        yield made


def test_ties_go_by_the_full_code_then_by_id(photos):
    query = Codes(np.array([[0, 0b00100111]], np.uint8), photos.bit_weights, photos.model)
    row = photos.search(query, k=5, bits=8)[0]
    whole = [bin(0b00100111 ^ i).count("1") for i in range(40)]
    assert [match.id for match in row] == sorted(range(40), key=lambda i: (whole[i], i))[:5]
    assert {match.distance for match in row} == {0.0}
    assert row[0].decided == "full code"
    assert row[-1].decided == "id"
    assert photos.search(query, k=5)[0][0].decided == "distance"
    index = photos.index.search(query, 5, bits=8)  # the index keeps to its own rule
    assert index.ids[0].tolist() == [0, 1, 2, 3, 4]


def test_ties_go_by_the_relaxed_query_where_there_is_one(photos):
    values = np.full((1, 16), -1.0)
    values[0, 8:] = [0.9, -0.9, -0.9, -0.9, -0.1, -0.2, -0.3, -0.4]
    relaxed = Relaxed(values, photos.bit_weights, model=photos.model)
    row = photos.search(relaxed, k=3)[0]
    assert [match.id for match in row] == [0, 8, 4]  # the cheapest bits to be wrong about first
    assert len({match.distance for match in row}) == 3


def test_the_item_searched_for_comes_first_and_does_not_use_up_k(photos):
    row = photos.search(39, k=4, bits=8)[0]
    assert len(row) == 5
    assert (row[0].id, row[0].itself, row[0].decided) == (39, True, "itself")
    assert [match.itself for match in row[1:]] == [False] * 4
    assert photos.search(39, k=4, where="id<10")[0][0].id != 39  # a filter holds for it, too
    within = photos.search(39, radius=0, bits=8)[0]
    assert within[0].id == 39
    assert len(within) == 40


def test_many_ties_are_put_in_order_up_to_the_limit(tmp_path):
    n = 2 * TIES
    with Collection.create(tmp_path / "c.bsc", hasher(16)) as photos:
        packed = np.stack([np.zeros(n, np.uint8), np.full(n, 255, np.uint8)], axis=1)
        packed[TIES - 10, 1] = packed[-1, 1] = 0  # as the query in all its bits; the last is beyond the limit
        photos.add_codes(Codes(packed, photos.bit_weights, photos.model))
        query = Codes(np.zeros((1, 2), np.uint8), photos.bit_weights, photos.model)
        assert [match.id for match in photos.search(query, k=3, bits=8)[0]] == [TIES - 10, 0, 1]


def test_pillow_images_and_vectors_are_queries(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 6)).astype(np.float32)
    model = bs.make_hasher("lsh", n_bits=32, features="none").fit(bs.data.Labelled(x, np.zeros(40, np.int64), ("a",)))
    with Collection.create(tmp_path / "v.bsc", model) as home:
        home.add_codes(model.encode(x))
        assert [row[0].id for row in home.search(x[:3], k=1)] == [0, 1, 2]
        assert home.search(x[5], k=1)[0].name == "vector 0"
    from tests.collection.folders import model as of_pictures

    with Collection.create(tmp_path / "p.bsc", of_pictures()) as home:
        for i in range(4):
            Image.fromarray(rng.integers(0, 256, (40, 60), np.uint8)).save(tmp_path / f"{i}.png")
        home.add([tmp_path / f"{i}.png" for i in range(4)], workers=1)
        with Image.open(tmp_path / "2.png") as picture:
            row = home.search(picture, k=1)[0]
        assert (row[0].id, row[0].grade) == (2, "copy")
        with pytest.raises(bs.errors.InputError, match="takes pictures"):
            home.search(x, k=1)
