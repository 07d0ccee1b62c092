"""Single-shot matching against cases worked out by hand, and against torchreid's definition in a loop."""

from itertools import product

import numpy as np
import pytest

from bitscale.errors import InputError
from bitscale.metrics import single_shot


def test_by_hand():
    # two queries, persons 5 and 9; gallery: 5 has one picture, 9 one, 7 one
    distances = np.array([[1, 2, 3], [4, 4, 0]])
    found = single_shot(distances, np.array([5, 9]), np.array([5, 9, 7]), ks=[1, 2, 3], draws=3)
    np.testing.assert_allclose(found, [[[1, 1, 1], [0, 0.5, 1]]] * 3)  # 5 and 9 are tied for the second place


def test_a_query_whose_person_is_not_there_has_no_value():
    found = single_shot(np.array([[1, 2], [1, 2]]), np.array([3, 5]), np.array([5, 9]), ks=[1], draws=2)
    assert np.isnan(found[:, 0]).all()
    assert (found[:, 1] == 1).all()
    assert np.isnan(single_shot(np.array([[1, 2]]), np.array([8]), np.array([5, 9]), ks=[1], draws=1)).all()


def test_what_is_left_out_shows_nobody():
    # person 5: picture 0 is of the query's own camera and nearest; only picture 1 may show it
    found = single_shot(
        np.array([[0, 3, 2]]), np.array([5]), np.array([5, 5, 9]), left_out=[np.array([0])], ks=[1, 2], draws=20
    )
    np.testing.assert_array_equal(found, [[[0, 1]]] * 20)
    alone = single_shot(np.array([[0, 2]]), np.array([5]), np.array([5, 9]), left_out=[np.array([0])], ks=[1], draws=3)
    assert np.isnan(alone).all()


def every_choice(distances, query, gallery, left_out, ks):
    """torchreid's eval_cuhk03 with every choice of one picture a person, ties in expectation: the exact mean."""
    total, n = np.zeros(len(ks)), 0
    persons = np.unique(gallery)
    pools = [[i for i in np.flatnonzero(gallery == p) if i not in left_out] for p in persons]
    for shown in product(*pools):
        own = distances[next(i for i in shown if gallery[i] == query)]
        nearer = sum(distances[i] < own for i in shown)
        tied = sum(distances[i] == own for i in shown)
        total += [np.clip(k - nearer, 0, tied) / tied for k in ks]
        n += 1
    return total / n


@pytest.mark.slow
def test_the_mean_over_draws_is_the_mean_over_all_choices():
    rng = np.random.default_rng(0)
    gallery = np.repeat([2, 3, 8, 11], [3, 2, 4, 1])
    queries = np.array([3, 8, 2, 11, 8])
    distances = rng.integers(0, 4, (len(queries), len(gallery)))
    left_out = [rng.choice(np.flatnonzero(gallery == q), int((gallery == q).sum() > 1), False) for q in queries]
    found = single_shot(distances, queries, gallery, left_out=left_out, ks=[1, 2, 3], draws=3_000, seed=1)
    expected = [every_choice(distances[i], q, gallery, left_out[i], [1, 2, 3]) for i, q in enumerate(queries)]
    np.testing.assert_allclose(found.mean(axis=0), expected, atol=0.04)
    again = single_shot(distances, queries, gallery, left_out=left_out, ks=[1, 2, 3], draws=5, seed=1)
    np.testing.assert_array_equal(again, found[:5])


def test_bad_input():
    with pytest.raises(InputError, match="nothing to rank"):
        single_shot(np.zeros((1, 0)), np.array([1]), np.zeros(0, int))
    with pytest.raises(InputError, match=r"distances must be \(n_queries, n_pictures\)"):
        single_shot(np.zeros((1, 2)), np.array([1]), np.array([1]))
    with pytest.raises(InputError, match="one array a query"):
        single_shot(np.zeros((1, 1)), np.array([1]), np.array([1]), left_out=[])
    with pytest.raises(InputError, match="draws"):
        single_shot(np.zeros((1, 1)), np.array([1]), np.array([1]), draws=0)
