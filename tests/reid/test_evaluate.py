"""Camera-aware matching: who is searched for in which camera, single and multi shot, codes and vectors."""

import numpy as np
import pytest

from bitscale.codes import Codes, Relaxed
from bitscale.data.images import ArrayImages
from bitscale.data.people import People
from bitscale.errors import InputError
from bitscale.hamming import distances
from bitscale.reid.evaluate import How, between_cameras, match, of_codes, of_relaxed, of_vectors, same_camera


def people(persons, cameras):
    blank = np.zeros((len(persons), 2, 2, 3), np.uint8)
    names = tuple(f"p{i}" for i in range(max(persons) + 1))
    return People(ArrayImages(blank), np.array(persons), np.array(cameras), names, ("north", "south", "east"))


PEOPLE = people([0, 0, 1, 1, 2, 2, 2], [0, 1, 0, 1, 0, 1, 1])
VALUES = np.array([[0.0], [0.1], [5.0], [5.2], [9.0], [5.1], [9.1]], np.float32)


def test_both_ways_between_two_cameras():
    there, back = between_cameras(PEOPLE, of_vectors(VALUES), How(ranks=(1, 2, 3), draws=200))
    assert (there.queries, there.gallery, there.n_queries, there.n_persons) == ("north", "south", 3, 3)
    # 0 finds itself; 1 and 2 do unless 2 is shown by its picture at 5.1: that is nearer to 1, and farther from 2 than 1
    assert there.rates[1] == pytest.approx((1 + 0.5 + 0.5) / 3, abs=0.07)
    assert there.rates[3] == 1
    assert there.spread[1] == pytest.approx(1 / 3, abs=0.01)  # both or neither
    assert (back.queries, back.gallery, back.n_queries) == ("south", "north", 4)
    assert back.rates[1] == 0.75  # the picture of 2 at 5.1 takes 1 for itself
    assert back.spread[1] == 0


def test_multi_shot_tells_map_beside():
    how = How("multi", ranks=(1, 2))
    found = match(PEOPLE, of_vectors(VALUES), np.array([2]), np.array([1, 3, 5, 6]), how)
    assert found.rates == {1: 0, 2: 1}  # 5.1 of another person is nearer than 5.2
    assert found.map == 0.5
    assert "map" in found.to_dict()


def test_pictures_of_ones_own_camera_are_left_out():
    rows = np.arange(7)
    away = same_camera(PEOPLE, rows, rows)
    assert [away(i).tolist() for i in rows] == [[0], [1], [2], [3], [4], [5, 6], [5, 6]]
    found = match(PEOPLE, of_vectors(VALUES), rows, rows, How("multi", ranks=(1,)))
    assert found.queries == found.gallery == "all"
    assert found.n_queries == 7


def test_codes_are_compared_as_search_does():
    rng = np.random.default_rng(0)
    weights = np.sort(rng.random(24))[::-1]
    codes = Codes.from_packed(rng.integers(0, 256, (7, 3), np.uint8), weights)
    for bits in (None, 11):
        found = of_codes(codes, bits)(np.array([0, 3]), np.array([1, 2, 6]))
        expected = distances(codes[np.array([0, 3])], codes[np.array([1, 2, 6])], bits=bits)
        np.testing.assert_array_equal(np.argsort(found, kind="stable"), np.argsort(expected, kind="stable"))


def test_nothing_to_find():
    with pytest.raises(InputError, match="no person was seen by two cameras"):
        between_cameras(people([0, 1], [0, 1]), of_vectors(VALUES[:2]))
    with pytest.raises(InputError, match="1 queries and 0 gallery pictures"):
        match(PEOPLE, of_vectors(VALUES), np.array([0]), np.zeros(0, np.int64))
    with pytest.raises(InputError, match="no query's person is in the gallery"):
        match(PEOPLE, of_vectors(VALUES), np.array([0]), np.array([3]))
    with pytest.raises(InputError, match="single, multi"):
        How("many")


def test_a_query_without_a_second_camera_is_counted():
    made = people([0, 0, 1], [0, 1, 0])
    found = match(made, of_vectors(VALUES[:3]), np.array([0, 2]), np.array([1]), How(ranks=(1,)))
    assert (found.n_queries, found.n_excluded) == (1, 1)


def test_relaxed_queries_equal_the_loop():
    """Up to a constant of each query it is the asymmetric distance: the sum of w (1 - r s) / 2."""
    rng = np.random.default_rng(4)
    values = rng.uniform(-1, 1, (12, 16))
    codes = Codes.from_packed(np.packbits(values >= 0, axis=1), np.linspace(2, 1, 16))
    relaxed = Relaxed(values, np.linspace(2, 1, 16))
    asked, there = np.arange(5), np.arange(5, 12)
    found = of_relaxed(relaxed, codes, 8)(asked, there)
    signs = np.where(values >= 0, 1, -1)
    for i, row in zip(asked, found, strict=True):
        expected = [sum(relaxed.bit_weights[b] * (1 - values[i, b] * signs[j, b]) / 2 for b in range(8)) for j in there]
        assert (np.argsort(row, kind="stable") == np.argsort(expected, kind="stable")).all()
