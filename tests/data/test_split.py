import numpy as np
import pytest

from bitscale.data.images import ArrayImages
from bitscale.data.labelled import Labelled, relevance
from bitscale.data.split import LeftOut, Split, draw_per_class, split_parts, split_pool
from bitscale.errors import DataError, InputError


def labelled(labels: np.ndarray, n_labels: int = 10) -> Labelled:
    images = np.zeros((len(labels), 2, 2), np.uint8)
    return Labelled(ArrayImages(images), labels, tuple(map(str, range(n_labels))))


def pool(per_class: int = 6_000) -> Labelled:
    return labelled(np.repeat(np.arange(10), per_class))


def test_rows_of_a_plain_array() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 4, 5), np.uint8)
    rows = np.array([7, 2])
    part = Labelled(pixels, np.arange(9), tuple("abcdefghi")).take(rows)
    assert np.array_equal(part.images, pixels[rows])
    assert part.labels.tolist() == [7, 2]


def test_p0_searches_the_queries_within_themselves() -> None:
    split = split_pool("x", "P0", pool())
    assert (len(split.train), len(split.query), split.database) == (50_000, 10_000, split.query)
    assert np.bincount(split.query.labels).tolist() == [1_000] * 10
    assert [split.left_out(i).tolist() for i in (0, 9_999)] == [[0], [9_999]]


def test_p0_db_has_the_same_queries_against_the_rest() -> None:
    p0, p0_db = split_pool("x", "P0", pool()), split_pool("x", "P0-db", pool())
    assert p0.query.images.fingerprint == p0_db.query.images.fingerprint
    assert p0_db.database is p0_db.train
    assert not p0_db.left_out


def test_c1_trains_on_a_part_of_the_database() -> None:
    split = split_pool("x", "C1", pool())
    assert (len(split.train), len(split.query), len(split.database)) == (5_000, 1_000, 59_000)
    rows = [set(part.images.rows.tolist()) for part in (split.train, split.query, split.database)]
    assert rows[0] < rows[2]
    assert not rows[1] & rows[2]
    assert np.bincount(split.train.labels).tolist() == [500] * 10


def test_c2_trains_on_the_database() -> None:
    split = split_pool("x", "C2", pool())
    assert (len(split.query), len(split.database)) == (10_000, 50_000)
    assert split.train is split.database


def test_draws_depend_on_the_seed_only() -> None:
    draws = [split_pool("x", "C1", pool(), seed=seed).query.images.fingerprint for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


def test_too_small_a_class_is_named() -> None:
    with pytest.raises(DataError, match="Class 0 has only 3"):
        draw_per_class(np.zeros(3, np.int64), 4, np.random.default_rng(0))


def test_unknown_protocol() -> None:
    with pytest.raises(InputError, match="P0, P0-db, C1, C2"):
        split_pool("x", "P9", pool(1_000))


@pytest.mark.parametrize("bad", [[0, 10], [-1, 0]])
def test_labels_outside_the_range(bad: list[int]) -> None:
    with pytest.raises(DataError, match="between 0 and 9"):
        labelled(np.array(bad))


def test_labels_and_images_must_agree() -> None:
    with pytest.raises(DataError, match="2 images and 3 labels"):
        Labelled(ArrayImages(np.zeros((2, 2, 2), np.uint8)), np.zeros(3, np.int64), ("a",))
    with pytest.raises(DataError, match="float64"):
        labelled(np.zeros(3))


def test_an_empty_query_set_is_refused() -> None:
    with pytest.raises(DataError, match="query set of x"):
        split_parts("x", "P0", pool(1), labelled(np.zeros(0, np.int64)))


def test_left_out_is_checked() -> None:
    items = labelled(np.zeros(3, np.int64))
    with pytest.raises(InputError, match="between 0 and 2"):
        Split("x", "own", items, items, items, LeftOut.of([np.array([3]), np.array([]), np.array([])]))
    with pytest.raises(InputError, match="3 queries"):
        Split("x", "own", items, items, items, LeftOut.none(2))


def test_left_out_ragged() -> None:
    away = LeftOut.of([np.array([4, 1, 1]), np.array([], np.int64), np.array([2])])
    assert [away(i).tolist() for i in range(3)] == [[1, 4], [], [2]]
    assert len(away) == 3


def test_relevance_is_same_class_or_shared_label() -> None:
    classes = relevance(np.array([0, 1]), np.array([1, 0, 1]))
    assert classes(1).tolist() == [True, False, True]
    assert classes(np.array([0, 1])).tolist() == [[False, True, False], [True, False, True]]
    rng = np.random.default_rng(0)
    query, database = rng.random((5, 7)) < 0.3, rng.random((9, 7)) < 0.3
    shared = relevance(query, database)
    for i in range(5):
        assert shared(i).tolist() == [bool((query[i] & item).any()) for item in database]
    assert shared(np.arange(5)).shape == (5, 9)
    with pytest.raises(InputError, match="labelled the same way"):
        relevance(np.array([0]), database)


def test_chance_map_is_the_mean_over_random_orders() -> None:
    query = labelled(np.array([0, 0, 0, 1, 1, 2]))
    split = split_parts("x", "P0", query, query)
    rng, values = np.random.default_rng(0), []
    for i in range(5):  # query 5 has no relevant item
        relevant = np.delete(query.labels == query.labels[i], i)
        for _ in range(4_000):
            hits = rng.permutation(relevant)
            values.append((np.cumsum(hits) / np.arange(1, 6))[hits].mean())
    assert split.chance_map() == pytest.approx(np.mean(values), abs=0.01)
