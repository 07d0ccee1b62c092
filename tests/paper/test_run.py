"""The run: what is missing is measured once, and nothing that goes wrong takes the rest with it."""

import json

import numpy as np
import pytest

import bitscale as bs
import bitscale.data
from bitscale.errors import CorruptFile, FileError
from bitscale.paper import Cell, Places, reproduce
from bitscale.paper.lock import alone
from bitscale.paper.measure import hold_back
from bitscale.paper.pace import Pace, spoken
from bitscale.paper.record import path_of, read
from bitscale.paper.run import waiting
from bitscale.paper.subsets import leave_one_out_map, random_subsets

pytestmark = pytest.mark.slow

LSH = [Cell("sample", "lsh", bits, bits, seeds=(0, 1)) for bits in (8, 16)]
ITQ = [Cell("sample", "itq", 16, 16)]


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "results", tmp_path / "runs")


def test_what_is_there_is_never_measured_again(places):
    told = []
    first = reproduce(LSH, places, told.append)
    assert (len(first.measured), first.there, first.not_run, first.failed) == (4, 0, {}, {})
    assert any("left of the plan" in line for line in told)
    before = {path.name: path.read_bytes() for path in places.results.glob("*.json")}
    second = reproduce([*LSH, *ITQ], places)
    assert ([cell.method for cell in second.measured], second.there) == (["itq"], 2)
    assert {name: (places.results / name).read_bytes() for name in before} == before


def test_the_value_is_that_of_evaluate(places):
    reproduce(LSH[:1], places)
    record = read(path_of(LSH[0], places.results))
    split = bs.load_dataset("sample")
    values = []
    for seed in (0, 1):
        hasher = bs.make_hasher("lsh", n_bits=8, seed=seed).fit(split.train)
        values.append(100 * bs.evaluate(hasher, split, metrics="map")["map", 8])
        assert record["runs"][seed]["model"] == hasher.fingerprint
    assert record["value"] == pytest.approx(np.mean(values), abs=1e-3)
    assert record["chance_map"] == pytest.approx(100 * split.chance_map(), abs=1e-3)
    assert record["protocol"] == "P0"


def test_a_run_that_was_stopped_goes_on(places):
    """Ctrl-C after the first training: what it gave is kept, and the rest is measured by the next run."""

    def stop(line):
        if ": MAP at" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(LSH, places, stop)
    assert read(path_of(LSH[0], places.results))["seeds"] == [0]
    again = reproduce(LSH, places)
    assert len(again.measured) == 3


def test_missing_data_is_told_and_the_others_go_on(places, tmp_path):
    away = Places(places.results, places.runs, tmp_path / "no data")
    cells = [Cell("nus-wide", "lsh", 16, 16), Cell("mnist", "lsh", 16, 16), *ITQ]
    outcome = reproduce(cells, away)
    assert [cell.dataset for cell in outcome.measured] == ["sample"]
    assert all(why.startswith("no data") for why in outcome.not_run.values())
    assert len(outcome.not_run) == 2


def test_weights_of_others_that_are_missing_are_told(places, tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_DATA", str(tmp_path))
    outcome = reproduce([Cell("sample", "ksh-cnn", 16, 16, features="alexnet"), *ITQ], places)
    assert [cell.method for cell in outcome.measured] == ["itq"]
    assert "alexnet" in next(iter(outcome.not_run.values())).lower()


def test_a_second_run_at_the_same_time_is_refused(places):
    with alone(places.results), pytest.raises(FileError, match="another run is at work"):
        reproduce(ITQ, places)
    assert len(reproduce(ITQ, places).measured) == 1


def test_a_cell_that_cannot_be_trusted_stops_before_any_work(places):
    reproduce(ITQ, places)
    path = path_of(ITQ[0], places.results)
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"value": 99.9}))
    with pytest.raises(CorruptFile, match="changed after it was measured"):
        reproduce(LSH, places)
    assert not path_of(LSH[0], places.results).exists()


def test_one_training_serves_every_cell_it_can():
    cells = [Cell("sample", "nested", bits, 64, "ours", iterations=10, seeds=(0, 1)) for bits in (8, 64)]
    todo = waiting(cells, {})
    assert [(training.seed, len(lot)) for training, lot in todo.items()] == [(0, 2), (1, 2)]
    assert waiting(cells, {cells[0].name: {"seeds": [0, 1]}, cells[1].name: {"seeds": [0]}}).keys() == {
        cells[1].trainings[1]
    }


def test_the_time_left_follows_what_was_seen():
    training = Cell("mnist", "drsch", 64, 64, "ours", iterations=2000).trainings[0]
    pace = Pace()
    before = pace.left([(training, 1)])
    pace.done(training, 1, 2 * pace.seconds(training, 1))
    assert pace.left([(training, 1)]) == pytest.approx(2 * before)
    assert (spoken(20), spoken(600), spoken(7300)) == ("less than a minute", "10 min", "2 h 02 min")


def test_random_subsets_against_evaluate():
    """All bits, in any number, are one subset: their MAP is that of `evaluate`."""
    split = bs.load_dataset("sample")
    hasher = bs.make_hasher("itq", n_bits=8).fit(split.train)
    codes = hasher.encode(split.query.images)
    whole = 100 * bs.evaluate(hasher, split, metrics="map")["map", 8]
    assert leave_one_out_map(codes, split) == pytest.approx(whole, abs=1e-9)
    drawn = random_subsets(codes, split, 3, seed=0)
    assert len(drawn) == 10
    assert max(drawn) <= whole


def test_what_is_held_out_is_scored_on_training_images_alone(places):
    """Right after a cell of the same data and seed that is scored on the queries."""
    kept = Cell("sample", "lsh", 8, 8, held_out=True)
    reproduce([LSH[0], kept], places)
    record = read(path_of(kept, places.results))
    assert record["runs"][0]["n_queries"] == 400
    assert record["scored_on"] == "training images kept back"
    assert "map-asymmetric" in record["scores"]
    assert read(path_of(LSH[0], places.results))["runs"][0]["n_queries"] == 1000
    split = bs.load_dataset("sample")
    held = hold_back(split, 0)
    assert len(held.train) == 3600
    both = np.concatenate([bs.data.read(part.images, np.arange(len(part))) for part in (held.train, held.query)])
    whole = bs.data.read(split.train.images, np.arange(4000))
    order = [np.lexsort(lot.reshape(4000, -1).T) for lot in (both, whole)]
    assert np.array_equal(both[order[0]], whole[order[1]])


def test_random_subsets_are_kept_beside_the_heaviest_bits(places):
    cell = Cell("sample", "itq", 8, 16, metric="map-random")
    reproduce([cell], places)
    record = read(path_of(cell, places.results))
    assert record["value"] == record["scores"]["map-random"] <= record["scores"]["map-random-best"]
    assert record["scores"]["map"] > 10
