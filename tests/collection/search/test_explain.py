"""Cut-offs: exact where they can be checked, honest where codes cannot tell."""

import numpy as np
import pytest

from bitscale import Codes, Collection
from bitscale.collection.search.explain import (
    EXPECTED,
    Cutoff,
    chance_distance,
    code_distances,
    differing,
    measure,
    random_pairs,
    sample,
    usual_distance,
)
from bitscale.hamming import distances
from tests.collection.made import hasher


def test_chance_is_the_tail_of_the_sum_of_independent_bits():
    rng = np.random.default_rng(0)
    weights, odds = np.sort(rng.random(14))[::-1] + 0.2, rng.random(14) * 0.8 + 0.1
    patterns = (np.arange(1 << 14)[:, None] >> np.arange(14)) & 1  # every way to differ, one by one
    chances = np.where(patterns, odds, 1 - odds).prod(axis=1)
    sums = patterns @ weights
    for n in (1, 50, 1_000):
        limit = chance_distance(odds, weights, n)
        order = np.argsort(sums)
        below = np.cumsum(chances[order]) * n < EXPECTED
        exact = sums[order][below][-1] if below.any() else None
        if exact is None:
            assert limit is None or limit < sums[order][0] + 0.04
        else:
            following = sums[order][below.sum()]
            assert exact - 0.04 <= limit <= following + 0.04  # the grid's width


@pytest.mark.parametrize("bits", [5, 64, 100])
def test_random_pairs_of_equal_weights_are_counted_as_others_are(bits):
    signs = np.random.default_rng(0).random((50, bits)) < 0.3
    counted = random_pairs(signs, np.full(bits, 0.5))
    summed = random_pairs(signs, np.full(bits, 0.5) + np.eye(bits)[0] * 1e-9)
    np.testing.assert_allclose(counted, summed, atol=1e-8)
    assert len(np.unique(counted)) > 4


def test_more_items_and_fewer_bits_ask_for_less_distance():
    odds, weights = np.full(64, 0.5), np.ones(64)
    limits = [chance_distance(odds, weights, n) for n in (10, 1_000, 100_000)]
    assert limits == sorted(limits, reverse=True)
    assert chance_distance(odds[:8], weights[:8], 1_000) is None


def test_usual_is_a_conformal_quantile():
    assert usual_distance(np.arange(18.0)) is None
    assert usual_distance(np.arange(19.0)) == 18
    assert usual_distance(np.arange(99.0)) == 94  # 95 of 100, the query among them
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(2_000):
        drawn = rng.exponential(size=100)
        wrong += drawn[99] > usual_distance(drawn[:99])
    assert wrong / 2_000 == pytest.approx(0.05, abs=0.015)


def test_a_verdict_needs_both():
    assert Cutoff(None, 3.0).verdict(0) == "cannot tell"
    assert Cutoff(5.0, None).verdict(5) == "similar"
    assert Cutoff(5.0, 2.0).verdict(3) == "not similar"
    assert Cutoff(1.0, 2.0).distance == 1.0


def test_code_distances_are_those_of_the_index():
    rng = np.random.default_rng(0)
    codes = Codes(rng.integers(0, 256, (20, 5), np.uint8), np.sort(rng.random(40))[::-1])
    differ = differing(codes[3], codes)
    for bits in (40, 5):
        mine = code_distances(differ[:, :bits], codes.bit_weights, bits)
        assert np.array_equal(mine, distances(codes[3], codes, bits=bits)[0])


def clustered(n, clusters, bits, flips, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 2, (clusters, bits))
    return centres[rng.integers(0, clusters, n)] ^ (rng.random((n, bits)) < flips)


@pytest.fixture
def photos(tmp_path):
    with Collection.create(tmp_path / "c.bsc", hasher(64)) as made:
        yield made


def fill(photos, bits):
    photos.add_codes(Codes(np.packbits(bits, axis=1), photos.bit_weights, photos.model))


def test_members_are_similar_and_strangers_are_not(photos):
    world = clustered(2_200, 10, 64, 0.03)
    fill(photos, world[:2_000])
    members = photos.search(Codes(np.packbits(world[2_000:], axis=1), photos.bit_weights, photos.model), 5)
    strangers = np.random.default_rng(5).integers(0, 2, (200, 64))
    others = photos.search(Codes(np.packbits(strangers, axis=1), photos.bit_weights, photos.model), 5)
    assert sum(row.verdict == "similar" for row in members) >= 180  # 95 % by design
    assert sum(row.verdict == "similar" for row in others) == 0
    assert "nothing similar" in others[0].says


def test_degenerate_collections(photos):
    query = photos_code(photos, np.zeros(64, int))
    assert photos.search(query, 1)[0].verdict == "cannot tell"  # empty
    fill(photos, np.zeros((1, 64), int))
    assert photos.search(query, 1)[0].verdict == "similar"  # one item, the same code
    assert photos.search(photos_code(photos, np.arange(64) % 2), 1)[0].verdict == "not similar"
    fill(photos, np.zeros((999, 64), int))
    assert measure(photos.index, 1_000, 64).usual == 0
    assert photos.search(query, 1)[0].verdict == "cannot tell"  # every code is this one
    assert photos.search(photos_code(photos, np.arange(64) % 2), 1)[0].verdict == "not similar"


def photos_code(photos, bits):
    return Codes(np.packbits(bits[None], axis=1), photos.bit_weights, photos.model)


def standard(photos, bits):
    return photos.search(photos_code(photos, np.zeros(64, int)), 1).version.standard(bits)


def test_the_standard_is_kept_until_the_collection_changes(photos):
    fill(photos, clustered(300, 5, 64, 0.1))
    first = standard(photos, 64)
    fill(photos, clustered(10, 5, 64, 0.1))
    assert standard(photos, 64) is first
    fill(photos, clustered(100, 5, 64, 0.1))
    assert standard(photos, 64) is not first
    assert standard(photos, 16) is not standard(photos, 64)


def test_a_standard_is_measured_when_asked_for(photos):
    fill(photos, clustered(300, 5, 64, 0.1))
    results = photos.search(photos_code(photos, np.zeros(64, int)), 3)
    assert len(results[0]) == len(results.ids[0]) == 3
    assert photos._searcher._standards._kept == {}
    assert results[0].verdict
    assert list(photos._searcher._standards._kept) == [(photos.model, 64)]


def test_samples_are_of_living_items_and_repeatable(photos):
    fill(photos, clustered(6_000, 5, 64, 0.1))
    photos.remove(list(range(100, 5_900)))
    living = set(range(100)) | set(range(5_900, 6_000))
    for draw in (lambda n: photos.sample(n), lambda n: sample(photos.index, 6_000, n)):
        drawn = draw(50)
        assert len(np.unique(drawn)) == len(drawn) == 50
        assert set(drawn.tolist()) <= living
        assert np.array_equal(drawn, draw(50))
        assert len(draw(10_000)) == 200


def test_samples_where_most_ids_are_taken_are_those_of_the_rows(photos):
    """Both are drawn alike, so that verdicts did not change when the sample came to be drawn from the index."""
    fill(photos, clustered(6_000, 5, 64, 0.1))
    assert np.array_equal(sample(photos.index, 6_000, 1_024), photos.sample(1_024))
