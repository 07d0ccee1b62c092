"""ONNX from the plan alone, run by onnxruntime, against the network in torch."""

import json

import numpy as np
import onnx
import pytest
import torch

from bitscale.errors import InputError, NotFitted
from bitscale.hashers import make_hasher
from bitscale.networks.layers import array_shapes
from bitscale.networks.onnx import Runtime
from bitscale.networks.torch import HashNetwork
from tests.hashers.clusters import DEEP, features, images

QUICK = {"iterations": 3, "images_per_class": 4}
IMAGES = images(200, seed=1)


def in_torch(hasher, batch):
    x = torch.from_numpy(batch)
    x = x.permute(0, 3, 1, 2).float() if x.ndim == 4 else x
    with torch.no_grad():
        return hasher.network.project(x).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("network", ["paper-net", "paper-net+recipe", "small-net"])
@pytest.mark.parametrize("name", ["drsch", "dsrh", "nested"])
def test_onnxruntime_says_what_torch_says(name, network):
    hasher = make_hasher(name, n_bits=12, network=network, dropout=0.2, **QUICK).fit(IMAGES)
    batch = IMAGES.images.pixels
    expected = in_torch(hasher, batch)
    np.testing.assert_allclose(hasher.runtime(batch), expected, atol=1e-4)
    sure = np.abs(expected) > 1e-4
    np.testing.assert_array_equal((hasher.encode(batch).signs() > 0)[sure], (expected > 0)[sure])


@pytest.mark.slow
@pytest.mark.parametrize("name", DEEP)
def test_vectors(name):
    part = features(100, seed=1)
    hasher = make_hasher(name, n_bits=12, features="none", network="paper-net+recipe", hash_norm=True, **QUICK)
    hasher.fit(part)
    np.testing.assert_allclose(hasher.runtime(part.images), in_torch(hasher, part.images), atol=1e-4)


@pytest.mark.parametrize("network", ["paper-net", "paper-net+recipe", "small-net"])
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 9, 20), (6,)])
def test_the_arrays_are_known_without_torch(network, shape):
    from bitscale.networks.paper import network_layers

    layers = network_layers(network, shape, 8, second_layer=True, dropout=0.1, hash_norm=len(shape) == 1)
    state = HashNetwork(layers, shape, "free").state_dict()
    expected = {name: tuple(t.shape) for name, t in state.items() if t.is_floating_point()}
    assert array_shapes(layers, shape) == expected


def test_the_file_names_its_model_and_weights(tmp_path):
    import onnxruntime

    hasher = make_hasher("nested", n_bits=12, **QUICK).fit(IMAGES)
    (tmp_path / "model.onnx").write_bytes(hasher.to_onnx())
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    assert about["bitscale.model"] == hasher.fingerprint
    np.testing.assert_allclose(json.loads(about["bitscale.bit_weights"]), hasher.bit_weights)
    assert session.get_inputs()[0].name == "images"
    values = session.run(None, {"images": IMAGES.images.pixels})[0]
    np.testing.assert_array_equal(np.packbits(values >= 0, axis=1), hasher.encode(IMAGES.images).packed)
    with pytest.raises(InputError, match="shape"):
        Runtime(hasher.to_onnx())(np.zeros((1, 4, 4, 1), np.uint8))


@pytest.mark.parametrize("network", ["paper-net", "paper-net+recipe", "small-net"])
@pytest.mark.parametrize("part", [IMAGES, features(100, seed=1)], ids=["pixels", "vectors"])
def test_the_file_is_sound_onnx(part, network):
    how = "pixels" if part is IMAGES else "none"
    hasher = make_hasher("nested", n_bits=12, features=how, network=network, dropout=0.2, **QUICK).fit(part)
    model = onnx.load_from_string(hasher.to_onnx())
    onnx.checker.check_model(model, full_check=True)  # shapes too
    assert [output.name for output in model.graph.output] == ["values"]


def test_not_fitted():
    with pytest.raises(NotFitted):
        make_hasher("drsch", n_bits=8).to_onnx()


@pytest.mark.slow
def test_a_saved_model_encodes_without_torch(tmp_path):
    import subprocess
    import sys

    hasher = make_hasher("nested", n_bits=12, **QUICK).fit(IMAGES)
    hasher.save(tmp_path / "model")
    np.save(tmp_path / "pixels.npy", IMAGES.images.pixels)
    code = (
        "import sys, numpy as np; sys.modules['torch'] = None\n"
        "from bitscale.hashers import load_hasher\n"
        f"codes = load_hasher({str(tmp_path / 'model')!r}).encode(np.load({str(tmp_path / 'pixels.npy')!r}))\n"
        "print(codes.packed.tobytes().hex())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == hasher.encode(IMAGES.images).packed.tobytes().hex(), ran.stderr
