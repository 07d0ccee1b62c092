"""Embeddings of one's own from the command line: trained on, evaluated and encoded, with and without labels."""

import json

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from tests.cli.run import inside as bitscale
from tests.hashers.clusters import features

PART = features(300, seed=1, d=20)
QUICK = ("--set", "iterations=60", "--set", "images_per_class=6")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    np.save(folder / "x.npy", PART.images)
    np.save(folder / "y.npy", np.array(["label" + str(n) for n in PART.labels]))
    return folder


def run(*words):
    done = bitscale(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*words):
    done = bitscale(*words)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.slow
def test_train_evaluate_and_encode(folder):
    own = (folder / "x.npy", "--labels", folder / "y.npy")
    model = folder / "m.safetensors"
    said = run("train", own[0], "nested", *own[1:], "--features", "none", "--bits", 16, *QUICK, "--out", model)
    assert f"--labels {folder / 'y.npy'}" in said
    assert "label3" in (folder / "m.md").read_text()
    report = json.loads(run("evaluate", *own, "--model", model, "--bits", "16,8", "--metrics", "map", "--json"))
    assert report["scores"][0]["dataset"] == "x"
    assert report["scores"][0]["value"] > 0.4
    assert report["n_queries"] == 30
    run("encode", model, folder / "x.npy", "--out", folder / "codes.npy")
    hasher = bs.load_hasher(model)
    np.testing.assert_array_equal(np.load(folder / "codes.npy"), hasher.encode(PART.images).packed)


def test_any_method_can_be_evaluated_in_one_go(folder):
    words = ("evaluate", folder / "x.npy", "itq", "--labels", folder / "y.npy", "--features", "none", "--bits", 8)
    assert "itq on none" in run(*words, "--metrics", "map")


@pytest.mark.slow
def test_without_labels(folder):
    model = folder / "u.safetensors"
    said = run("train", folder / "x.npy", "unsupervised", "--features", "none", "--bits", 8, "--out", model)
    assert "bitscale encode" in said
    assert "All items of the dataset were used for fitting" in (folder / "u.md").read_text()
    assert (np.diff(bs.load_hasher(model).bit_weights) <= 0).all()
    run("encode", model, folder / "x.npy", "--out", folder / "u.bsi")
    flat = folder / "pictures"
    flat.mkdir()
    for i in range(6):
        Image.fromarray(np.full((8, 8, 3), 40 * i, np.uint8)).save(flat / f"{i}.png")
    run("train", flat, "lsh", "--bits", 8, "--out", folder / "l.safetensors")


@pytest.mark.slow
def test_embeddings_of_embeddings(folder):
    model = folder / "e.safetensors"
    own = ("--labels", folder / "y.npy")
    run("train", folder / "x.npy", "euclidean", *own, "--features", "none", "--bits", 4, *QUICK, "--out", model)
    assert "squared distance" in " ".join(run("evaluate", folder / "x.npy", *own, "--model", model).split())
    assert "vectors of 4 values" in run("encode", model, folder / "x.npy", "--out", folder / "e.npy")
    found = np.load(folder / "e.npy")
    assert (found.shape, found.dtype) == ((300, 4), np.float32)
    assert json.loads((folder / "e.npy.json").read_text())["kind"] == "embeddings"
    assert "no index holds" in refused("encode", model, folder / "x.npy", "--out", folder / "e.bsi")


def test_what_cannot_be_done_names_the_cure(folder):
    out = ("--out", folder / "x.safetensors")
    train = ("train", folder / "x.npy")
    assert "Give them with --labels" in refused(*train, "nested", "--features", "none", *out)
    assert "--features none" in refused(*train, "nested", "--labels", folder / "y.npy", *out)
    np.save(folder / "short.npy", PART.labels[1:])
    short = refused(*train, "nested", "--labels", folder / "short.npy", "--features", "none", *out)
    assert "300 rows" in short
    assert "299 labels" in short
    assert "there is no file" in refused(*train, "drsch", "--labels", "nowhere.npy", "--features", "none", *out)
    assert "Give --labels" in refused("evaluate", folder / "x.npy", "itq", "--features", "none")
    model = folder / "itq.safetensors"
    bs.make_hasher("itq", n_bits=8, features="none").fit(PART).save(model)
    np.save(folder / "one.npy", PART.images[0])
    assert "shape" in refused("encode", model, folder / "one.npy", "--out", folder / "c.npy")
