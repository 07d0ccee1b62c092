"""Candidates by code: one in a hundred random pairs of a large collection, any distance among few pictures."""

import numpy as np

from bitscale import Codes, ExactIndex, hamming
from bitscale.collection.duplicates.candidates import KIN, by_code, near_distance


def drawn(n):
    return Codes(np.random.default_rng(0).integers(0, 256, (n, 16), np.uint8), np.ones(128))


def test_of_few_pictures_a_copy_is_a_candidate_though_others_are_nearer_copies():
    """Equal copies are most of one in a hundred of so few pairs, and used to keep out what is less near."""
    some = drawn(12).packed
    packed = np.concatenate([some, some[:6], some[6:7] ^ np.uint8(1)])  # six again, and one not quite
    index, ids = ExactIndex(Codes(packed, np.ones(128))), np.arange(len(packed))
    pairs = np.concatenate(list(by_code(index, ids, packed, None, lambda *_: None)))
    assert [6, 18] in pairs.tolist()


def test_of_many_pictures_one_pair_in_a_hundred_is_near():
    many = drawn(1_000)
    apart = hamming.distances(many, many)[np.triu_indices(1_000, 1)]
    assert abs((apart <= near_distance(many)).mean() - KIN) < KIN / 2
