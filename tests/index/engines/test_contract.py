"""One contract for every index, embedded or in a real server: the answers of brute force, ids kept, all or nothing."""

import numpy as np
import pytest

import bitscale as bs
from bitscale.cluster.sharded import ShardedIndex
from bitscale.errors import InputError, ModelMismatch
from bitscale.index.engines import connect
from bitscale.index.engines.forms import Beside, Facts, Parted
from tests import oracle, servers
from tests.cluster import nodes
from tests.conftest import TORTURE

PARTED = "milvus in partitions"
KINDS = ("embedded", "sharded", *servers.ENGINES, PARTED)
N, QUERIES = (20_000, 1_000) if TORTURE else (2_000, 20)
pytestmark = pytest.mark.slow


def make(kind, name, codes, folder):
    """An empty index for such codes."""
    if kind == "embedded":
        return bs.ExactIndex(codes[:0])
    if kind == "sharded":
        nodes.connect()
        return ShardedIndex.create(folder / name, codes[:0], shards=2)
    address = servers.address(kind.split()[0], name)
    for left in connect.existing(address):
        left.drop()
    return connect.create(address, Facts.of(codes, parted=Parted("camera") if kind == PARTED else None))


def spread(index, ids):
    """Move items between partitions, by the last digit of the id."""
    index.replace_beside(ids, Beside.nothing(len(ids))._replace(keys=ids % 10))


@pytest.fixture(scope="module", params=KINDS)
def filled(request, tmp_path_factory):
    """A world of codes with many ties, in an index that answers."""
    world = oracle.world(7, N, 64, "clusters", "steps", QUERIES)
    with make(request.param, "contract", world.codes, tmp_path_factory.mktemp("index")) as index:
        half = N // 2
        index.add(world.codes[:half], world.ids[:half])
        index.add(world.codes[half:], world.ids[half:])
        if request.param == PARTED:
            spread(index, world.ids)
        yield index, world
        if hasattr(index, "drop"):
            index.drop()


@pytest.fixture(params=KINDS)
def empty(request, tmp_path):
    """An index of three-bit codes with nothing in it."""
    codes = bs.Codes.from_packed(np.zeros((0, 1), np.uint8), [4.0, 2.0, 1.0], model="m")
    with make(request.param, "empty", codes, tmp_path) as index:
        yield index
        if hasattr(index, "drop"):
            index.drop()


def three_bits(*numbers):
    return bs.Codes.from_packed(np.array(numbers, np.uint8)[:, None] << 5, [4.0, 2.0, 1.0], model="m")


def check(index, world, k, keep=None, **how):
    rows = np.arange(N) if keep is None else keep
    queries = how.pop("queries", world.queries)
    given = {key: value for key, value in how.items() if key in ("bits", "weights")}
    ids, distances = oracle.search(world.codes[rows], world.ids[rows], queries, k, **given)
    hits = index.search(queries, k, **how)
    assert np.array_equal(hits.distances, distances)
    assert np.array_equal(hits.ids, ids)
    assert hits.tied_beyond is None or not hits.tied_beyond.any()


@pytest.mark.parametrize("bits", [64, 37, 16, 8])
def test_search_equals_brute_force_at_every_length(filled, bits):
    check(*filled, 10, bits=bits)


def test_weights_of_one_call_and_relaxed_queries(filled):
    index, world = filled
    some = world.queries[:5]
    rng = np.random.default_rng(0)
    check(index, world, 7, queries=some, weights=rng.random(64), bits=50)
    check(index, world, 7, queries=some, weights=rng.random((5, 64)) * (rng.random((5, 64)) < 0.7))
    relaxed = bs.Relaxed(rng.uniform(-1, 1, (5, 64)), world.codes.bit_weights)
    check(index, world, 7, queries=relaxed)
    check(index, world, 7, queries=relaxed, bits=16)


def test_filters_prepared_or_not(filled):
    index, world = filled
    keep = np.sort(np.random.default_rng(1).permutation(N)[: N // 3])
    allowed = np.concatenate([world.ids[keep], [10**12]])
    check(index, world, 10, keep, where=allowed, bits=16)
    check(index, world, 10, keep, where=index.prepare(allowed))
    check(index, world, 5, np.empty(0, np.int64), where=np.empty(0, np.int64), queries=world.queries[:2])


def test_lookup_equals_brute_force(filled):
    index, world = filled
    some = world.queries[:3]
    near = index.lookup(some, 2, bits=24)
    assert list(near) == oracle.within(bs.hamming.counts(some, world.codes, bits=24), world.ids, 2)
    distances = bs.hamming.distances(some, world.codes)
    limit = float(np.quantile(distances, 0.05))
    assert list(index.lookup(some, max_distance=limit)) == oracle.within(distances, world.ids, limit)
    relaxed = bs.Relaxed(np.random.default_rng(2).uniform(-1, 1, (2, 64)), world.codes.bit_weights)
    distances = bs.hamming.distances(relaxed, world.codes)
    limit = float(np.quantile(distances, 0.03))
    assert list(index.lookup(relaxed, max_distance=limit)) == oracle.within(distances, world.ids, limit)
    assert len(index.lookup(relaxed, max_distance=0.0).ids) == 0


def test_what_is_there(filled):
    index, world = filled
    assert len(index) == N
    assert np.array_equal(index.ids(), np.sort(world.ids))
    some = world.ids[[5, 3, 900, 3]]
    assert np.array_equal(index.get(some).packed, world.codes.packed[[5, 3, 900, 3]])
    assert index.holding([*some, 10**12]).tolist() == some.tolist()
    assert int(world.ids[0]) in index
    assert 10**12 not in index
    with pytest.raises(InputError, match="1000000000000 is not in this index"):
        index.get([10**12])


def test_other_models_and_bad_arguments_are_refused(filled):
    index, world = filled
    with pytest.raises(ModelMismatch):
        index.search(bs.Codes.from_packed(world.queries.packed, world.codes.bit_weights / 2), 3)
    with pytest.raises(InputError, match="bits must be between 1 and 64"):
        index.search(world.queries[:1], 3, bits=65)
    with pytest.raises(InputError, match="k must be at least 1"):
        index.search(world.queries[:1], 0)
    with pytest.raises(InputError, match="already in this index"):
        index.add(world.codes[:2], [10**13, int(world.ids[4])])
    assert 10**13 not in index
    with pytest.raises(InputError, match="given twice"):
        index.add(world.codes[:2], [10**13, 10**13])
    with pytest.raises(InputError, match="exactly one of radius"):
        index.lookup(world.queries[:1])


def test_ids_are_kept_and_never_given_out_again(empty):
    assert len(empty) == 0
    assert empty.search(three_bits(0), 2).ids.tolist() == [[-1, -1]]
    assert empty.add(three_bits(0, 7, 1)).tolist() == [0, 1, 2]
    assert empty.remove([2, 77]) == 1
    assert empty.add(three_bits(6)).tolist() == [3]
    assert empty.add(three_bits(5), [2]).tolist() == [2]
    assert empty.search(three_bits(7), 9)[0] == [(1, 0.0), (3, 1.0), (2, 2.0), (0, 7.0)]
    assert empty.search(three_bits(7), 9, bits=1)[0] == [(1, 0.0), (2, 0.0), (3, 0.0), (0, 4.0)]


def test_a_filter_leaves_out_what_came_later(empty):
    empty.add(three_bits(0, 1, 2))
    where = empty.prepare([0, 1, 2, 3])
    empty.remove([1])
    empty.add(three_bits(1, 3), [1, 3])
    assert [id for id, _ in empty.search(three_bits(0), 9, where=where)[0]] == [0, 2]
    assert [id for id, _ in empty.lookup(three_bits(0), 3, where=where)[0]] == [0, 2]
