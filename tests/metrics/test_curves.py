import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitscale.errors import InputError
from bitscale.metrics import cmc_at, precision_at, rank, recall_at
from tests.metrics.tie_orders import orders


def one(distances, relevant):
    return rank(np.array([distances]), np.array([relevant], bool))


def test_golden():
    ranking = one([0, 1, 1, 2], [0, 1, 0, 1])
    np.testing.assert_allclose(precision_at(ranking, [1, 2, 3, 4]), [[0, 0.25, 1 / 3, 0.5]])
    np.testing.assert_allclose(recall_at(ranking, [1, 2, 3, 4]), [[0, 0.25, 0.5, 1]])
    np.testing.assert_allclose(cmc_at(ranking, [1, 2, 3, 4]), [[0, 0.5, 1, 1]])


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=7).filter(
        lambda items: any(relevant for _, relevant in items)
    )
)
def test_equal_the_enumeration_of_all_tie_orders(items):
    distances, relevant = zip(*items, strict=True)
    ranking, ks = one(distances, relevant), list(range(1, len(items) + 1))
    tops = np.array([[sum(order[:k]) for k in ks] for order in orders(distances, relevant)])  # (orders, ks)
    np.testing.assert_allclose(precision_at(ranking, ks)[0], (tops / np.array(ks)).mean(0), atol=1e-12)
    np.testing.assert_allclose(recall_at(ranking, ks)[0], tops.mean(0) / sum(relevant), atol=1e-12)
    np.testing.assert_allclose(cmc_at(ranking, ks)[0], (tops > 0).mean(0), atol=1e-12)


def test_k_past_the_end_takes_the_whole_ranking():
    ranking = one([0, 1, 2, 3], [0, 1, 0, 0])
    assert precision_at(ranking, [500])[0, 0] == 0.25
    assert recall_at(ranking, [500])[0, 0] == 1
    assert cmc_at(ranking, [500])[0, 0] == 1


def test_many_queries_equal_one_at_a_time():
    rng = np.random.default_rng(0)
    distances, relevant = rng.integers(0, 6, (40, 30)), rng.random((40, 30)) < 0.2
    ks = [1, 2, 5, 17, 30, 99]
    together = rank(distances, relevant)
    for function in (precision_at, recall_at, cmc_at):
        alone = np.concatenate([function(one(d, r), ks) for d, r in zip(distances, relevant, strict=True)])
        np.testing.assert_allclose(function(together, ks), alone, atol=1e-12)


def test_a_query_that_ranks_nothing_has_no_value():
    for n in (1, 2):
        everything = [np.arange(3)] + [np.zeros(0, np.int64)] * (n - 1)
        ranking = rank(np.ones((n, 3), int), np.ones((n, 3), bool), left_out=everything)
        for function in (precision_at, recall_at, cmc_at):
            values = function(ranking, [1, 5])
            assert np.isnan(values[0]).all()
            assert (values[1:] > 0).all()


@pytest.mark.parametrize("ks", [[], [0], [3, -1]])
def test_bad_ks(ks):
    with pytest.raises(InputError, match="ranks from 1 on"):
        precision_at(one([1], [1]), ks)
