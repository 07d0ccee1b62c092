"""Nothing from outside reaches the terminal raw: names of files with escapes, line feeds and bytes that are no text."""

import re
import shutil

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from tests.cli.run import inside

EVIL = "e\x1b[31mvil\x1b]0;title\x07\r\nx\u202egpj"
RAW = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A collection, models, vectors and broken pictures, all with names nobody would choose."""
    folder = tmp_path_factory.mktemp("x") / EVIL
    query = bs.load_dataset("sample").query
    for name in ("a", "b"):
        (folder / f"p{EVIL}" / (name + EVIL)).mkdir(parents=True)
        for i in range(12):
            Image.fromarray(query.images[i][..., 0]).save(folder / f"p{EVIL}" / (name + EVIL) / f"{i}{EVIL}.png")
    (folder / f"broken{EVIL}.png").write_bytes(b"rubbish")
    shutil.copy(folder / f"broken{EVIL}.png", folder / f"p{EVIL}" / f"broken{EVIL}.png")
    np.save(folder / f"v{EVIL}.npy", np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32))
    inside("index", folder / f"p{EVIL}", "-c", folder / f"c{EVIL}.bsc", "--model", "fashion-mnist", "--label", EVIL)
    return folder


def commands(home, out):
    """Every verb, once well and once not."""
    photos, pictures, broken = home / f"c{EVIL}.bsc", home / f"p{EVIL}", home / f"broken{EVIL}.png"
    vectors, model = home / f"v{EVIL}.npy", out / f"m{EVIL}.safetensors"
    yield from (("index", pictures, "-c", photos), ("index", home / f"none{EVIL}"))
    yield from (("add", photos, broken, "--label", EVIL), ("add", photos, EVIL))
    yield from (("search", photos, pictures / f"a{EVIL}" / f"1{EVIL}.png", broken, "--html", out / f"s{EVIL}.html"),
                ("search", photos, broken), ("search", photos, 1, "--where", EVIL), ("search", EVIL, EVIL))  # fmt: skip
    yield from (("list", photos), ("list", photos, "--where", EVIL), ("label", photos, 1, "--label", EVIL))
    yield from (("label", photos, EVIL, "--label", "x"), ("search", home / f"x{EVIL}.bsi", 1))
    yield from (("duplicates", photos, "--plan", out / f"p{EVIL}.sh"), ("duplicates", photos, "--plan", EVIL))
    yield from (("train", vectors, "itq", "--bits", 4, "--features", "none", "--out", model),
                ("train", EVIL, EVIL, "--out", model), ("train", vectors, "--out", EVIL))  # fmt: skip
    yield from (("info", photos), ("info", model), ("info", EVIL), ("verify", photos), ("verify", EVIL))
    yield from (("encode", model, vectors, "--out", out / f"c{EVIL}.npy"), ("encode", model, EVIL, "--out", "x.npy"))
    yield ("encode", "fashion-mnist", pictures, broken, "--out", out / f"d{EVIL}.bsi")
    yield from (("evaluate", pictures, "lsh", "--bits", 4, "--features", "pixels@8", "--metrics", "map"),
                ("evaluate", EVIL), ("evaluate", "sample", EVIL), ("evaluate", "--set", EVIL))  # fmt: skip
    yield from (("export", model, out / f"m{EVIL}.onnx"), ("export", EVIL, "x.onnx"))
    yield from (("backup", photos, out / f"b{EVIL}.bsc"), ("compact", photos), ("remove", photos, EVIL))
    yield from (("reindex", photos, "--model", EVIL), ("datasets", "--root", home), ("datasets", "fetch", EVIL))
    yield from (("erase", photos, "--where", EVIL), ("erase", EVIL, "--where", "person=1"))
    yield from (("serve", EVIL), ("keys", "revoke", EVIL, "--keys", out / "keys.json"), ("push", photos, EVIL))
    yield from (("pull", EVIL, out / "x.bsc", "--model", "fashion-mnist"), ("push", EVIL, f"milvus://{EVIL}/x"))
    yield from (("unpush", EVIL), ("unpush", f"milvus://{EVIL}/x", "--yes"))
    yield from (("reid", "who", photos, broken), ("reid", "train", EVIL, "--out", model), ("reid", EVIL))
    yield from (("demo", "--out", broken), ("reproduce", EVIL), ("bench", EVIL), (EVIL,), ("info", f"--{EVIL}"))


@pytest.mark.slow
def test_no_verb_prints_control_characters(home, tmp_path):
    verbs = set()
    for words in commands(home, tmp_path):
        done = inside(*words)
        verbs.add(words[0])
        for text in (done.stdout, done.stderr):
            assert not RAW.search(text), (words[0], text)
            assert "vil\x1b" not in text
        assert done.stderr.count("\n") <= 1, (words[0], done.stderr)
    from bitscale.cli.verbs import VERBS

    assert verbs >= set(VERBS)
