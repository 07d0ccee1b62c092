"""No model is scored on images it was trained on without a word: refused, with the cure, or said in the report."""

import json

import numpy as np
import pytest

import bitscale as bs
from bitscale.data.sets.mnist import FILES
from bitscale.errors import InputError
from bitscale.evaluation import Report
from tests.cli.run import bitscale
from tests.data.formats import idx, write_mnist


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """An MNIST of noise large enough for every protocol."""
    root = tmp_path_factory.mktemp("root")
    write_mnist(root / "mnist")
    for n, (images, labels) in ((12_000, FILES[:2]), (3_000, FILES[2:])):
        pixels = np.random.default_rng(n).integers(0, 256, (n, 2, 2), np.uint8)
        (root / "mnist" / images).write_bytes(idx(pixels))
        (root / "mnist" / labels).write_bytes(idx((np.arange(n) % 10).astype(np.uint8)))
    return root


@pytest.fixture(scope="module")
def drawn(root):
    return bs.make_hasher("lsh", n_bits=8).fit(bs.load_dataset("mnist", root, "C1", seed=0).train)


@pytest.mark.slow
def test_another_seed_or_protocol_is_refused_with_the_cure(root, drawn, tmp_path):
    for protocol, seed in (("C1", 1), ("P0", 0), ("C2", 0)):
        with pytest.raises(InputError, match=r"trained on mnist, C1, split seed 0.*--protocol C1 --split-seed 0"):
            bs.evaluate(drawn, bs.load_dataset("mnist", root, protocol, seed=seed), metrics="map")
    report = bs.evaluate(drawn, bs.load_dataset("mnist", root, "C1", seed=0), metrics="map")
    assert report.scores[0].trained_on == "mnist, C1, split seed 0, part train"
    assert report.scores[0].apart == ""
    drawn.save(tmp_path / "m")
    words = ("evaluate", "mnist", "--root", root, "--model", tmp_path / "m", "--metrics", "map", "--protocol", "C1")
    refused = bitscale(*words, "--split-seed", 1)
    assert refused.returncode
    assert "--protocol C1 --split-seed 0" in " ".join(refused.stderr.split())
    assert bitscale(*words).returncode == 0


@pytest.mark.slow
def test_train_takes_the_seed_of_the_split(root, tmp_path):
    words = ("train", "mnist", "lsh", "--root", root, "--bits", 8, "--protocol", "C1", "--split-seed", 1)
    out = bitscale(*words, "--out", tmp_path / "m.safetensors")
    assert out.returncode == 0, out.stderr
    assert "--protocol C1 --split-seed 1" in " ".join(out.stdout.split())
    assert bs.load_hasher(tmp_path / "m.safetensors").origin.split_seed == 1
    card = (tmp_path / "m.md").read_text()
    assert "5,000 images: mnist, C1, split seed 1, part train" in card
    assert "choosing" not in card  # which the program does not know


def test_unknown_origin_is_said(sample, fitted):
    plain = bs.make_hasher("itq", n_bits=24).adopt(fitted.arrays)
    report = bs.evaluate(plain, sample, metrics="map")
    assert "not recorded: queries may be among them" in " ".join(str(report).split())
    assert "not recorded" not in str(bs.evaluate(fitted, sample, metrics="map"))


def test_the_bundled_model_on_the_sample(sample):
    report = bs.evaluate(bs.load_hasher("fashion-mnist"), sample, bits=[64, 8], metrics="map")
    assert report["map", 64] > 0.7
    told = " ".join(str(report).split())
    assert "Trained on fashion-mnist, P0, official parts, part train." in told
    assert "queries may be among" not in told


@pytest.mark.slow
def test_every_printed_result_names_network_recipe_and_optimizer(sample, tmp_path):
    quick = {"iterations": 2, "images_per_class": 3}
    part = sample.train.take(np.arange(200))
    report = bs.evaluate(bs.make_hasher("drsch", n_bits=8, **quick).fit(part), sample, metrics="map")
    told = "drsch on pixels (paper-net+recipe, recipe ours with images_per_class=3, iterations=2, adam)"
    assert told in " ".join(str(report).split())
    words = ("--bits", 8, "--metrics", "map", "--set", "iterations=2", "--recipe", "as-printed", "--json")
    out = bitscale("evaluate", "sample", "drsch", *words)
    score = json.loads(out.stdout)["scores"][0]
    assert (score["network"], score["recipe"]) == ("paper-net", "as-printed with iterations=2"), out.stderr
    assert score["optimizer"] == "sgd"


def test_reports_written_before_these_were_told_can_be_read(sample, fitted):
    told = json.loads(bs.evaluate(fitted, sample, metrics="map").to_json())
    for score in told["scores"]:
        for name in ("network", "recipe", "optimizer", "trained_on", "apart"):
            del score[name]
    assert Report.from_json(json.dumps(told)).scores[0].recipe == ""
