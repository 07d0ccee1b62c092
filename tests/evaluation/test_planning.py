"""Trainings that a person can plan: the time of a step is measured, and a schedule fits the minutes."""

import pytest

from bitscale.evaluation.planning import in_words, keep_schedule, kept_schedule, seconds_a_step, steps_for
from bitscale.hashers import make_hasher
from tests.cli.run import inside
from tests.hashers.clusters import features, images

QUICK = {"iterations": 50, "classes_per_batch": 4, "images_per_class": 3}


def test_a_step_is_measured_and_nothing_is_left_behind():
    hasher = make_hasher("nested", n_bits=8, **QUICK)
    settings = hasher.settings
    a_step, steps = seconds_a_step(hasher, images(40, seed=1))
    assert a_step > 0
    assert steps == 50
    assert hasher.settings == settings
    with pytest.raises(Exception, match="learned nothing"):
        _ = hasher.arrays
    assert seconds_a_step(make_hasher("itq", n_bits=8, features="none"), features(40, seed=1)) is None


def test_steps_fit_the_minutes():
    assert steps_for(20, 0.5) == 2160  # nine tenths of twenty minutes
    assert steps_for(0.001, 10) == 10
    assert [in_words(s) for s in (0.2, 59, 600, 9000)] == ["1 s", "59 s", "10 min", "2.5 h"]


def test_a_stopped_run_goes_on_with_the_same_steps(tmp_path):
    assert kept_schedule(tmp_path / "run", 20) is None
    keep_schedule(tmp_path / "run", 20, 1234)
    assert kept_schedule(tmp_path / "run", 20) == 1234
    assert kept_schedule(tmp_path / "run", 30) is None
    (tmp_path / "run" / "schedule.json").write_text("[]")
    assert kept_schedule(tmp_path / "run", 20) is None


@pytest.mark.slow
def test_training_for_some_minutes(tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    out = tmp_path / "m.safetensors"
    done = inside("train", "sample", "nested", "--out", out, "--bits", 8, "--minutes", 0.01)
    assert done.returncode == 0, done.stderr
    assert out.exists()
    assert not list((tmp_path / "runs").iterdir())  # nothing unfinished is left
    wrong = inside(
        "train", "sample", "nested", "--out", tmp_path / "n.safetensors", "--minutes", 1, "--set", "iterations=3"
    )
    assert (wrong.returncode, "leave out --set iterations" in wrong.stderr) == (2, True)
    wrong = inside("train", "sample", "itq", "--out", tmp_path / "n.safetensors", "--minutes", 1)
    assert (wrong.returncode, "is fitted in one go" in wrong.stderr) == (2, True)
