"""Grades: limits that hold for random pairs, a valley for trained codes, and nothing told where codes cannot."""

import numpy as np

from bitscale.collection.search.grades import KIND, graded, kind_distance


def test_at_most_so_many_random_pairs_are_called_the_same_kind():
    rng = np.random.default_rng(0)
    for pairs in (rng.normal(100, 10, 20_000), rng.binomial(64, 0.5, 20_000).astype(float)):
        limit = kind_distance(pairs)
        assert 0 < (pairs <= limit).mean() <= KIND


def test_codes_that_are_equal_within_a_kind_are_parted_at_the_valley():
    rng = np.random.default_rng(1)
    pairs = np.concatenate([rng.exponential(0.3, 2_000).round(1), rng.normal(20, 3, 18_000)])
    limit = kind_distance(pairs)
    assert 2 < limit < 12


def test_kinds_that_stand_apart_are_parted_at_the_valley_though_few_pairs_in_them_are_equal():
    """As in the demo: ten classes, a tenth of all pairs within one, spread out; they used to be called unlike."""
    rng = np.random.default_rng(3)
    pairs = np.concatenate([np.abs(rng.normal(0, 4, 2_000)), rng.normal(32, 6, 18_000)])
    assert 7 < kind_distance(pairs) < 18
    few_copies = np.concatenate([np.abs(rng.normal(0, 1, 20)), rng.normal(32, 6, 19_980)])  # no kind, a few pairs
    assert (few_copies <= kind_distance(few_copies)).mean() <= KIND


def test_short_codes_tell_where_few_pairs_are_equal():
    """As of 16 bits on photographs: one pair in eighty at the least distance, which says something of a match there."""
    assert kind_distance(np.repeat([2.0, 3.0, 4.0], [120, 2_880, 7_000])) == 2.0


def test_short_codes_cannot_tell():
    rng = np.random.default_rng(2)
    assert kind_distance(rng.binomial(4, 0.5, 20_000).astype(float)) is None
    assert kind_distance(np.zeros(1_000)) is None
    assert kind_distance(np.arange(50.0)) is None  # too few pairs
    assert graded(0.0, None, None) == "cannot tell"
    assert graded(0.0, None, True) == "copy"
    assert (graded(3.0, 3.0, False), graded(3.1, 3.0, None)) == ("same kind", "unlike")
