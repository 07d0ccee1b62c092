"""The model that comes with the package: search works before any training."""

from pathlib import Path

import bitscale as bs
from bitscale.hashers.registry import BUNDLED, bundled_names

RESULTS = Path(__file__).resolve().parents[2] / "results" / "deep"


def test_the_bundled_model_finds_its_like_at_every_length():
    assert bundled_names() == ("fashion-mnist",)
    hasher, split = bs.load_hasher("fashion-mnist"), bs.load_dataset("sample")
    report = bs.evaluate(hasher, split, bits=[64, 32, 16, 8], metrics=["map"])
    assert report["map", 64] > 0.89
    assert report["map", 8] > 0.85


def test_it_knows_what_it_is_worth_at_each_length():
    measured = bs.load_hasher("fashion-mnist").measured
    assert measured.on.startswith("fashion-mnist, P0, 10,000 queries")
    kept = bs.Report.load(RESULTS / "fashion-mnist-nested-64-ours-8100.json")
    assert measured.map_by_bits == {bits: kept["map", bits] for bits in kept.bits}
    assert min(measured.map_by_bits) == 4


def test_it_is_small_and_has_a_card():
    assert (BUNDLED / "fashion-mnist.safetensors").stat().st_size < 2_500_000
    assert "fashion-mnist" in (BUNDLED / "fashion-mnist.md").read_text()
