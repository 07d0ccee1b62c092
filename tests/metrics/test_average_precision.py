import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from bitscale.errors import InputError
from bitscale.metrics import (
    best_ap,
    expected_ap,
    ordered_ap,
    ordered_ap_over_found,
    rank,
    worst_ap,
)
from tests.metrics.tie_orders import ap, orders


def one(distances, relevant, **options):
    return rank(np.array([distances]), np.array([relevant], bool), **options)


def test_golden_without_ties():
    ranking = one([1, 2, 3, 4, 5], [1, 0, 1, 0, 1])
    for function in (expected_ap, best_ap, worst_ap, ordered_ap):
        assert function(ranking)[0] == pytest.approx((1 / 1 + 2 / 3 + 3 / 5) / 3)
    assert expected_ap(ranking, within=3)[0] == pytest.approx((1 + 2 / 3) / 3)
    assert expected_ap(ranking, within=2)[0] == pytest.approx(1 / 2)
    assert ordered_ap_over_found(ranking, within=2)[0] == pytest.approx(1.0)


def test_golden_with_ties():
    # one relevant item among two tied ones, and one behind: (1 + 2/3) / 2 or (1/2 + 2/3) / 2
    ranking = one([0, 0, 1], [1, 0, 1])
    assert expected_ap(ranking)[0] == pytest.approx((1 + 2 / 3 + 1 / 2 + 2 / 3) / 4)
    assert best_ap(ranking)[0] == pytest.approx(5 / 6)
    assert worst_ap(ranking)[0] == pytest.approx(7 / 12)


def test_all_tied_is_the_chance_of_a_random_ranking():
    ranking = one([7] * 50, [1] * 5 + [0] * 45)
    harmonic = sum(1 / i for i in range(1, 51))
    assert expected_ap(ranking)[0] == pytest.approx((harmonic + 4 / 49 * (50 - harmonic)) / 50)


def test_equals_scikit_learn_without_ties():
    rng = np.random.default_rng(0)
    distances = np.stack([rng.permutation(300) for _ in range(20)])
    relevant = rng.random((20, 300)) < 0.2
    expected = [average_precision_score(r, -d) for d, r in zip(distances, relevant, strict=True)]
    for function in (expected_ap, best_ap, worst_ap, ordered_ap):
        np.testing.assert_allclose(function(rank(distances, relevant)), expected, rtol=1e-12)


tied_items = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=7).filter(
    lambda items: any(relevant for _, relevant in items)
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(tied_items, st.one_of(st.none(), st.integers(1, 9)))
def test_closed_forms_equal_the_enumeration_of_all_tie_orders(items, within):
    distances, relevant = zip(*items, strict=True)
    ranking = one(distances, relevant)
    values = [ap(order, within) for order in orders(distances, relevant)]
    assert expected_ap(ranking, within=within)[0] == pytest.approx(np.mean(values))
    assert best_ap(ranking, within=within)[0] == pytest.approx(max(values))
    assert worst_ap(ranking, within=within)[0] == pytest.approx(min(values))
    assert min(values) - 1e-12 <= ordered_ap(ranking, within=within)[0] <= max(values) + 1e-12


@settings(max_examples=60, deadline=None)
@given(tied_items, st.integers(1, 9), st.integers(0, 5))
def test_ordered_values_follow_the_seeded_shuffle(items, within, seed):
    distances, relevant = (np.array(column) for column in zip(*items, strict=True))
    shuffled = np.random.default_rng(seed).permutation(len(items))
    order = list(relevant[np.lexsort((shuffled, distances))])
    ranking = one(distances, relevant, seed=seed)
    assert ordered_ap(ranking, within=within)[0] == pytest.approx(ap(order, within))
    found = ordered_ap_over_found(ranking, within=within)[0]
    assert found == pytest.approx(ap(order, within, over_found=True))


def test_ordered_mean_over_seeds_comes_near_the_expected_value():
    rng = np.random.default_rng(1)
    distances, relevant = rng.integers(0, 4, (30, 60)), rng.random((30, 60)) < 0.3
    means = [ordered_ap(rank(distances, relevant, seed=seed)).mean() for seed in range(200)]
    assert np.mean(means) == pytest.approx(expected_ap(rank(distances, relevant)).mean(), abs=0.003)


def test_precise_at_a_million_items():
    distances = np.arange(1_000_000)[None] // 3
    relevant = np.zeros((1, 1_000_000), bool)
    relevant[0, [999_990, 999_991, 999_993]] = True  # two of one tie group of three, one of the next
    p = 999_991.0
    pairs = [(0, 1), (0, 2), (1, 2)]
    first = np.mean([1 / (p + a) + 2 / (p + b) for a, b in pairs])
    last = np.mean([3 / (p + 3 + place) for place in range(3)])
    assert expected_ap(rank(distances, relevant))[0] == pytest.approx((first + last) / 3, rel=1e-9)


def test_no_relevant_item_is_nan_and_within_must_be_positive():
    assert np.isnan(expected_ap(one([1, 2], [0, 0]))[0])
    assert np.isnan(ordered_ap(one([1, 2], [0, 0]))[0])
    with pytest.raises(InputError, match="within must be at least 1"):
        expected_ap(one([1, 2], [1, 0]), within=0)
