import numpy as np
import pytest

from bitscale.data.labelled import Labelled
from bitscale.errors import InputError
from bitscale.hamming import distances
from bitscale.hashers import load_hasher, make_hasher
from bitscale.hashers.prior import has_prior, read_prior
from bitscale.metrics import expected_ap, mean, rank
from tests.hashers.clusters import NAMES, features

TRAIN, QUERY = features(500, seed=1), features(150, seed=2)


def make(n_bits=32, **options):
    return make_hasher("unsupervised", n_bits=n_bits, features="none", **{"steps": 100, **options})


def scored(codes):
    relevant = QUERY.labels[:, None] == QUERY.labels
    ranking = rank(distances(codes, codes), relevant, left_out=[np.array([i]) for i in range(len(QUERY))])
    return mean(expected_ap(ranking)).value


def neighbours_kept(codes, x, k=10):
    """The share of the k nearest by codes that are among the k nearest by the cosine about the mean."""
    z = x - np.asarray(TRAIN.images).mean(axis=0)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    wanted, found = -(z @ z.T), distances(codes, codes)
    for rows in (wanted, found):
        np.fill_diagonal(rows, np.inf)
    first, second = (np.argsort(rows, axis=1, kind="stable")[:, :k] for rows in (wanted, found))
    return np.mean([len(set(a) & set(b)) / k for a, b in zip(first.tolist(), second.tolist(), strict=True)])


@pytest.mark.slow
def test_does_not_look_at_labels():
    other = Labelled(TRAIN.images, np.random.default_rng(0).permutation(TRAIN.labels), NAMES)
    assert make().fit(other).fingerprint == make().fit(TRAIN).fingerprint


@pytest.mark.slow
def test_learning_keeps_more_neighbours_than_the_start_does():
    """Of the items learned from: how far that carries to others, benchmarks/unsupervised.py measures."""
    x = np.asarray(TRAIN.images)
    start, learned = make(64, steps=0).fit(TRAIN).encode(x), make(64, steps=150).fit(TRAIN).encode(x)
    gains = [neighbours_kept(learned.truncate(k), x) - neighbours_kept(start.truncate(k), x) for k in (16, 32, 64)]
    assert np.mean(gains) > 0.01, gains


@pytest.mark.slow
def test_long_codes_go_on_improving():
    x = np.asarray(QUERY.images)
    codes = make(256).fit(TRAIN).encode(x)
    kept = [neighbours_kept(codes.truncate(k), x) for k in (16, 64, 256)]
    assert kept[0] < kept[1] < kept[2]
    assert (make(256).fit(TRAIN).bit_weights == 1).all()


@pytest.mark.slow
def test_short_codes_beat_those_of_a_rotation_cut_short():
    codes = make().fit(TRAIN).encode(QUERY.images)
    itq = make_hasher("itq", n_bits=32, features="none").fit(TRAIN).encode(QUERY.images)
    assert scored(codes.truncate(8)) > scored(itq.truncate(8))
    assert scored(codes) > scored(itq) - 0.05


@pytest.mark.slow
def test_odd_lengths_few_items_and_more_bits_than_features():
    assert make(13).fit(TRAIN).encode(QUERY.images).n_bits == 13
    flat = np.zeros((40, 12), np.float32)
    flat[:, :3] = np.random.default_rng(0).normal(size=(40, 3))
    for n_bits in (12, 100):
        hasher = make(n_bits).fit(Labelled(flat, np.zeros(40, np.int64), ("",)))
        assert len(np.unique(hasher.encode(flat).packed, axis=0)) > 1
    with pytest.raises(InputError, match="all the same"):
        make(12).fit(Labelled(np.ones((40, 12), np.float32), np.zeros(40, np.int64), ("",)))
    with pytest.raises(InputError, match="must not be negative"):
        make(12, steps=-1)


@pytest.mark.slow
def test_a_file_with_rising_weights_is_refused(tmp_path):
    hasher = make().fit(TRAIN)
    arrays = dict(hasher.arrays)
    with pytest.raises(InputError, match="never increase"):
        make().adopt(arrays | {"weights": np.linspace(1, 2, 32, dtype=np.float32)})
    hasher.save(tmp_path / "u.safetensors")
    again = load_hasher(tmp_path / "u.safetensors")
    assert again.encode(QUERY.images) == hasher.encode(QUERY.images)


@pytest.mark.slow
def test_models_of_earlier_versions_keep_their_weights(tmp_path):
    """They have the same arrays, and weights that fall."""
    arrays = dict(make().fit(TRAIN).arrays) | {"weights": np.linspace(1, 0.1, 32, dtype=np.float32)}
    old = make_hasher("unsupervised", n_bits=32, features="none").adopt(arrays)
    old.save(tmp_path / "old.safetensors")
    np.testing.assert_allclose(
        load_hasher(tmp_path / "old.safetensors").bit_weights, np.linspace(1, 0.1, 32), rtol=1e-6
    )


def test_a_map_learned_beforehand_serves_where_there_are_few_pictures():
    name = "mobilenetv2@224"
    prior = read_prior(name)
    assert prior is not None
    assert has_prior(name)
    assert not has_prior("mobilenetv2@96")
    assert not has_prior("onnx:/etc/passwd")
    rng = np.random.default_rng(0)
    x = np.maximum(prior.mean + rng.normal(0, 0.3, (3, 1280)), 0).astype(np.float32)
    hasher = make_hasher("unsupervised", n_bits=128, features=name).fit_vectors(x, np.zeros(3, np.int64))
    np.testing.assert_allclose(hasher.arrays["matrix"], prior.matrix[:, :128])
    between = hasher.arrays["offset"] / (prior.mean @ prior.matrix[:, :128])
    assert np.isfinite(between).all()
    codes = hasher.encode_vectors(np.concatenate([x, x * 1.01]))
    near = distances(codes[:3], codes[3:])
    assert (near.argmin(axis=1) == np.arange(3)).all()


@pytest.mark.slow
def test_images_of_another_kind_get_first_bits_of_their_own_before_those_of_the_map():
    name, rng = "mobilenetv2@224", np.random.default_rng(0)
    prior = read_prior(name)
    axes, _ = np.linalg.qr(prior.matrix[:, :64])
    away = rng.normal(size=(40, 1280))
    away -= away @ axes @ axes.T  # the map's first bits see nothing of it
    x = (rng.normal(size=(600, 40)) * 0.8 ** np.arange(40) @ away).astype(np.float32)
    for n, n_bits, own in ((600, 300, 256), (599, 300, 0), (600, 20, 20)):
        hasher = make_hasher("unsupervised", n_bits=n_bits, features=name, steps=5)
        matrix = hasher.fit_vectors(x[:n], np.zeros(n, np.int64)).arrays["matrix"]
        assert not np.isclose(matrix[:, :own], prior.matrix[:, :own]).all(axis=0).any()
        np.testing.assert_allclose(matrix[:, own:], prior.matrix[:, own:n_bits])
