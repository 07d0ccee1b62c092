"""Training runs: they learn, resume bit for bit, stop where they must and say why."""

import json
import signal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bitscale.deep import train as module
from bitscale.deep.checkpoint import NAME
from bitscale.errors import CorruptFile, FileError, InputError, TrainingStopped
from bitscale.hashers import make_hasher
from tests.hashers.clusters import features, images

TRAIN = features(200, seed=1)
QUICK = {"iterations": 12, "classes_per_batch": 4, "images_per_class": 4}


def make(name="drsch", **options):
    return make_hasher(name, **{"n_bits": 8, "features": "none", **QUICK, **options})


class Stop(Exception):
    pass


def stop_after(step):
    def progress(now):
        if now.step == step:
            raise Stop

    return progress


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("drsch", {}),
        ("nested", {"network": "paper-net+recipe", "dropout": 0.3, "validation_share": 0.2}),
        ("nested", {"hash_norm": True, "proxy_weight": 1.0}),
        ("bs-dsch", {"optimizer": "sgd", "sampled_triplets": 50}),
    ],
)
@pytest.mark.parametrize("kind", ["images", "vectors"])
def test_resume_gives_the_same_weights_bit_for_bit(name, options, kind, tmp_path, monkeypatch):
    part = TRAIN if kind == "vectors" else images(120, seed=1)
    augmented = {"features": "pixels", "shift": 1, "shift_by": "image", "flip": True}
    options = {**options, **({} if kind == "vectors" else augmented)}
    whole = make(name, **options).fit(part)
    monkeypatch.setattr(module, "CHECKPOINT_SECONDS", 0.0)  # after every step
    with pytest.raises(Stop):
        make(name, **options).fit(part, run=tmp_path, progress=stop_after(7))
    resumed = make(name, **options).fit(part, run=tmp_path, resume=True)
    assert resumed.fingerprint == whole.fingerprint
    assert resumed.history == whole.history


@pytest.mark.slow
def test_in_bfloat16_too(tmp_path, monkeypatch):
    part = images(120, seed=1)
    options = {"features": "pixels", "precision": "bfloat16", "input_size": 24, "initial": "he"}
    whole = make("nested", **options).fit(part)
    monkeypatch.setattr(module, "CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(Stop):
        make("nested", **options).fit(part, run=tmp_path, progress=stop_after(7))
    resumed = make("nested", **options).fit(part, run=tmp_path, resume=True)
    assert (
        resumed.fingerprint
        == whole.fingerprint
        != make("nested", **options | {"precision": "float32"}).fit(part).fingerprint
    )
    with pytest.raises(InputError, match=r"8x10 in bfloat16.*precision=.float32"):
        make("nested", **options | {"input_size": 0}).fit(part)


def test_ctrl_c_ends_the_step_and_keeps_it(tmp_path):
    whole = make().fit(TRAIN)

    def press(now):
        if now.step == 5:
            signal.raise_signal(signal.SIGINT)  # to this very thread, so that the step is known

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        make().fit(TRAIN, run=tmp_path, progress=press)
    assert signal.getsignal(signal.SIGINT) is before
    steps = []
    resumed = make().fit(TRAIN, run=tmp_path, resume=True, progress=lambda now: steps.append(now.step))
    assert steps[0] == 6
    assert resumed.fingerprint == whole.fingerprint


def test_the_same_call_goes_on_by_itself(tmp_path):
    def press(now):
        if now.step == 5:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        make().fit(TRAIN, run=tmp_path, progress=press)
    with pytest.raises(InputError, match="seed: 0 there, 3 here"):
        make(seed=3).fit(TRAIN, run=tmp_path)
    steps = []
    make().fit(TRAIN, run=tmp_path, progress=lambda now: steps.append(now.step))
    assert steps[0] == 6
    steps.clear()
    make(seed=3).fit(TRAIN, run=tmp_path, resume=False, progress=lambda now: steps.append(now.step))
    assert steps[0] == 1


def test_a_finished_run_resumed_is_itself(tmp_path):
    first = make().fit(TRAIN, run=tmp_path)
    assert make().fit(TRAIN, run=tmp_path, resume=True).fingerprint == first.fingerprint


def test_loss_that_is_not_finite_stops_with_an_explanation(tmp_path, monkeypatch):
    with pytest.raises(TrainingStopped, match=r"lower learning_rate"):
        make("euclidean", optimizer="sgd", learning_rate=1e30).fit(TRAIN)
    monkeypatch.setattr(module, "CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(TrainingStopped, match="last good checkpoint is"):
        make("euclidean", optimizer="sgd", learning_rate=1e30).fit(TRAIN, run=tmp_path)
    kept = [tensor for name, tensor in load_file(tmp_path / NAME).items() if "model" in name]
    assert kept
    assert all(torch.isfinite(tensor).all() for tensor in kept)


def test_values_that_are_not_finite_stop_without_a_folder_too():
    """The last step's loss is still finite, what the network says afterwards is not."""
    with pytest.raises(TrainingStopped, match="lower learning_rate"):
        make("euclidean", iterations=1, optimizer="sgd", learning_rate=3e38).fit(TRAIN)


def test_a_checkpoint_of_another_configuration(tmp_path):
    make().fit(TRAIN, run=tmp_path)
    for other, what in (
        (make(learning_rate=0.5), "learning_rate: None there, 0.5 here"),
        (make("dsch"), "method: 'drsch' there, 'dsch' here"),
        (make(n_bits=16), "n_bits"),
        (make(seed=3), "seed"),
    ):
        with pytest.raises(InputError, match=what):
            other.fit(TRAIN, run=tmp_path, resume=True)
    with pytest.raises(InputError, match="trained_on"):
        make().fit(features(200, seed=9), run=tmp_path, resume=True)


def test_bad_checkpoints(tmp_path):
    with pytest.raises(InputError, match="run="):
        make().fit(TRAIN, resume=True)
    with pytest.raises(FileError, match="no checkpoint"):
        make().fit(TRAIN, run=tmp_path, resume=True)
    (tmp_path / NAME).write_bytes(b"\x80\x04nonsense")
    with pytest.raises(CorruptFile, match="damaged"):
        make().fit(TRAIN, run=tmp_path, resume=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be written"):
        make().fit(TRAIN, run=tmp_path / "file")


def test_history_and_progress(tmp_path):
    told = []
    hasher = make(validation_share=0.25).fit(TRAIN, run=tmp_path, progress=told.append)
    written = json.loads((tmp_path / "history.json").read_text())
    assert written["history"] == hasher.history
    assert [line["step"] for line in hasher.history] == list(range(12))
    assert all(0 <= line["active"] <= 1 and line["laplacian_share"] > 0 for line in hasher.history)
    assert 0 < hasher.history[-1]["validation_map"] <= 1
    assert [now.step for now in told] == list(range(1, 13))
    assert told[0].beta == 2
    assert told[-1].seconds_left == 0
    assert all(now.images_per_second > 0 for now in told)


def test_the_weights_that_did_best_on_validation_are_kept(monkeypatch):
    scores = iter([0.1, 0.9, 0.3] + [0.2] * 20)
    seen = []
    monkeypatch.setattr(module, "validation_map", lambda network, task: next(scores))
    original = module.Training._advance

    def spy(self):
        found = original(self)
        seen.append(self.network.phi[-1].weight.detach().clone())
        return found

    monkeypatch.setattr(module.Training, "_advance", spy)
    hasher = make(validation_share=0.25).fit(TRAIN)
    np.testing.assert_array_equal(hasher.arrays["phi.2.weight"], seen[1].numpy())


def test_training_leaves_the_callers_randomness_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    make(dropout=0.5).fit(TRAIN)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_the_loss_falls(optimizer):
    hasher = make(iterations=60, optimizer=optimizer, beta_end=20.0).fit(TRAIN)
    losses = [line["loss"] for line in hasher.history]
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 1
