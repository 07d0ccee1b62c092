"""Models: stopped anywhere a training goes on, and a model is used again only for what it was made for."""

import os
import re
import shutil
import signal
from dataclasses import replace

import pytest

from bitscale.hashers import load_hasher
from bitscale.paper import Cell, Places, reproduce
from bitscale.paper.models import MODEL, kept_model
from bitscale.paper.record import path_of, read

pytestmark = pytest.mark.slow

STEPS = 6


def nested(**settings):
    given = tuple(settings.items())
    return [Cell("sample", "nested", bits, 16, "ours", iterations=STEPS, settings=given) for bits in (8, 16)]


def steps(lines):
    return [int(found[1]) for line in lines if (found := re.search(r"step (\d+) of", line))]


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "results", tmp_path / "runs")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The fingerprint of a training that nothing interrupted."""
    home = tmp_path_factory.mktemp("whole")
    reproduce(nested(), Places(home / "results", home / "runs"))
    return read(path_of(nested()[0], home / "results"))["model"]


def test_a_training_stopped_by_ctrl_c_goes_on_where_it_was(places, whole):
    def stop(line):
        if "step 3 of" in line:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        reproduce(nested(), places, stop)
    assert not list(places.results.glob("*.json"))
    told = []
    reproduce(nested(), places, told.append)
    assert steps(told) == [4, 5, 6]
    records = [read(path_of(cell, places.results)) for cell in nested()]
    assert {record["model"] for record in records} == {whole}
    assert records[0]["network"] == "paper-net+recipe"
    assert records[0]["settings"]["iterations"] == STEPS
    folder = places.runs / nested()[0].trainings[0].name
    assert not (folder / "checkpoint.safetensors").exists()
    assert len(records[1]["runs"][0]["bit_weights"]) == 16


def test_a_kept_model_is_used_again(places, whole):
    reproduce(nested(), places)
    shutil.rmtree(places.results)
    told = []
    reproduce(nested(), places, told.append)
    assert steps(told) == []
    assert read(path_of(nested()[0], places.results))["model"] == whole


def test_a_model_of_other_data_is_not_used(places):
    [cell] = cells = [Cell("sample", "itq", 8, 8)]
    reproduce(cells, places)
    model = places.runs / cell.trainings[0].name / MODEL
    before = model.read_bytes()
    other = load_hasher(model)
    other.origin = replace(other.origin, split_seed=1)
    other.save(model)
    shutil.rmtree(places.results)
    reproduce(cells, places)
    assert model.read_bytes() == before


def test_a_model_or_checkpoint_of_other_settings_is_not_used(places, whole):
    other = nested(learning_rate=0.01)
    reproduce(other, places)
    [there] = {cell.trainings[0] for cell in other}
    [wanted] = {cell.trainings[0] for cell in nested()}
    (places.runs / there.name).rename(places.runs / wanted.name)
    assert kept_model(wanted, places.runs / wanted.name) is None
    told = []
    reproduce(nested(), places, told.append)
    assert steps(told) == [1, 2, 3, 4, 5, 6]
    assert read(path_of(nested()[0], places.results))["model"] == whole


def test_a_damaged_checkpoint_is_begun_anew(places, whole):
    folder = places.runs / nested()[0].trainings[0].name
    folder.mkdir(parents=True)
    (folder / "checkpoint.safetensors").write_bytes(b"rubbish")
    told = []
    reproduce(nested(), places, told.append)
    assert steps(told) == [1, 2, 3, 4, 5, 6]


def test_a_training_that_fails_is_told_and_the_others_go_on(places):
    cells = [*nested(learning_rate=1e30), Cell("sample", "lsh", 16, 16)]
    outcome = reproduce(cells, places)
    assert [cell.method for cell in outcome.measured] == ["lsh"]
    assert "became infinite or NaN" in next(iter(outcome.failed.values()))
