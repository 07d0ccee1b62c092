"""Codes handed to FAISS and taken back: the same items, the same ranking."""

import faiss
import numpy as np
import pytest

import bitscale as bs
from bitscale.errors import InputError
from bitscale.index.engines.faiss import distances, from_faiss, query_vectors, to_binary_flat, to_sign_pq
from tests import oracle


@pytest.fixture
def world():
    return oracle.world(3, 500, 44, "clusters", "random", 6)


def test_binary_flat_ranks_by_plain_distance_and_comes_back(world):
    index = bs.ExactIndex(world.codes, world.ids)
    flat = to_binary_flat(index)
    found, ids = flat.search(world.queries.packed, 10)
    assert np.array_equal(found, index.search(world.queries, 10, weights=np.ones(44)).distances)
    codes, back = from_faiss(flat, world.codes.bit_weights)
    order = np.argsort(world.ids)
    assert np.array_equal(back, world.ids[order])
    assert np.array_equal(codes.packed, world.codes.packed[order])
    assert (ids >= 0).all()


@pytest.mark.parametrize("bits", [44, 20, 3])
def test_sign_pq_ranks_by_the_weights_at_every_length(world, bits):
    index = bs.ExactIndex(world.codes, world.ids)
    pq = to_sign_pq(index)
    scores, ids = pq.search(query_vectors(world.queries, bits=bits), 10)
    hits = index.search(world.queries, 10, bits=bits)
    assert np.array_equal(distances(scores, world.queries, bits=bits), hits.distances)
    assert np.isin(ids, world.ids).all()
    relaxed = bs.Relaxed(np.random.default_rng(0).uniform(-1, 1, (3, 44)), world.codes.bit_weights)
    scores, _ = pq.search(query_vectors(relaxed, bits=bits), 10)
    assert np.array_equal(distances(scores, relaxed, bits=bits), index.search(relaxed, 10, bits=bits).distances)
    codes, back = from_faiss(pq, world.codes.bit_weights)
    assert np.array_equal(codes.packed, index.get(back).packed)


def test_bare_objects_are_numbered_and_others_refused(world):
    flat = faiss.IndexBinaryFlat(48)
    flat.add(world.codes.packed)
    codes, ids = from_faiss(flat)
    assert codes.n_bits == 48
    assert ids.tolist() == list(range(500))
    with pytest.raises(InputError, match="IndexFlatL2"):
        from_faiss(faiss.IndexFlatL2(8))
    trained = faiss.IndexPQ(16, 2, 8)
    trained.train(np.random.default_rng(0).random((600, 16), np.float32))
    with pytest.raises(InputError, match="to_sign_pq"):
        from_faiss(trained)
