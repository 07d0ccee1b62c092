"""The model that comes with the package: search works before any training."""

import bitscale as bs
from bitscale.hashers.registry import BUNDLED, bundled_names


def test_the_bundled_model_finds_its_like_at_every_length():
    assert bundled_names() == ("fashion-mnist",)
    hasher, split = bs.load_hasher("fashion-mnist"), bs.load_dataset("sample")
    report = bs.evaluate(hasher, split, bits=[64, 32, 16, 8], metrics=["map"])
    assert report["map", 64] > 0.89
    assert report["map", 8] > 0.85


def test_it_is_small_and_has_a_card():
    assert (BUNDLED / "fashion-mnist.safetensors").stat().st_size < 2_500_000
    assert "fashion-mnist" in (BUNDLED / "fashion-mnist.md").read_text()
