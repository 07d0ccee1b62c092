"""The pretrained networks as layers, under the published names, against the networks as their authors write them."""

import numpy as np
import pytest
import torch

from bitscale.errors import DataError
from bitscale.networks.backbones import backbone
from bitscale.networks.layers import count, flat, learned_shapes
from bitscale.networks.onnx import Runtime, onnx_bytes
from bitscale.networks.ready import find_ready, ready_network
from bitscale.networks.weights import PUBLISHED, published_arrays
from tests.networks.published import random_network

SIZES = {
    "mobilenetv2": 45,
    "efficientnet-lite0": 46,
    "efficientnet-lite2": 47,
    "alexnet": 79,
}  # odd and even, none that pools evenly


@pytest.fixture(params=SIZES)
def made(request, tmp_path):
    name, size = request.param, SIZES[request.param]
    network = random_network(name)
    torch.save(network.state_dict(), tmp_path / "own.pth")
    return name, size, network, find_ready(name, tmp_path / "own.pth")


@pytest.mark.slow
def test_onnxruntime_gives_the_features_of_the_published_network(made):
    name, size, network, weights = made
    layers, arrays = ready_network(name, size, weights, keep=False)
    assert not any(layer.kind == "batch-norm" for layer in flat(layers))  # folded
    assert {key: array.shape for key, array in arrays.items()} == learned_shapes(layers, (3, size, size))
    mean, spread = (np.array(values, np.float32).reshape(3, 1, 1) * 255 for values in PUBLISHED[name].mean_std)
    payload = onnx_bytes(layers, arrays | {"input_mean": mean, "input_spread": spread}, (3, size, size), {})
    pixels = np.random.default_rng(0).integers(0, 256, (2, size, size, 3), np.uint8)
    with torch.no_grad():
        planar = torch.from_numpy(pixels.transpose(0, 3, 1, 2).astype(np.float32))
        expected = network((planar - torch.from_numpy(mean)) / torch.from_numpy(spread)).numpy()
    np.testing.assert_allclose(Runtime(payload)(pixels), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_sizes_of_the_networks_are_the_published_ones():
    """Parameters as the papers and the published files count them; ours end before the classifier."""
    published = {
        "mobilenetv2": 3_504_872,
        "efficientnet-lite0": 4_652_008,
        "efficientnet-lite1": 5_416_680,
        "efficientnet-lite2": 6_092_072,
        "alexnet": 61_100_840,
    }
    for name, total in published.items():
        layers = backbone(name, (3, 224, 224))
        assert count(layers) + (layers[-1].shape[0] + 1) * 1000 == total
        if name in SIZES:
            assert sum(p.numel() for p in random_network(name).parameters()) == total


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_files_of_another_network_are_refused(name, tmp_path):
    state = dict(random_network(name).state_dict())
    first = next(iter(state))
    wrong = {
        "lacks": {key: tensor for key, tensor in state.items() if key != first},
        "shape": state | {first: state[first][:1]},
        "strange": state | {"head.weight": torch.zeros(2)},
    }
    layers = backbone(name, (3, 64, 64))
    for title, given in wrong.items():
        torch.save(given, tmp_path / f"{title}.pth")
        with pytest.raises(DataError, match=f"does not hold the weights of {name}"):
            published_arrays(name, layers, 64, tmp_path / f"{title}.pth")
    bare = {key: tensor for key, tensor in state.items() if not key.startswith(("classifier.6", "_fc"))}
    torch.save(bare, tmp_path / "bare.pth")
    assert published_arrays(name, layers, 64, tmp_path / "bare.pth")
