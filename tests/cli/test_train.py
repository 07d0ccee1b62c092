"""Training, exporting and describing a model from the command line, on the bundled sample."""

import json
import re
import shutil
import signal

import numpy as np
import pytest

import bitscale as bs
from tests.cli.run import bitscale, inside

pytestmark = pytest.mark.slow


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
    assert "4,000 images: sample, P0, official parts, part train" in card
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
    assert "folder does not exist" in bitscale("train", "sample", "--out", tmp_path / "no" / "x.safetensors").stderr


QUICK = ("--bits", 8, "--set", "iterations=12", "--set", "images_per_class=2", "--device", "cpu")


@pytest.fixture
def press(monkeypatch):
    """Ctrl-C after so many steps of a training, pressed by its own progress bar; counts the steps of the next."""
    from contextlib import contextmanager

    from bitscale.cli import demo, train

    seen = []

    def install(at):
        seen.clear()

        @contextmanager
        def bar(quiet):
            def show(now):
                seen.append(now.step)
                if len(seen) == at:
                    signal.raise_signal(signal.SIGINT)

            yield show

        monkeypatch.setattr(train, "training_bar", bar)
        monkeypatch.setattr(demo, "training_bar", bar)
        return seen

    return install


@pytest.mark.parametrize("with_run", [True, False])
def test_after_ctrl_c_the_same_command_goes_on(with_run, press, tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    words = ("train", "sample", "drsch", *QUICK, *(("--run", tmp_path / "run") if with_run else ()), "--out")
    press(0)
    assert inside(*words[:-1], "--anew", "--out", tmp_path / "whole.safetensors").returncode == 0
    whole = bs.load_hasher(tmp_path / "whole.safetensors").fingerprint
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    seen = press(5)
    stopped = inside(*words, tmp_path / "m.safetensors")
    assert stopped.returncode == 130
    assert "what was done is kept in" in stopped.stderr
    assert not (tmp_path / "m.safetensors").exists()
    done = seen[-1]
    seen = press(0)
    again = inside(*words, tmp_path / "m.safetensors")
    assert again.returncode == 0, again.stderr
    assert seen[0] == done + 1
    assert bs.load_hasher(tmp_path / "m.safetensors").fingerprint == whole
    assert with_run or not list((tmp_path / "runs").iterdir())  # the model is written, so nothing else is kept


def test_how_long_it_takes_is_said_into_a_pipe_too(tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    words = ("train", "sample", "drsch", *QUICK, "--force", "--out", tmp_path / "m.safetensors")
    done = bitscale(*words)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"About [^\n]+: 12 steps of [^\n]+ s\. Ctrl-C is safe\.\n", done.stderr)
    assert bitscale(*words, "--json").stderr == ""


def test_other_settings_in_the_same_run_are_refused(press, tmp_path):
    words = ("train", "sample", "drsch", *QUICK, "--run", tmp_path / "run", "--out", tmp_path / "m.safetensors")
    press(3)
    assert inside(*words).returncode == 130
    before = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
    other = inside(*words, "--seed", 7)
    assert other.returncode == 1
    assert "seed: 0 there, 7 here" in other.stderr
    assert "another folder" in other.stderr
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == before
    assert inside(*words, "--seed", 7, "--anew").returncode == 0


def test_a_stopped_demo_goes_on(press, tmp_path):
    press(3)
    stopped = inside("demo", "--steps", 6, "--out", tmp_path / "d")
    assert stopped.returncode == 130
    assert "what was learned is kept in" in stopped.stderr
    seen = press(0)
    assert inside("demo", "--steps", 6, "--out", tmp_path / "d", "--json").returncode == 0
    assert seen[0] > 3
    assert not (tmp_path / "d" / "training").exists()
