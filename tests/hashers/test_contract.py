"""One contract over all methods: what `fit` and `encode` promise, whoever keeps the promise."""

import numpy as np
import pytest

from bitscale.codes import same_space
from bitscale.data.labelled import Labelled
from bitscale.data.split import LeftOut, Split
from bitscale.errors import InputError, NotFitted
from bitscale.hamming import distances
from bitscale.hashers import base, hasher_names, load_hasher, make_hasher
from bitscale.metrics import expected_ap, mean, rank
from tests.hashers.clusters import NAMES, QUICK, features, images

CLASSICAL = ("lsh", "sh", "itq", "pca-rr", "unsupervised")  # the others take seconds to fit
pytestmark = pytest.mark.parametrize(
    "name", [name if name in CLASSICAL else pytest.param(name, marks=pytest.mark.slow) for name in hasher_names()]
)

WEIGHTED = ("bs-drsch", "bs-dsch", "nested")  # methods that learn what a bit weighs
REAL = ("euclidean",)  # `binary = False`, the one declared difference: real values, ranked by squared distance
TRAIN, QUERY = features(500, seed=1), features(120, seed=2)


def make(name, n_bits=16, **options):
    return make_hasher(name, n_bits=n_bits, **{"features": "none", **QUICK.get(name, {}), **options})


class Fitted(dict):
    """Each method fitted once, when it is asked for."""

    def __missing__(self, name):
        self[name] = make(name).fit(TRAIN)
        return self[name]


@pytest.fixture(scope="module")
def fitted():
    return Fitted()


@pytest.mark.slow
@pytest.mark.parametrize("n_bits", [8, 12, 24, 64])
def test_codes_have_the_length_asked_for(name, n_bits):
    codes = make(name, n_bits).fit(TRAIN).encode(QUERY.images)
    if name in REAL:
        assert codes.values.shape == (120, n_bits)
        return
    assert codes.n_bits == n_bits
    assert codes.packed.shape == (120, (n_bits + 7) // 8)
    if name in WEIGHTED:
        assert (np.diff(codes.bit_weights) <= 0).all()
    else:
        np.testing.assert_array_equal(codes.bit_weights, np.ones(n_bits))


@pytest.mark.slow
def test_the_seed_decides_everything(name, fitted):
    again = make(name).fit(TRAIN)
    assert again.fingerprint == fitted[name].fingerprint
    assert again.encode(QUERY.images) == fitted[name].encode(QUERY.images)
    if name != "sh":  # the one method without chance
        assert make(name, seed=1).fit(TRAIN).fingerprint != again.fingerprint


def test_saved_and_loaded_it_is_the_same(name, fitted, tmp_path):
    fitted[name].save(tmp_path / "model.safetensors")
    loaded = load_hasher(tmp_path / "model.safetensors")
    assert type(loaded) is type(fitted[name])
    assert loaded.settings == fitted[name].settings
    assert (loaded.seed, loaded.features) == (fitted[name].seed, fitted[name].features)
    assert loaded.encode(QUERY.images) == fitted[name].encode(QUERY.images)
    if name not in REAL:
        np.testing.assert_array_equal(loaded.relax(QUERY.images).values, fitted[name].relax(QUERY.images).values)


def test_not_fitted(name, tmp_path):
    for use in (
        lambda hasher: hasher.encode(QUERY.images),
        lambda hasher: hasher.relax(QUERY.images),
        lambda hasher: hasher.save(tmp_path / "model.safetensors"),
        lambda hasher: hasher.fingerprint,
    ):
        with pytest.raises(NotFitted, match=r"fit\(train\)"):
            use(make(name))
    assert not list(tmp_path.iterdir())


def test_beats_chance(name, fitted):
    codes = fitted[name].encode(QUERY.images)
    between = codes.distances(codes) if name in REAL else distances(codes, codes)
    left_out = LeftOut.itself(len(QUERY))
    chance = Split("clusters", "P0", TRAIN, QUERY, QUERY, left_out).chance_map()
    relevant = QUERY.labels[:, None] == QUERY.labels
    ranking = rank(between, relevant, left_out=[left_out(i) for i in range(len(QUERY))])
    assert mean(expected_ap(ranking)).value > 1.4 * chance


def test_only_fit_learns(name, fitted):
    before = {key: array.copy() for key, array in fitted[name].arrays.items()}
    whole = fitted[name].encode(QUERY.images)
    parts = [fitted[name].encode(QUERY.images[rows]) for rows in (slice(0, 50), slice(50, 51), slice(51, None))]
    if name in REAL:
        np.testing.assert_allclose(np.concatenate([part.values for part in parts]), whole.values, atol=1e-4)
    else:
        np.testing.assert_array_equal(np.concatenate([part.packed for part in parts]), whole.packed)
    for key, array in fitted[name].arrays.items():
        np.testing.assert_array_equal(array, before[key])


def test_relaxed_values_have_the_signs_of_the_codes(name, fitted):
    assert fitted[name].binary == (name not in REAL)
    if name in REAL:
        with pytest.raises(InputError, match="no bits to relax"):
            fitted[name].relax(QUERY.images)
        return
    relaxed = fitted[name].relax(QUERY.images)
    assert relaxed.codes() == fitted[name].encode(QUERY.images)
    assert 0.2 < np.abs(relaxed.values).mean() < 0.95  # neither vanishing nor already signs


def test_codes_name_their_model(name, fitted):
    codes = fitted[name].encode(QUERY.images)
    assert codes.model == fitted[name].fingerprint
    other = make(name).fit(features(400, seed=5)).encode(QUERY.images)
    assert codes.model != other.model
    assert name in REAL or not same_space(codes, other)


@pytest.mark.slow
def test_images_through_an_extractor(name):
    train, query = images(300, seed=1), images(30, seed=2)
    hasher = make(name, features="pixels").fit(train)
    codes = hasher.encode(query.images)
    assert len(codes) == 30
    assert hasher.encode(query.images.pixels) == codes  # plain arrays of images will do


@pytest.mark.slow
def test_several_labels_an_image(name):
    several = np.zeros((300, 4), bool)
    several[np.arange(300), np.arange(300) % 4] = True
    several[::7, 2] = True
    several[::31] = False  # and some without any
    part = features(300, seed=3)
    codes = make(name).fit(Labelled(part.images, several, NAMES[:4])).encode(QUERY.images)
    assert len(codes) == len(QUERY)


def test_large_sets_are_encoded_in_blocks(name, fitted, monkeypatch):
    whole = fitted[name].encode(QUERY.images)
    monkeypatch.setattr(base, "ENCODE_ROWS", 37)
    again = fitted[name].encode(QUERY.images)
    if name in REAL:
        np.testing.assert_allclose(again.values, whole.values, atol=1e-4)
    else:
        assert again == whole


def test_no_images_give_no_codes(name, fitted):
    if name in REAL:
        assert fitted[name].encode(QUERY.images[:0]).values.shape == (0, 16)
        return
    assert fitted[name].encode(QUERY.images[:0]).packed.shape == (0, 2)
    assert fitted[name].relax(QUERY.images[:0]).values.shape == (0, 16)


def test_bad_input(name, fitted):
    for n_bits in (0, 1025, 8.0, True):
        with pytest.raises(InputError, match="n_bits must be a whole number"):
            make(name, n_bits)
    with pytest.raises(InputError, match="fitted on 80 features"):
        fitted[name].encode(np.zeros((3, 7), np.float32))
    with pytest.raises(InputError, match="float32"):
        fitted[name].encode(np.zeros((3, 8, 10), np.uint8))
    with pytest.raises(InputError, match="NaN or infinity"):
        fitted[name].encode(np.full((3, 80), np.nan, np.float32))
    with pytest.raises(InputError, match="or scale them"):
        make(name).fit(Labelled(TRAIN.images * np.float32(1e20), TRAIN.labels, TRAIN.label_names))
    for seed in (-1, 1.5, True, "0"):
        with pytest.raises(InputError, match="seed must be a whole number"):
            make(name, seed=seed)
    with pytest.raises(InputError, match="at least two images"):
        make(name).fit(features(1, seed=0))
    with pytest.raises(InputError, match="has no setting 'colour'"):
        make(name, colour=3)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 20])
def test_few_or_equal_items_work_or_are_refused_clearly(name, n):
    for part in (features(n, seed=0), Labelled(np.ones((n, 80), np.float32), np.arange(n) % 2, ("a", "b"))):
        try:
            codes = make(name).fit(part).encode(part.images)
        except InputError:  # too few for principal axes, or nothing to tell them apart by
            continue
        assert len(codes) == n
