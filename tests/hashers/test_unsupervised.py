import numpy as np
import pytest

from bitscale.data.splits import Labelled
from bitscale.errors import InputError
from bitscale.hamming import distances
from bitscale.hashers import load_hasher, make_hasher
from bitscale.metrics import expected_ap, mean, rank
from tests.hashers.clusters import NAMES, features

TRAIN, QUERY = features(500, seed=1), features(150, seed=2)


def make(n_bits=32, **options):
    return make_hasher("unsupervised", n_bits=n_bits, features="none", **options)


def scored(codes):
    relevant = QUERY.labels[:, None] == QUERY.labels
    ranking = rank(distances(codes, codes), relevant, left_out=[np.array([i]) for i in range(len(QUERY))])
    return mean(expected_ap(ranking)).value


def test_does_not_look_at_labels():
    other = Labelled(TRAIN.images, np.random.default_rng(0).permutation(TRAIN.labels), NAMES)
    assert make().fit(other).fingerprint == make().fit(TRAIN).fingerprint


def test_bits_are_ordered_and_weighted_by_what_they_explain():
    hasher = make().fit(TRAIN)
    x = np.asarray(TRAIN.images)
    values = (x - x.mean(axis=0)) @ hasher.arrays["matrix"]
    explained = values.var(axis=0)
    np.testing.assert_allclose(hasher.bit_weights, explained / explained[0], rtol=2e-3)
    assert (np.diff(hasher.bit_weights) <= 0).all()
    gram = hasher.arrays["matrix"].T @ hasher.arrays["matrix"]
    np.testing.assert_allclose(gram, np.eye(32), atol=1e-5)  # nothing is told twice


def test_the_first_bits_hold_the_first_axes_and_nothing_else():
    """The first 8 bits of a longer code are those of a code of 8 bits, turned within themselves."""
    long, short = make().fit(TRAIN).arrays["matrix"][:, :8], make(8).fit(TRAIN).arrays["matrix"]
    np.testing.assert_allclose(long @ long.T, short @ short.T, atol=1e-4)


def test_short_codes_beat_those_of_a_rotation_cut_short():
    codes = make().fit(TRAIN).encode(QUERY.images)
    itq = make_hasher("itq", n_bits=32, features="none").fit(TRAIN).encode(QUERY.images)
    assert scored(codes.truncate(8)) > scored(itq.truncate(8)) + 0.1
    assert scored(codes) > scored(itq) - 0.05


def test_odd_lengths_and_directions_without_variance():
    assert make(13).fit(TRAIN).encode(QUERY.images).n_bits == 13
    flat = np.zeros((40, 12), np.float32)
    flat[:, :3] = np.random.default_rng(0).normal(size=(40, 3))
    hasher = make(12).fit(Labelled(flat, np.zeros(40, np.int64), ("",)))
    assert (hasher.bit_weights > 0).all()
    assert len(hasher.encode(flat)) == 40
    with pytest.raises(InputError, match="at most one bit a principal axis"):
        make(12).fit(Labelled(flat[:, :8], np.zeros(40, np.int64), ("",)))


def test_a_file_with_rising_weights_is_refused(tmp_path):
    hasher = make().fit(TRAIN)
    arrays = dict(hasher.arrays)
    with pytest.raises(InputError, match="never increase"):
        make().adopt(arrays | {"weights": arrays["weights"][::-1].copy()})
    hasher.save(tmp_path / "u.safetensors")
    again = load_hasher(tmp_path / "u.safetensors")
    assert again.encode(QUERY.images) == hasher.encode(QUERY.images)
