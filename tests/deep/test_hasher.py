"""What is special to the deep methods as hashers; what they share with all others is in the contract test."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from bitscale.data.labelled import Labelled
from bitscale.deep.hasher import DeepHasher
from bitscale.errors import CorruptFile, FileError, InputError
from bitscale.hamming import distances
from bitscale.hashers import load_hasher, make_hasher
from bitscale.hashers.model_file import KEY, read
from bitscale.metrics import expected_ap, mean, rank
from tests.hashers.clusters import NAMES, features, images

pytestmark = pytest.mark.slow

QUICK = {"iterations": 40, "images_per_class": 6}
IMAGES = images(400, seed=1)


def make(name, n_bits=8, **options):
    return make_hasher(name, n_bits=n_bits, **{**QUICK, **options})


@pytest.fixture(scope="module")
def weighted():
    return make("bs-drsch", 16, scale_rate=30.0).fit(IMAGES)


def test_bits_come_heaviest_first_and_the_network_is_in_that_order(weighted):
    codes = weighted.encode(IMAGES.images)
    assert (np.diff(codes.bit_weights) <= 0).all()
    assert codes.bit_weights[0] > 1.2 * codes.bit_weights[-1]
    np.testing.assert_allclose(codes.bit_weights, weighted.scale**2)
    np.testing.assert_allclose(codes.bit_weights, weighted.arrays["w"].astype(np.float64) ** 2)
    assert weighted.relax(IMAGES.images).codes() == codes


def test_codes_are_the_signs_of_the_network(weighted):
    import torch

    pixels = torch.from_numpy(IMAGES.images.pixels.astype(np.float32)).permute(0, 3, 1, 2)
    with torch.no_grad():
        values = weighted.network.project(pixels).numpy()
    np.testing.assert_array_equal(weighted.encode(IMAGES.images).signs() > 0, values >= 0)


@pytest.mark.parametrize("name", ["drsch", "nested"])
def test_learns_from_pixels(name):
    hasher = make(name, 16, iterations=120, network="paper-net+recipe").fit(IMAGES)
    query = images(200, seed=2)
    codes = hasher.encode(query.images)
    relevant = query.labels[:, None] == query.labels
    ranking = rank(distances(codes, codes), relevant, left_out=[np.array([i]) for i in range(200)])
    assert mean(expected_ap(ranking)).value > 0.5


def test_the_file_tells_what_it_holds(weighted, tmp_path):
    weighted.save(tmp_path / "model")
    about, _ = read(tmp_path / "model")
    assert about["name"] == "bs-drsch"
    assert about["details"]["input_shape"] == [1, 8, 10]
    assert about["details"]["n_images"] == 400
    assert len(about["details"]["trained_on"]) == 64
    assert about["settings"]["network"] == "paper-net+recipe"
    loaded = load_hasher(tmp_path / "model")
    assert isinstance(loaded, DeepHasher)
    assert [layer.kind for layer in loaded.layers][-3:] == ["batch-norm", "tanh-like", "weights"]
    assert loaded.encode(IMAGES.images) == weighted.encode(IMAGES.images)
    other = make("bs-drsch", 16).fit(Labelled(IMAGES.images, (IMAGES.labels + 1) % 10, NAMES))
    assert other.details["trained_on"] != weighted.details["trained_on"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_shape": [1, 8, 11]}, "changed after|shape"),
        ({"input_shape": [3, 8, 10]}, "shape"),
        ({"input_shape": [1, 10**6, 10**6]}, "memory"),
        ({"input_shape": [1, -8, 10]}, "input_shape"),
        ({"input_shape": "8x10"}, "input_shape"),
        ({"trained_on": 3}, "fingerprint"),
        ({"n_images": 401}, "changed after"),
        ({"shell": "ls"}, "says about itself"),
        (None, "details must be a table"),
    ],
)
def test_a_file_that_does_not_add_up(weighted, tmp_path, change, message):
    weighted.save(tmp_path / "model")
    about, arrays = read(tmp_path / "model")
    about["details"] = None if change is None else about["details"] | change
    save_file(arrays, tmp_path / "bad", metadata={KEY: json.dumps(about)})
    with pytest.raises(CorruptFile, match=message):
        load_hasher(tmp_path / "bad")


def test_weights_that_increase_are_refused(weighted):
    arrays = dict(weighted.arrays)
    arrays["w"] = arrays["w"][::-1].copy()
    with pytest.raises(InputError, match="must not increase"):
        make("bs-drsch", 16).adopt(arrays, weighted.details)


@settings(max_examples=60)
@given(data=st.data())
def test_damage_is_always_noticed(weighted, tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "model"
    weighted.save(path)
    whole = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del whole[data.draw(st.integers(0, len(whole) - 1)) :]
    else:
        place = data.draw(st.one_of(st.integers(0, len(whole) - 1), st.integers(0, 1500)))
        whole[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    try:
        hasher = load_hasher(path)
    except FileError:
        return
    assert hasher.fingerprint == weighted.fingerprint  # only what tells nothing was hit


def test_images_of_another_kind_are_refused(weighted):
    for wrong in (np.zeros((2, 9, 10), np.uint8), np.zeros((2, 8, 10, 3), np.uint8)):
        with pytest.raises(InputError, match="8x10 with 1 channel"):
            weighted.encode(wrong)
    with pytest.raises(InputError, match="uint8"):
        weighted.encode(np.full((2, 8, 10), np.nan, np.float32))


def test_embeddings_rank_by_squared_distance():
    part = features(100, seed=1)
    found = make("euclidean", features="none", iterations=5).fit(part).encode(part.images)
    naive = ((found.values[:, None] - found.values[None]) ** 2).sum(2)
    np.testing.assert_allclose(found.distances(found), naive, atol=1e-3)
    assert found[3].values.shape == (1, 8)
    assert found[:5] == found[:5]
    assert "100 x 8" in repr(found)
    with pytest.raises(InputError, match="finite"):
        type(found)([[np.nan]])


def test_making_one_loads_no_torch():
    import subprocess
    import sys

    code = (
        "import sys; from bitscale.hashers import make_hasher; make_hasher('nested', n_bits=8); "
        "print('torch' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stdout.strip()
        == "False"
    )
