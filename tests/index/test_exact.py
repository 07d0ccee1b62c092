"""Exact means exact: ids and distances against brute force, for every way of searching."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bitscale as bs
from bitscale.errors import InputError, ModelMismatch
from bitscale.index.plan import STRATEGIES
from bitscale.native import choose
from tests import oracle
from tests.conftest import endurance

KERNELS = ("avx512", "avx2", "portable", "numpy")
KINDS = ("clusters", "random", "few")
WEIGHTINGS = ("uniform", "steps", "strong", "random", "zeros")


def available(name):
    try:
        return choose(name)
    except InputError:
        return choose("portable")


def check_search(index, codes, ids, queries, k, threads=1, where=None, allowed=None, **how):
    keep = np.ones(len(ids), bool) if allowed is None else np.isin(ids, allowed)
    want = oracle.search(codes[np.flatnonzero(keep)], ids[keep], queries, k, **how)
    hits = index.search(queries, k, threads=threads, where=where, **how)
    assert np.array_equal(hits.ids, want[0])
    assert np.array_equal(hits.distances, want[1])


@settings(max_examples=endurance(4000))
@given(
    seed=st.integers(0, 2**32),
    n=st.one_of(st.integers(0, 200), st.integers(200, 6000), st.integers(6000, 20_000)),
    n_bits=st.integers(1, 256),
    kind=st.sampled_from(KINDS),
    weighting=st.sampled_from(WEIGHTINGS),
    kernel=st.sampled_from(KERNELS),
    strategy=st.sampled_from(STRATEGIES),
    threads=st.integers(1, 2),
    data=st.data(),
)
@example(
    seed=1,
    n=20_000,
    n_bits=64,
    kind="random",
    weighting="uniform",
    kernel="avx2",
    strategy="auto",
    threads=2,
    data=None,
)
def test_search_and_lookup_equal_brute_force(seed, n, n_bits, kind, weighting, kernel, strategy, threads, data):
    world = oracle.world(seed, n, n_bits, kind, weighting)
    rng, codes, ids = world.rng, world.codes, world.ids
    index = bs.ExactIndex(codes, ids, kernel=available(kernel))
    index.strategy = strategy
    bits = int(rng.integers(1, n_bits + 1)) if data is None else data.draw(st.integers(1, n_bits), "bits")
    k = int(rng.choice([1, 3, 10, 100, n + 2]))
    if rng.random() < 0.5 and n:  # tombstones
        dead = rng.choice(ids, int(rng.integers(0, n + 1)), replace=False)
        assert index.remove(dead) == len(dead)
        keep = ~np.isin(ids, dead)
        codes, ids = codes[np.flatnonzero(keep)], ids[keep]
    allowed = where = None
    if rng.random() < 0.4:  # a filter, prepared or not
        allowed = rng.choice(max(4 * n, 1), int(rng.integers(0, n + 1)), replace=False)
        where = index.prepare(allowed) if rng.random() < 0.5 else allowed
    check_search(index, codes, ids, world.queries, k, threads, where, allowed, bits=bits)
    other = rng.random((len(world.queries), n_bits) if rng.random() < 0.5 else n_bits)
    check_search(index, codes, ids, world.queries, k, threads, where, allowed, bits=bits, weights=other)
    relaxed = bs.Relaxed(rng.uniform(-1, 1, (2, n_bits)), codes.bit_weights)
    check_search(index, codes, ids, relaxed, k, threads, where, allowed, bits=bits)
    keep = np.ones(len(ids), bool) if allowed is None else np.isin(ids, allowed)
    codes, ids = codes[np.flatnonzero(keep)], ids[keep]
    radius = int(rng.integers(0, 4))
    found = index.lookup(world.queries, radius, bits=bits, where=where, threads=threads)
    assert list(found) == oracle.within(bs.hamming.counts(world.queries, codes, bits=bits), ids, radius)
    for queries, how in ((world.queries, {}), (world.queries, {"weights": other}), (relaxed, {})):
        distances = bs.hamming.distances(queries, codes, bits=bits, **how)
        limit = float(np.quantile(distances, 0.02)) if distances.size else 1.0
        found = index.lookup(queries, max_distance=limit, bits=bits, where=where, threads=threads, **how)
        assert list(found) == oracle.within(distances, ids, limit)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_bits", [24, 64, 100])
def test_tables_of_many_codes(kernel, n_bits):
    """Enough distinct codes for several tables, and every strategy on them."""
    world = oracle.world(5, 40_000, n_bits, "random", "random", n_queries=6, automatic=True)
    index = bs.ExactIndex(world.codes, kernel=available(kernel))
    for strategy in STRATEGIES:
        index.strategy = strategy
        for bits in (n_bits, 20, 16, 11, 3):
            for k in (1, 50):
                check_search(index, world.codes, world.ids, world.queries, k, bits=bits)
            counts = bs.hamming.counts(world.queries, world.codes, bits=bits)
            assert list(index.lookup(world.queries, 1, bits=bits)) == oracle.within(counts, world.ids, 1)


@pytest.mark.parametrize("n_bits", [1, 500, 1024])
def test_extreme_lengths(n_bits):
    world = oracle.world(7, 3000, n_bits, "clusters", "random", automatic=True)
    index = bs.ExactIndex(world.codes)
    for bits in {1, n_bits // 2 or 1, n_bits}:
        check_search(index, world.codes, world.ids, world.queries, 20, bits=bits)


def test_large_batches_and_large_k_agree_with_small_ones():
    world = oracle.world(8, 3000, 40, n_queries=300, automatic=True)
    index = bs.ExactIndex(world.codes)
    whole = index.search(world.queries, 3000, threads=2)
    assert np.array_equal(whole.ids[:, :7], index.search(world.queries, 7).ids)
    assert np.array_equal(whole.ids[17], index.search(world.queries[17], 3000).ids[0])


def test_lookup_does_not_scan_when_the_ball_is_small():
    world = oracle.world(9, 60_000, 64, "random", automatic=True)
    index = bs.ExactIndex(world.codes)
    index.lookup(world.queries, 2)
    assert index.last_stats.flat_queries == 0
    assert index.last_stats.codes < 60_000


def test_equal_codes_are_stored_once():
    codes = bs.Codes.from_packed(np.repeat(np.arange(4, dtype=np.uint8)[:, None], 1000, axis=0))
    index = bs.ExactIndex(codes)
    assert index.describe()["distinct_codes"] == 4
    assert index.search(codes[0], 5).ids[0].tolist() == [0, 1, 2, 3, 4]


def test_a_code_whose_items_are_gone_does_not_tighten_the_bound():
    codes = bs.Codes.from_packed(np.array([[0]] * 500 + [[1]] * 500, np.uint8))
    index = bs.ExactIndex(codes)
    index.remove(np.arange(499))
    assert index.search(codes[0], 3).ids[0].tolist() == [499, 500, 501]
    assert index.search(codes[0], 2, where=np.arange(990, 1000)).ids[0].tolist() == [990, 991]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda i, q: i.search(q, 0), "k must be at least 1. Got 0"),
        (lambda i, q: i.search(q, 2.5), "k must be a whole number"),
        (lambda i, q: i.search(q, 1, bits=96), r"between 1 and 64 \(this index stores 64-bit codes\). Got 96"),
        (lambda i, q: i.search(q, 1, bits=0), "Got 0"),
        (lambda i, q: i.search(q, 1, weights=np.full(64, np.nan)), "finite"),
        (lambda i, q: i.search(q, 1, weights=-np.ones(64)), "not negative"),
        (lambda i, q: i.search(q, 1, weights=np.ones(63)), "weights must be"),
        (lambda i, q: i.search(q, 1, threads=0), "threads must be"),
        (lambda i, q: i.search(q, 1, where=[-1]), "ids must be between"),
        (lambda i, q: i.search(q, 1, where=[0.5]), "whole numbers"),
        (lambda i, q: i.search(q.packed, 1), "wrap packed bits"),
        (lambda i, q: i.lookup(q), "exactly one of radius"),
        (lambda i, q: i.lookup(q, 1, max_distance=1.0), "exactly one of radius"),
        (lambda i, q: i.lookup(q, -1), "radius must be"),
        (lambda i, q: i.lookup(q, 1, weights=np.ones(64)), "max_distance with weights"),
        (lambda i, q: i.lookup(q, max_distance=np.nan), "max_distance must be"),
        (lambda i, q: i.add(q, [5, 5]), "given twice"),
        (lambda i, q: i.add(q, [1, 100]), "already in this index"),
        (lambda i, q: i.add(q, [1000]), "one id a code"),
        (lambda i, q: bs.ExactIndex(q.packed), "wrap packed bits"),
    ],
)
def test_bad_input_is_refused_with_a_reason(call, message):
    world = oracle.world(0, 50, 64, n_queries=2, automatic=True)
    index = bs.ExactIndex(world.codes)
    with pytest.raises(InputError, match=message):
        call(index, world.queries)
    assert len(index) == 50


def test_codes_of_another_model_are_refused():
    packed = np.zeros((2, 8), np.uint8)
    index = bs.ExactIndex(bs.Codes.from_packed(packed, model="a"))
    for other in (
        bs.Codes.from_packed(packed, model="b"),
        bs.Codes.from_packed(packed[:, :4], model="a"),
        bs.Codes.from_packed(packed, np.arange(64, 0, -1)),
    ):
        for call in (lambda o: index.search(o, 1), lambda o: index.lookup(o, 1), index.add):
            with pytest.raises(ModelMismatch):
                call(other)
    assert len(index.search(bs.Codes.from_packed(packed), 1)) == 2  # no model named, equal weights


def test_a_strategy_that_does_not_exist():
    index = bs.ExactIndex(bs.Codes.from_packed(np.zeros((1, 1), np.uint8)))
    index.strategy = "magic"
    with pytest.raises(InputError, match="strategy must be one of"):
        index.search(bs.Codes.from_packed(np.zeros((1, 1), np.uint8)), 1)


def test_a_closed_index_says_so():
    with bs.ExactIndex(bs.Codes.from_packed(np.zeros((1, 1), np.uint8))) as index:
        assert "1 x 8 bits" in repr(index)
    with pytest.raises(InputError, match="closed"):
        len(index)
