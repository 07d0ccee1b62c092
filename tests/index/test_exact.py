"""Exact means exact: ids and distances against brute force, for every way of searching."""

import os
import resource
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bitscale as bs
from bitscale.errors import InputError, ModelMismatch
from bitscale.index import planner, segment
from bitscale.index.call import MODES
from bitscale.native import choose
from bitscale.native.compiled import STRAYS
from tests import oracle
from tests.conftest import endurance
from tests.kernels import COMPILED, KERNELS

KINDS = ("clusters", "random", "few")
WEIGHTINGS = ("uniform", "steps", "strong", "random", "zeros")


def test_a_chosen_kernel_leaves_the_others_alone():
    index = bs.ExactIndex(bs.Codes.from_packed(np.zeros((1, 1), np.uint8)))
    before = index.describe()["kernel"]
    bs.ExactIndex(bs.Codes.from_packed(np.zeros((1, 1), np.uint8)), kernel=choose("portable"))
    assert index.describe()["kernel"] == before


def check_search(index, codes, ids, queries, k, threads=1, where=None, allowed=None, strategy="auto", **how):
    keep = np.ones(len(ids), bool) if allowed is None else np.isin(ids, allowed)
    want = oracle.search(codes[np.flatnonzero(keep)], ids[keep], queries, k, **how)
    hits = index.search(queries, k, threads=threads, where=where, strategy=strategy, **how)
    assert np.array_equal(hits.ids, want[0])
    assert np.array_equal(hits.distances, want[1])


@pytest.mark.slow
@settings(max_examples=endurance(4000))
@given(
    seed=st.integers(0, 2**32),
    n=st.one_of(st.integers(0, 200), st.integers(200, 6000), st.integers(6000, 20_000)),
    n_bits=st.one_of(st.integers(1, 128), st.integers(129, 256), st.integers(257, 1024)),
    kind=st.sampled_from(KINDS),
    weighting=st.sampled_from(WEIGHTINGS),
    kernel=st.sampled_from(KERNELS),
    strategy=st.sampled_from(tuple(MODES)),
    threads=st.integers(1, 2),
    low=st.booleans(),  # thresholds so low that small worlds have several tables
    data=st.data(),
)
@example(
    seed=1,
    n=20_000,
    n_bits=64,
    kind="random",
    weighting="uniform",
    kernel=KERNELS[0],
    strategy="auto",
    threads=2,
    low=False,
    data=None,
)
def test_search_and_lookup_equal_brute_force(seed, n, n_bits, kind, weighting, kernel, strategy, threads, low, data):
    n = min(n, 1_000_000 // n_bits)  # brute force over long codes takes long
    tables = mock.patch.object(segment, "MIN_FOR_TABLES", 64 if low else segment.MIN_FOR_TABLES)
    probing = mock.patch.object(planner, "MIN_FOR_PROBING", 16 if low else planner.MIN_FOR_PROBING)
    with tables, probing:
        check_everything(seed, n, n_bits, kind, weighting, kernel, strategy, threads, data)


def check_everything(seed, n, n_bits, kind, weighting, kernel, strategy, threads, data):
    world = oracle.world(seed, n, n_bits, kind, weighting)
    rng, codes, ids = world.rng, world.codes, world.ids
    index = bs.ExactIndex(codes[: n // 2], ids[: n // 2], kernel=choose(kernel))
    index.add(codes[n // 2 :], ids[n // 2 :])
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
    check_search(index, codes, ids, world.queries, k, threads, where, allowed, strategy, bits=bits)
    other = rng.random((len(world.queries), n_bits) if rng.random() < 0.5 else n_bits)
    check_search(index, codes, ids, world.queries, k, threads, where, allowed, strategy, bits=bits, weights=other)
    other[..., rng.random(n_bits) < 0.3] = 0
    if (other > 0).any(axis=-1).all():
        check_search(index, codes, ids, world.queries, k, threads, where, allowed, strategy, bits=bits, weights=other)
    else:
        other = np.ones(n_bits)
    values = rng.uniform(-1, 1, (2, n_bits)) * (rng.random(n_bits) < 0.8)  # some bits say nothing
    relaxed = bs.Relaxed(values, codes.bit_weights)
    check_search(index, codes, ids, relaxed, k, threads, where, allowed, strategy, bits=bits)
    keep = np.ones(len(ids), bool) if allowed is None else np.isin(ids, allowed)
    codes, ids = codes[np.flatnonzero(keep)], ids[keep]
    radius = int(rng.integers(0, 4))
    found = index.lookup(world.queries, radius, bits=bits, where=where, threads=threads, strategy=strategy)
    assert list(found) == oracle.within(bs.hamming.counts(world.queries, codes, bits=bits), ids, radius)
    for queries, how in ((world.queries, {}), (world.queries, {"weights": other}), (relaxed, {})):
        distances = bs.hamming.distances(queries, codes, bits=bits, **how)
        limit = float(np.quantile(distances, 0.02)) if distances.size else 1.0
        options = {"bits": bits, "where": where, "threads": threads, "strategy": strategy, **how}
        found = index.lookup(queries, max_distance=limit, **options)
        assert list(found) == oracle.within(distances, ids, limit)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_bits", [24, 64, 100])
def test_tables_of_many_codes(kernel, n_bits):
    """Enough distinct codes for several tables, and every strategy on them."""
    world = oracle.world(5, 40_000, n_bits, "random", "random", n_queries=6, automatic=True)
    index = bs.ExactIndex(world.codes, kernel=choose(kernel))
    for strategy in MODES:
        for bits in (n_bits, 20, 16, 11, 3):
            for k in (1, 50):
                check_search(index, world.codes, world.ids, world.queries, k, strategy=strategy, bits=bits)
            counts = bs.hamming.counts(world.queries, world.codes, bits=bits)
            found = index.lookup(world.queries, 1, bits=bits, strategy=strategy)
            assert list(found) == oracle.within(counts, world.ids, 1)


@pytest.mark.parametrize("n_bits", [1, 500, 1024])
def test_extreme_lengths(n_bits):
    world = oracle.world(7, 3000, n_bits, "clusters", "random", automatic=True)
    index = bs.ExactIndex(world.codes)
    for bits in {1, n_bits // 2 or 1, n_bits}:
        check_search(index, world.codes, world.ids, world.queries, 20, bits=bits)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_long_codes(kernel, weighting):
    """Every length of a last group of planes, and a bit that outweighs all others together."""
    for n_bits in (129, 137, 145, 153, 161, 256, 511, 1024):
        world = oracle.world(n_bits, 700, n_bits, "clusters", weighting, automatic=True)
        index = bs.ExactIndex(world.codes, kernel=choose(kernel))
        for bits in (n_bits, n_bits - 1, 130):
            if bits <= n_bits:
                check_search(index, world.codes, world.ids, world.queries, 9, strategy="flat", bits=bits)
        heavy = np.ones(n_bits)
        heavy[n_bits // 2] = 1e4
        check_search(index, world.codes, world.ids, world.queries, 9, strategy="flat", weights=heavy)
        check_search(index, world.codes, world.ids, world.codes[:3], 1, strategy="flat")  # nothing is nearer than 0


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("n_bits", "kind"), [(129, "clusters"), (250, "few"), (264, "clusters"), (1024, "clusters")])
def test_long_codes_whose_bits_weigh_the_same(kernel, n_bits, kind):
    """With ties, filters, removed items, fewer bits, last bytes that count in part, and weights of a query's own."""
    world = oracle.world(n_bits, 900, n_bits, kind, "uniform")
    codes, ids = world.codes, world.ids
    index = bs.ExactIndex(codes[:500], ids[:500], kernel=choose(kernel))
    index.add(codes[500:], ids[500:])
    index.remove(ids[::7])
    left = np.flatnonzero(np.arange(len(ids)) % 7)
    codes, ids = codes[left], ids[left]
    allowed = ids[::2]
    for strategy in ("flat", "auto"):
        for bits in (n_bits, n_bits - 3, 129):
            check_search(index, codes, ids, world.queries, 9, strategy=strategy, bits=bits)
            counts = bs.hamming.counts(world.queries, codes, bits=bits)
            for radius in (0, n_bits // 4, n_bits):
                found = index.lookup(world.queries, radius, bits=bits, strategy=strategy)
                assert list(found) == oracle.within(counts, ids, radius)
        check_search(index, codes, ids, world.queries, 9, 2, index.prepare(allowed), allowed, strategy)
        check_search(index, codes, ids, world.queries, 9, strategy=strategy, weights=np.full(n_bits, 0.3))
        partly = np.where(np.arange(n_bits) < n_bits - 5, 2.0, 0.0)
        check_search(index, codes, ids, world.queries, 9, strategy=strategy, weights=partly)
        check_search(index, codes, ids, codes[:3], 1, strategy=strategy)  # nothing is nearer than 0


def crowds(n_bits, n=20_000, n_strays=400):
    """Codes around a few centres, some far from all of them, and queries of both kinds."""
    world = oracle.world(n_bits, n, n_bits, "clusters", "random", n_queries=6, automatic=True)
    strays = world.rng.integers(0, 256, (n_strays + 2, world.codes.packed.shape[1]), dtype=np.uint8)
    spare = strays.shape[1] * 8 - n_bits
    strays[:, -1] &= 0xFF << spare & 0xFF
    weights = world.codes.bit_weights
    codes = bs.Codes(np.concatenate([world.codes.packed, strays[:n_strays]]), weights)
    queries = bs.Codes(np.concatenate([world.queries.packed, strays[n_strays:]]), weights)
    return codes, np.arange(len(codes)), queries


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_bits", [136, 250, 1024])
def test_long_codes_that_crowd_around_centres(kernel, n_bits):
    codes, ids, queries = crowds(n_bits)
    index = bs.ExactIndex(codes, kernel=choose(kernel))
    for bits in (n_bits, 131):
        check_search(index, codes, ids, queries, 10, bits=bits)
        counts = bs.hamming.counts(queries, codes, bits=bits)
        assert list(index.lookup(queries, 20, bits=bits)) == oracle.within(counts, ids, 20)
    check_search(index, codes, ids, queries, 7000)  # more than any centre has
    check_search(index, codes, ids, queries, 10, threads=2, weights=np.linspace(1, 3, n_bits))
    some = np.flatnonzero(np.arange(len(ids)) % 3 == 0)
    check_search(index, codes, ids, queries, 10, where=index.prepare(some), allowed=some)
    gone = ids[::2]
    index.remove(gone)
    left = np.setdiff1d(ids, gone)
    check_search(index, codes[left], left, queries, 10)


@pytest.mark.parametrize("kernel", COMPILED)
def test_centres_out_of_reach_are_not_looked_at(kernel):
    codes, _, queries = crowds(256)
    index = bs.ExactIndex(codes, kernel=choose(kernel))
    for i in range(6):  # queries near a centre
        stats = index.search(queries[i], 10).stats
        assert stats.flat_queries == 0
        assert stats.blocks < len(codes) / 32 / 2


@pytest.mark.parametrize("kernel", COMPILED)
def test_every_crowd_has_a_centre_however_small_its_share(kernel):
    rng = np.random.default_rng(5)
    sizes = [8000] * 4 + [300] * 100  # a first sample holds about eight codes of each small one
    middles = rng.integers(0, 2, (len(sizes), 256), dtype=np.uint8)
    signs = np.repeat(middles, sizes, axis=0) ^ (rng.random((sum(sizes), 256)) < 0.08)
    index = bs.ExactIndex(bs.Codes.from_packed(np.packbits(signs, axis=1)))
    centres = choose(kernel).centres(index._now().segments[0])
    assert centres is not None
    assert len(centres.codes) == len(sizes)
    assert np.count_nonzero(centres.homes == 255) == 0


@pytest.mark.parametrize("kernel", COMPILED)
def test_every_code_is_in_a_block_of_its_centre_or_copied_beside_its_like(kernel):
    codes, _, _ = crowds(256)
    segment = bs.ExactIndex(codes)._now().segments[0]
    centres = choose(kernel).centres(segment)
    strays, n = centres.strays, len(centres.codes)
    assert 0 < len(strays.positions) <= segment.n_codes / STRAYS
    for c in range(n + 1):
        rows = np.flatnonzero(centres.homes == (c if c < n else 255))
        listed = np.isin(rows // 32, centres.blocks[centres.begins[c] : centres.begins[c + 1]])
        np.testing.assert_array_equal(strays.positions[strays.offsets[c] : strays.offsets[c + 1]], rows[~listed])
    copies = strays.blocks.transpose(0, 2, 1).reshape(-1, segment.n_bytes)[: len(strays.positions)]
    np.testing.assert_array_equal(copies, segment.some_codes(strays.positions))


def test_large_batches_and_large_k_agree_with_small_ones():
    world = oracle.world(8, 3000, 40, n_queries=300, automatic=True)
    index = bs.ExactIndex(world.codes)
    whole = index.search(world.queries, 3000, threads=2)
    assert np.array_equal(whole.ids[:, :7], index.search(world.queries, 7).ids)
    assert np.array_equal(whole.ids[17], index.search(world.queries[17], 3000).ids[0])


def test_lookup_does_not_scan_when_the_ball_is_small():
    world = oracle.world(9, 60_000, 64, "random", automatic=True)
    index = bs.ExactIndex(world.codes)
    stats = index.lookup(world.queries, 2).stats
    assert stats.flat_queries == 0
    assert stats.codes < 60_000


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
        (lambda i, q: bs.ExactIndex(q, threads=-1), "threads must be"),
        (lambda i, q: bs.ExactIndex(q, threads=1.5), "threads must be"),
        (lambda i, q: i.add(bs.Relaxed(q.signs(), q.bit_weights)), r"take .codes\(\)"),
        (lambda i, q: i.search(q, 2**70), "k times the number of queries"),
        (lambda i, q: i.search(q, 1, weights="heavy"), "weights must be numbers"),
        (lambda i, q: i.search(q, 1, where=np.ones(50, bool)), "np.flatnonzero"),
        (lambda i, q: i.lookup(q, max_distance="near"), "max_distance must be"),
        (lambda i, q: i.get([3, 99]), "id 99 is not in this index"),
    ],
)
def test_bad_input_is_refused_with_a_reason(call, message):
    world = oracle.world(0, 50, 64, n_queries=2, automatic=True)
    index = bs.ExactIndex(world.codes)
    with pytest.raises(InputError, match=message):
        call(index, world.queries)
    assert len(index) == 50


def test_checks_hold_for_a_call_that_was_made_before():
    """Arguments equal to good ones, but no numbers of the right kind, and other queries under the same arguments."""
    world = oracle.world(0, 50, 64, "random", n_queries=2, automatic=True)
    index = bs.ExactIndex(world.codes)
    good = [index.search(world.queries, 1, bits=1, threads=1) for _ in range(2)]
    assert np.array_equal(good[0].ids, good[1].ids)
    for name in ("k", "bits", "threads"):
        for bad in (True, 1.0):
            with pytest.raises(InputError, match=f"{name} must be"):
                index.search(world.queries, **{"k": 1, "bits": 1, "threads": 1, name: bad})
    index.search(world.queries, 2**20)
    many = bs.Codes.from_packed(np.zeros((257, 8), np.uint8), world.codes.bit_weights)
    with pytest.raises(InputError, match="k times the number of queries"):
        index.search(many, 2**20)
    other = bs.Codes.from_packed(world.queries.packed, np.ones(64))
    for _ in range(2):
        with pytest.raises(ModelMismatch):
            index.search(other, 1, bits=1)
        assert len(index.search(world.queries, 1, bits=1)) == 2


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
    with pytest.raises(InputError, match="strategy must be one of"):
        index.search(bs.Codes.from_packed(np.zeros((1, 1), np.uint8)), 1, strategy="magic")


def test_no_queries_no_trouble():
    world = oracle.world(0, 50, 20, automatic=True)
    index = bs.ExactIndex(world.codes)
    relaxed = bs.Relaxed(np.zeros((0, 20)), world.codes.bit_weights)
    for none in (world.queries[:0], relaxed):
        assert index.search(none, 3).ids.shape == (0, 3)
        assert index.search(none, 3, weights=np.ones((0, 20))).ids.shape == (0, 3)
        assert len(index.lookup(none, 1)) == len(index.lookup(none, max_distance=1.0)) == 0


def test_a_distance_that_covers_everything():
    world = oracle.world(0, 50, 20, automatic=True)
    index = bs.ExactIndex(world.codes)
    for far in (1e308, np.inf, 10**6):
        assert len(index.lookup(world.queries[:1], max_distance=far).ids) == 50


def test_the_largest_ids():
    codes = bs.Codes.from_packed(np.arange(3, dtype=np.uint8)[:, None])
    index = bs.ExactIndex(codes, [0, 2**62, 2**63 - 1])
    assert index.search(codes[2], 1).ids[0, 0] == 2**63 - 1
    assert index.ids().tolist() == [0, 2**62, 2**63 - 1]
    with pytest.raises(InputError, match="no automatic ids left"):
        index.add(codes[:1])


def test_items_by_id():
    world = oracle.world(3, 300, 20)
    index = bs.ExactIndex(world.codes, world.ids)
    index.remove(world.ids[:10])
    assert index.get(world.ids[50:60]) == world.codes[50:60]
    assert np.array_equal(index.ids(), np.sort(world.ids[10:]))
    assert int(world.ids[20]) in index
    assert int(world.ids[3]) not in index
    assert "x" not in index
    assert -1 not in index


def test_results_of_some_queries():
    world = oracle.world(3, 300, 20, automatic=True)
    index = bs.ExactIndex(world.codes)
    hits, near = index.search(world.queries, 3), index.lookup(world.queries, 3)
    assert hits[1:3][0] == hits[1]
    assert len(hits[1:3]) == 2
    assert list(near)[1:3] == [near[1], near[2]]
    with pytest.raises(IndexError):
        near[99]


def test_more_threads_than_the_system_gives():
    """Threads that cannot be started are done without; here each asks for 16 GB of addresses, and there are 40."""
    code = (
        "import resource, threading, numpy as np, bitscale as bs\n"
        "codes = bs.Codes.from_packed(np.random.default_rng(0).integers(0, 256, (300_000, 8), dtype=np.uint8))\n"
        "index = bs.ExactIndex(codes, tables=False)\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (40 << 30), used + (40 << 30)))\n"
        "print(index.search(codes[:3], 2, threads=200, strategy='flat').ids[:, 0].tolist())\n"
        "end = threading.Event()\n"
        "try:\n"
        "    for _ in range(3): threading.Thread(target=end.wait).start()\n"
        "except RuntimeError: print('not even three')\n"
        "end.set()"
    )
    stack = (16 << 30, resource.getrlimit(resource.RLIMIT_STACK)[1])  # what a new thread asks for
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, stack),
    )  # fmt: skip
    assert out.stdout == "[0, 1, 2]\nnot even three\n", out.stderr


def test_a_closed_index_says_so():
    with bs.ExactIndex(bs.Codes.from_packed(np.zeros((1, 1), np.uint8))) as index:
        assert "1 x 8 bits" in repr(index)
    with pytest.raises(InputError, match="closed"):
        len(index)
