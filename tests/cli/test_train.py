"""Training, exporting and describing a model from the command line, on the bundled sample."""

import json

import numpy as np
import pytest

import bitscale as bs
from tests.cli.run import bitscale


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    settings = ("--set", "iterations=40", "--set", "images_per_class=8")
    words = (
        "train",
        "sample",
        "nested",
        "--bits",
        16,
        *settings,
        "--out",
        folder / "m.safetensors",
        "--run",
        folder / "run",
    )
    out = bitscale(*words, "--json")
    assert out.returncode == 0, out.stderr
    return folder, json.loads(out.stdout)


def test_training_leaves_model_card_history_and_plot(trained):
    folder, facts = trained
    assert facts["n_bits"] == 16
    card = (folder / "m.md").read_text()
    assert facts["fingerprint"] in card
    assert "4,000 training images" in card
    assert {"history.json", "loss.png"} <= {path.name for path in (folder / "run").iterdir()}
    assert len(bs.load_hasher(folder / "m.safetensors").encode(np.zeros((2, 28, 28, 1), np.uint8))) == 2


def test_info_prints_layers_shapes_and_parameters(trained):
    facts = json.loads(bitscale("info", trained[0] / "m.safetensors", "--json").stdout)
    assert facts["method"] == "nested"
    assert facts["input_shape"] == [1, 28, 28]
    assert any(line.startswith("conv") for line in facts["layers"])
    assert facts["parameters"] > 100_000
    assert "tanh-like" in bitscale("info", trained[0] / "m.safetensors").stdout


def test_a_trained_model_is_evaluated_and_exported(trained):
    folder, _ = trained
    out = bitscale("evaluate", "sample", "--model", folder / "m.safetensors", "--bits", "16,8", "--json")
    assert out.returncode == 0, out.stderr
    exported = bitscale("export", folder / "m.safetensors", folder / "m.onnx", "--json")
    assert json.loads(exported.stdout)["bytes"] == (folder / "m.onnx").stat().st_size


def test_resuming_needs_a_checkpoint_of_the_same_run(trained):
    folder, _ = trained
    words = ("train", "sample", "nested", "--bits", 8, "--out", folder / "x.safetensors", "--run", folder / "run")
    out = bitscale(*words, "--resume")
    assert out.returncode == 1
    assert out.stderr.count("\n") == 1


def test_what_cannot_be_done_is_said(tmp_path):
    out = bitscale("train", "sample", "itq", "--bits", 8, "--out", tmp_path / "i.safetensors", "--run", tmp_path / "r")
    assert "deep methods" in out.stderr
    assert bitscale("train", "sample", "itq", "--bits", 8, "--out", tmp_path / "i.safetensors").returncode == 0
    assert "not a network" in bitscale("export", tmp_path / "i.safetensors", tmp_path / "i.onnx").stderr
    assert "folder does not exist" in bitscale("train", "sample", "--out", tmp_path / "no" / "x").stderr


def test_ctrl_c_tells_how_to_go_on(tmp_path):
    import os
    import signal
    import threading
    import time

    from bitscale.cli.train import fit
    from bitscale.errors import BitscaleError

    split = bs.load_dataset("sample")
    hasher = bs.make_hasher("drsch", n_bits=8, iterations=100_000, images_per_class=2)
    usual = signal.getsignal(signal.SIGINT)

    def press():
        while signal.getsignal(signal.SIGINT) is usual:  # until the training listens
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(BitscaleError, match=r"stopped before the end. Go on with --run .* --resume"):
        fit(hasher, split, tmp_path, False, "cpu", True)
    assert {"checkpoint.safetensors", "history.json"} <= {path.name for path in tmp_path.iterdir()}
