import numpy as np
import pytest

from bitscale.errors import InputError
from bitscale.metrics import concatenate, expected_ap, ordered_ap, rank


def test_groups_of_one_query():
    ranking = rank(np.array([[5, 2, 2, 9, 5, 5, 7]]), np.array([[1, 0, 1, 1, 0, 1, 0]], bool))
    np.testing.assert_array_equal(ranking.counts, [2, 3, 1])
    np.testing.assert_array_equal(ranking.relevant, [1, 2, 1])
    np.testing.assert_array_equal(ranking.before, [0, 2, 6])
    np.testing.assert_array_equal(ranking.relevant_before, [0, 1, 3])
    np.testing.assert_array_equal(ranking.n_relevant, [4])
    assert ranking.hits[-1] == 7
    np.testing.assert_array_equal(ranking.n_items, [7])


def test_left_out_items_count_neither_as_items_nor_as_relevant():
    rng = np.random.default_rng(0)
    distances, relevant = rng.integers(0, 5, (6, 9)), rng.random((6, 9)) < 0.6
    away = [rng.permutation(9)[:m] for m in (0, 1, 2, 3, 5, 8)]
    ranking = rank(distances, relevant, left_out=away)
    for i, rows in enumerate(away):
        keep = np.setdiff1d(np.arange(9), rows)
        alone = rank(distances[i : i + 1, keep], relevant[i : i + 1, keep])
        assert ranking.n_items[i] == len(keep)
        np.testing.assert_allclose(expected_ap(ranking)[i], expected_ap(alone)[0])
    assert relevant.sum() > ranking.n_relevant.sum()  # the caller's array is not the one changed


@pytest.mark.parametrize("offset", [0, -7, 10**12])
def test_any_kind_of_number_gives_the_same_ranking(offset):
    rng = np.random.default_rng(1)
    distances, relevant = rng.integers(0, 9, (5, 40)), rng.random((5, 40)) < 0.3
    plain = rank(distances, relevant)
    for other in (
        distances + offset,
        (distances + offset) / 8.0,
        distances.astype(np.uint8),
        distances << 40,
    ):
        np.testing.assert_array_equal(rank(other, relevant).hits, plain.hits)
        np.testing.assert_array_equal(rank(other, relevant).counts, plain.counts)


def test_blocks_put_together_are_the_whole():
    rng = np.random.default_rng(2)
    distances, relevant = rng.integers(0, 9, (7, 40)), rng.random((7, 40)) < 0.3
    whole = rank(distances, relevant)
    parts = concatenate([rank(distances[:3], relevant[:3]), rank(distances[3:], relevant[3:])])
    for function in (expected_ap, ordered_ap):
        np.testing.assert_allclose(function(parts), function(whole))
    np.testing.assert_array_equal(parts.offsets, whole.offsets)


def test_bad_input():
    yes = np.ones((2, 3), bool)
    with pytest.raises(InputError, match="nothing to rank"):
        rank(np.ones((0, 3)), yes[:0])
    with pytest.raises(InputError, match="relevant of bool"):
        rank(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(InputError, match="NaN"):
        rank(np.full((2, 3), np.nan), yes)
    with pytest.raises(InputError, match="one array a query"):
        rank(np.ones((2, 3)), yes, left_out=[np.array([0])])
    with pytest.raises(InputError, match="query set is empty"):
        concatenate([])
