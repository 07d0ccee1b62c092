import numpy as np
import pytest

from bitscale.data.splits import Labelled
from bitscale.errors import InputError
from bitscale.hamming import distances
from bitscale.hashers import make_hasher
from bitscale.metrics import expected_ap, mean, rank
from tests.hashers.clusters import NAMES, features

TRAIN, QUERY = features(500, seed=1), features(150, seed=2)


def scored(codes):
    relevant = QUERY.labels[:, None] == QUERY.labels
    ranking = rank(distances(codes, codes), relevant, left_out=[np.array([i]) for i in range(len(QUERY))])
    return mean(expected_ap(ranking)).value


def make(**options):
    return make_hasher("unsupervised", n_bits=32, features="none", clusters=10, iterations=100, **options)


def test_does_not_look_at_labels():
    other = Labelled(TRAIN.images, np.random.default_rng(0).permutation(TRAIN.labels), NAMES)
    assert make().fit(other).fingerprint == make().fit(TRAIN).fingerprint


def test_short_codes_beat_those_of_a_rotation_cut_short():
    codes = make().fit(TRAIN).encode(QUERY.images)
    itq = make_hasher("itq", n_bits=32, features="none").fit(TRAIN).encode(QUERY.images)
    assert scored(codes) > scored(itq)
    assert scored(codes.truncate(8)) > scored(itq.truncate(8)) + 0.1


def test_bad_settings():
    with pytest.raises(InputError, match="clusters"):
        make_hasher("unsupervised", n_bits=8, clusters=1)
