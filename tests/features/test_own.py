"""Networks of the user's own, by ONNX file or OpenVINO: tiny ones, made here."""

import json
from pathlib import Path

import numpy as np
import pytest

import bitscale as bs
from bitscale.data.labelled import Labelled
from bitscale.errors import DataError, InputError
from bitscale.features import make_features
from bitscale.networks import onnx_format as onnx

RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((8, 3, 1, 1)).astype(np.float32)
IMAGES = RNG.integers(0, 256, (5, 6, 6, 3), np.uint8)


def network(shape=("n", 3, 6, 6), kind=onnx.FLOAT, about=None, matrix=MATRIX) -> bytes:
    """A 1x1 convolution and the mean over the picture; a second output is its double."""
    last = shape[3] == 3
    nodes = [onnx.node("Cast", ["x"], "real", to=onnx.FLOAT)]
    nodes += [onnx.node("Transpose", ["real"], "planar", perm=(0, 3, 1, 2) if last else (0, 1, 2, 3))]
    nodes += [onnx.node("Conv", ["planar", "w"], "map"), onnx.node("GlobalAveragePool", ["map"], "mean")]
    nodes += [onnx.node("Flatten", ["mean"], "values"), onnx.node("Add", ["values", "values"], "twice")]
    outputs = [onnx.Value(name, onnx.FLOAT, (shape[0], len(matrix))) for name in ("values", "twice")]
    outputs.append(onnx.Value("map", onnx.FLOAT, (shape[0], len(matrix), 6, 6)))
    graph = onnx.graph(nodes, [onnx.tensor("w", matrix)], [onnx.Value("x", kind, shape)], outputs)
    return onnx.model(graph, {} if about is None else {"bitscale": json.dumps(about)})


def placed(folder: Path, said: dict | None = None, **options) -> str:
    (folder / "net.onnx").write_bytes(network(**options))
    if said is not None:
        (folder / "net.json").write_text(json.dumps(said))
    return f"onnx:{folder / 'net.onnx'}"


def expected(images, mean=0.0, std=1.0, white=1, order=slice(None)):
    means = ((images[..., order] / (255 / white) - mean) / std).mean(axis=(1, 2))
    return means @ MATRIX[:, :, 0, 0].T


def test_normalisation_comes_from_the_json_beside_it(tmp_path):
    mean, std = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
    features = make_features(placed(tmp_path, {"mean": mean, "std": std}))
    np.testing.assert_allclose(features.extract(IMAGES), expected(IMAGES, mean, std), rtol=1e-4, atol=1e-4)
    assert features.dim == 8
    assert features.form.size == (6, 6)


@pytest.mark.parametrize(
    ("said", "options", "wanted"),
    [
        ({"range": 255, "channels": "BGR"}, {}, {"white": 255, "order": slice(None, None, -1)}),
        ({"range": 255}, {"shape": ("n", 6, 6, 3)}, {"white": 255}),
        ({"size": 6}, {"shape": ("n", 3, "h", "w")}, {}),
        ({"size": [6, 6], "layout": "NCHW"}, {"shape": ("n", "c", "h", "w")}, {}),
        (None, {"about": {"mean": 0.5, "std": 0.5}}, {"mean": 0.5, "std": 0.5}),
        (None, {"kind": onnx.UINT8, "shape": ("n", 6, 6, 3)}, {"white": 255}),
        ({"output": "twice"}, {"matrix": MATRIX / 2}, {}),
        ({"output": "map"}, {}, {}),
        ({}, {"shape": (2, 3, 6, 6)}, {}),
    ],
)
def test_ways_to_take_pictures(said, options, wanted, tmp_path):
    if said == {}:
        said = {"range": 1}
    features = make_features(placed(tmp_path, said, **options))
    np.testing.assert_allclose(features.extract(IMAGES), expected(IMAGES, **wanted), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("said", "options", "match"),
    [
        (None, {}, r"how does net.onnx take pictures\? Say it in .*net.json"),
        ({"mean": [1, 2]}, {}, "one for each channel"),
        ({"std": 0}, {}, "above 0"),
        ({"range": 2}, {}, "1 or 255"),
        ({"channels": "GBR"}, {}, "RGB or BGR"),
        ({"size": [7, 7]}, {}, "takes pictures of"),
        ({"range": 1}, {"shape": ("n", 3, "h", "w")}, "height and width"),
        ({"sizes": 7}, {}, r"may say .* Got \['sizes'\]"),
        ({"layout": "NHWC"}, {}, "three channels"),
        ({"range": 1}, {"shape": ("n", 6, 6, 1)}, "net takes the shape .* three channels"),
    ],
)
def test_what_is_missing_or_wrong_is_said(said, options, match, tmp_path):
    with pytest.raises(InputError, match=match):
        make_features(placed(tmp_path, said, **options))


def test_no_such_network(tmp_path):
    with pytest.raises(DataError, match="there is no network"):
        make_features(f"onnx:{tmp_path / 'none.onnx'}")
    (tmp_path / "text.onnx").write_text("hello")
    with pytest.raises(DataError, match="onnxruntime cannot run"):
        make_features(f"onnx:{tmp_path / 'text.onnx'}")
    features = make_features(placed(tmp_path, {"output": "nothing"}))
    with pytest.raises(InputError, match="Its outputs: values, twice, map"):
        features.extract(IMAGES)


def fitted(name):
    part = Labelled(RNG.integers(0, 256, (60, 6, 6, 3), np.uint8), np.zeros(60, np.int64), ("",))
    return bs.make_hasher("itq", n_bits=4, features=name, seed=0).fit(part)


def test_its_hash_is_part_of_the_model(tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_DATA", str(tmp_path / "data"))
    hasher = fitted(placed(tmp_path, {"range": 1}))
    hasher.save(tmp_path / "model.safetensors")
    codes = hasher.encode(IMAGES)
    assert bs.load_hasher(tmp_path / "model.safetensors").encode(IMAGES) == codes
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = bs.make_hasher("itq", n_bits=4, features=placed(elsewhere, {"range": 1}))
    assert other.adopt(hasher.arrays).fingerprint == hasher.fingerprint  # the same network in another place
    (elsewhere / "net.json").write_text(json.dumps({"range": 255}))
    changed = bs.make_hasher("itq", n_bits=4, features=f"onnx:{elsewhere / 'net.onnx'}")
    assert changed.adopt(hasher.arrays).fingerprint != hasher.fingerprint
    (tmp_path / "net.json").write_text(json.dumps({"range": 255}))
    with pytest.raises(DataError, match="is not the network this was made with"):
        bs.load_hasher(tmp_path / "model.safetensors").encode(IMAGES)
    (tmp_path / "net.onnx").unlink()
    with pytest.raises(DataError, match="not there any more"):
        bs.load_hasher(tmp_path / "model.safetensors").encode(IMAGES)
    (tmp_path / "data" / "weights").mkdir(parents=True)
    placed(tmp_path / "data" / "weights", {"range": 1})
    assert bs.load_hasher(tmp_path / "model.safetensors").encode(IMAGES) == codes


@pytest.mark.slow
def test_openvino_runs_its_own_files(tmp_path):
    import openvino

    placed(tmp_path, {"range": 255, "channels": "BGR"})
    openvino.save_model(openvino.Core().read_model(tmp_path / "net.onnx"), tmp_path / "net.xml", compress_to_fp16=False)
    found = make_features(f"openvino:{tmp_path / 'net.xml'}").extract(IMAGES)
    np.testing.assert_allclose(found, expected(IMAGES, white=255, order=slice(None, None, -1)), rtol=1e-2, atol=0.5)
    with pytest.raises(DataError, match="there is no network"):
        make_features(f"openvino:{tmp_path / 'other.xml'}")
