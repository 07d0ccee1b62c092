"""Pretrained networks trained further: they start as published, and end in a file that needs nobody else's."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import bitscale as bs
from bitscale.data.images import ListImages
from bitscale.data.labelled import Labelled
from bitscale.deep import train as module
from bitscale.deep.source import ImageSource
from bitscale.errors import InputError
from bitscale.features import make_features
from bitscale.hashers.card import model_card
from bitscale.networks.backbones import BACKBONES
from bitscale.networks.layers import array_shapes, count
from bitscale.networks.paper import network_layers
from bitscale.networks.torch import HashNetwork
from bitscale.networks.weights import PUBLISHED, find_weights, published_arrays
from tests.cli.run import bitscale

pytestmark = pytest.mark.slow

NAMES = tuple("abcd")
RNG = np.random.default_rng(0)
QUICK = {"iterations": 4, "classes_per_batch": 4, "images_per_class": 3, "input_size": 32}


def colourful(n, seed=0):
    """Images of mixed sizes and modes, whose brightness tells the class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 4
    shapes = [(20, 30, 3), (32, 32, 3), (40, 36, 1), (33, 50, 3)]
    items = [rng.integers(0, 60, shapes[i % 3 + i % 2]) + 60 * labels[i] for i in range(n)]
    return Labelled(ListImages([item.astype(np.uint8) for item in items]), labels, NAMES)


TRAIN = colourful(48)


def make(network="mobilenetv2", name="nested", **options):
    return bs.make_hasher(name, n_bits=8, network=network, **{**QUICK, **options})


def start_from(name, network, layers, size):
    pretrained = [layer for layer in layers if layer.pretrained]
    network.start_from(published_arrays(name, pretrained, size, find_weights(name, None)), PUBLISHED[name].mean_std)


@pytest.fixture(scope="module", params=BACKBONES)
def fitted(request):
    return make(request.param, validation_share=0.2).fit(TRAIN)


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("size", [32, 45])
def test_it_starts_as_the_published_network(name, size):
    layers = network_layers(name, (3, size, size), 8)
    network = HashNetwork(layers, (3, size, size), "free").eval()
    start_from(name, network, layers, size)
    expected = make_features(f"{name}@{size}").extract(TRAIN.images.take(np.arange(6)))
    batch = ImageSource(TRAIN.images, (size, size), colour=True).batch(np.arange(6))
    with torch.no_grad():
        found = network.backbone((batch - network.input_mean) / network.input_spread).numpy()
    np.testing.assert_allclose(found, expected, atol=2e-4)


@pytest.mark.parametrize(("name", "parameters"), [("mobilenetv2", 2_223_872), ("efficientnet-lite0", 3_371_008)])
def test_the_plan_is_what_is_built(name, parameters):
    layers = network_layers(name, (3, 64, 64), 8)
    network = HashNetwork(layers, (3, 64, 64), "free").eval()
    assert count([layer for layer in layers if layer.pretrained]) == parameters  # as published, without the classifier
    assert sum(p.numel() for p in network.parameters()) == count(layers)
    state = network.state_dict()
    assert array_shapes(layers, (3, 64, 64)) == {k: tuple(t.shape) for k, t in state.items() if t.is_floating_point()}
    x = torch.randn(1, 3, 64, 64)
    for part, layer in zip(network.phi, layers, strict=False):
        x = part(x)
        assert tuple(x.shape[1:]) == layer.shape


def test_onnxruntime_says_what_torch_says(fitted):
    rows = np.arange(20)
    batch = ImageSource(TRAIN.images, (32, 32), colour=True).batch(rows)
    with torch.no_grad():
        expected = fitted.network.project(batch).numpy()
    squares = batch.permute(0, 2, 3, 1).to(torch.uint8).numpy()
    np.testing.assert_allclose(fitted.runtime(squares), expected, atol=1e-4)
    codes = fitted.encode(TRAIN.images.take(rows))
    sure = np.abs(expected) > 1e-4
    np.testing.assert_array_equal((codes.signs() > 0)[sure], (expected > 0)[sure])
    assert fitted.encode(squares) == codes  # brought to size by somebody else


def test_the_file_needs_neither_torch_nor_the_weights_wheel(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    pixels = RNG.integers(0, 256, (5, 40, 50, 3), np.uint8)
    np.save(tmp_path / "pixels.npy", pixels)
    code = (
        "import importlib.util, sys, numpy as np; sys.modules['torch'] = None\n"
        "importlib.util.find_spec = None\n"  # nobody may look for a wheel
        "from bitscale.hashers import load_hasher\n"
        f"codes = load_hasher({str(tmp_path / 'model')!r}).encode(np.load({str(tmp_path / 'pixels.npy')!r}))\n"
        "print(codes.packed.tobytes().hex())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == fitted.encode(pixels).packed.tobytes().hex(), ran.stderr


class Stop(Exception):
    pass


@pytest.mark.parametrize("freeze", [True, False])
def test_resume_gives_the_same_weights_bit_for_bit(freeze, tmp_path, monkeypatch):
    options = {"freeze_statistics": freeze, "flip": True, "shift": 2, "dropout": 0.2}
    whole = make(**options).fit(TRAIN)
    monkeypatch.setattr(module, "CHECKPOINT_SECONDS", 0.0)

    def stop(now):
        if now.step == 3:
            raise Stop

    with pytest.raises(Stop):
        make(**options).fit(TRAIN, run=tmp_path, progress=stop)
    assert make(**options).fit(TRAIN, run=tmp_path, resume=True).fingerprint == whole.fingerprint


def test_rate_and_statistics_are_settings():
    layers = network_layers("mobilenetv2", (3, 32, 32), 8)
    start = HashNetwork(layers, (3, 32, 32), "ordered")
    start_from("mobilenetv2", start, layers, 32)
    backbone = {f"phi.{key}" for key in start.backbone.state_dict() if "num_batches" not in key}

    def changed(**options):
        arrays = make(**options).fit(TRAIN).arrays
        state = start.state_dict()
        return {name for name in backbone if not np.array_equal(arrays[name], state[name].numpy())}

    running = {name for name in backbone if "running" in name}
    assert changed(backbone_rate=0.0) == set()
    assert changed(backbone_rate=0.0, freeze_statistics=False) == running
    learned = changed()
    assert not learned & running
    assert len(learned) > 0.9 * len(backbone - running)


def test_it_learns():
    hasher = make(name="dsch", iterations=30, beta_end=20.0, images_per_class=6).fit(TRAIN)
    losses = [line["loss"] for line in hasher.history]
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) - 1


def test_the_paper_network_takes_mixed_sizes_at_an_input_size():
    grey = Labelled(ListImages([np.asarray(x)[..., :1] for x in TRAIN.images.items]), TRAIN.labels, NAMES)
    hasher = make("paper-net", input_size=16).fit(grey)
    assert hasher.details["input_shape"] == [1, 16, 16]
    assert len(hasher.encode(grey.images)) == 48
    with pytest.raises(InputError, match="one mode"):
        make("paper-net", input_size=16).fit(TRAIN)


def test_what_cannot_be_fine_tuned():
    with pytest.raises(InputError, match='features="mobilenetv2@224"'):
        bs.make_hasher("nested", n_bits=8, network="mobilenetv2", features="gist")
    with pytest.raises(InputError, match="32 to 2048"):
        make(input_size=16)
    with pytest.raises(InputError, match="colour pictures"):
        network_layers("mobilenetv2", (1, 64, 64), 8)
    for network in ("timm:resnet18", "alexnet"):
        with pytest.raises(InputError, match=f"features='{network}'"):
            make(network)
    with pytest.raises(InputError, match="backbone_rate"):
        make(backbone_rate=-1.0)


def test_card_and_info_say_that_it_was_fine_tuned(fitted, tmp_path):
    split = bs.load_dataset("sample")
    card = model_card(fitted, split)
    assert f"{fitted.settings.network}, pretrained on ImageNet" in card
    assert "fine-tuned at 32x32 pixels, 0.02 of the head's learning rate" in card
    fitted.save(tmp_path / "m.safetensors")
    facts = json.loads(bitscale("info", tmp_path / "m.safetensors", "--json").stdout)
    assert "fine-tuned" in facts["backbone"]
    assert sum(line.startswith("residual") for line in facts["layers"]) >= 9
    frozen = bs.make_hasher("drsch", n_bits=8, features="mobilenetv2@32", iterations=2).fit(TRAIN)
    assert "frozen" in model_card(frozen, split)


def test_picture_files_are_brought_to_the_same_squares(fitted, tmp_path):
    from PIL import Image

    fitted.save(tmp_path / "m.safetensors")
    (tmp_path / "pictures").mkdir()
    pixels = [RNG.integers(0, 256, (40 + 7 * i, 90 - 5 * i, 3), np.uint8) for i in range(4)]
    for i, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / "pictures" / f"{i}.png")
    done = bitscale("encode", tmp_path / "m.safetensors", tmp_path / "pictures", "--out", tmp_path / "codes.npy")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), fitted.encode(pixels).packed)
