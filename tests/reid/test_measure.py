"""Methods on splits of persons: results a split, read again where they are there; the paper's table from them."""

import json

import numpy as np
import pytest

from bitscale.errors import CorruptFile, InputError
from bitscale.reid import table
from bitscale.reid.measure import Asked, measure, summary
from bitscale.reid.persons import choosing, split
from bitscale.reid.sources import load_people
from bitscale.reid.table import AS_PRINTED, PLAN, fill, lines, markdown, persons_in_each, write_page
from bitscale.reid.trials import trial
from tests.cli.run import inside
from tests.reid.crops import crop, cuhk03_folder, save


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return cuhk03_folder(tmp_path_factory.mktemp("cuhk03"), persons=40)


def test_names_tell_results_apart():
    names = [asked.name for asked in PLAN]
    assert len(set(names)) == len(names)
    assert Asked("ksh", (64,), "mobilenetv2@112").name == "ksh-64-mobilenetv2-112"
    assert Asked("nested", (128, 64), "openvino:/some/where/net-0277.xml").name == "nested-128-net-0277"
    assert Asked("nested", settings={"input_size": 250, "input_width": 100}).size == (250, 100)
    assert Asked("nested", features="openvino:net.xml").size == (256, 128)
    assert Asked("ksh", features="mobilenetv2@112").size == (112, 112)
    assert AS_PRINTED.label == "drsch as-printed at 250x100"
    taught = Asked("nested", (128,), teacher="openvino:/some/where/net-0277.xml")
    assert (taught.name, taught.size) == ("nested-128-taught-by-net-0277", (128, 48))


@pytest.mark.slow
def test_a_result_is_written_once_and_read_again(root, tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    people = load_people(root).at((16, 8))
    quick = {"input_size": 16, "input_width": 8, "iterations": 20, "classes_per_batch": 8, "images_per_class": 4}
    asked = Asked("nested", (16, 8), settings=quick)
    assert asked.size == (16, 8)
    one = split(people, 0, tested=6)
    found = measure(asked, one, tmp_path / "out")
    assert set(found["matches"]) == {"16", "8", "16 relaxed", "8 relaxed"}
    assert found["persons"] == {"train": 34, "test": 6, "pictures": 24}
    assert "40 of 1,467 persons" in found["note"]
    assert not [name for name in people.names if name in json.dumps(found)]
    assert measure(asked, one, tmp_path / "out") == found
    means = summary([found, found])
    assert means["16"][1][0] == pytest.approx(100 * found["matches"]["16"][0]["rates"]["1"])
    with pytest.raises(InputError, match="learns from features here"):
        measure(Asked("ksh"), one, tmp_path / "out")


@pytest.mark.slow
def test_trials_are_kept_and_never_on_persons_that_are_tested(root, tmp_path, monkeypatch):
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    people = load_people(root).at((16, 8))
    quick = {"input_size": 16, "input_width": 8, "iterations": 5, "classes_per_batch": 8, "images_per_class": 4}
    apart = choosing(people, tested=6)
    tested = np.concatenate([split(people, number, tested=6).test.persons for number in range(3)])
    assert not np.isin(tested, np.concatenate([apart.train.persons, apart.test.persons])).any()
    for rate in (1e-3, 1e-2, 1e-3):
        trial(Asked("nested", (16, 8), settings={**quick, "learning_rate": rate}), apart, tmp_path)
    kept = json.loads((tmp_path / "trials.json").read_text())
    assert [one["settings"]["learning_rate"] for one in kept] == [1e-2, 1e-3]  # the third was the first again
    assert kept[0]["all_settings"]["erasing"] == 0.5  # what the recipe chose is told, too
    assert set(kept[0]["rates"]) == {"16", "8", "16 relaxed", "8 relaxed"}
    assert not [name for name in people.names if name in json.dumps(kept)]
    with pytest.raises(InputError, match="no split tests on"):
        trial(Asked("kissme"), split(people, 0, tested=6), tmp_path)


@pytest.mark.parametrize("content", [b"{", b"[1, 2]", b'{"name": "mine"}', b"\xff\xd8 a photograph"])
def test_a_file_of_somebody_else_stays_as_it_is(root, tmp_path, content):
    people = load_people(root).at((16, 8))
    asked, apart, one = Asked("kissme"), choosing(people, tested=6), split(people, 0, tested=6)
    trials, result = tmp_path / "trials.json", tmp_path / f"{asked.name}-{one.name}.json"
    for path, call, part in ((trials, trial, apart), (result, measure, one)):
        path.write_bytes(content)
        with pytest.raises(CorruptFile, match="Move it away"):
            call(asked, part, tmp_path)
        assert path.read_bytes() == content


@pytest.mark.slow
def test_the_paper_s_table(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plan = (Asked("kissme", settings={"dimensions": 8}), Asked("euclidean", features="gist@32"))
    assert persons_in_each(load_people(root)) == 4
    assert fill(root, tmp_path / "results/reid", splits=[0, 2], plan=plan) == {}
    rows = list(lines(tmp_path / "results/reid", {("kissme", None): {1: 14.17}}, plan))
    assert [(row.method, row.splits) for row in rows] == [("kissme", 2), ("euclidean on gist-32", 2)]
    assert rows[0].paper == {1: 14.17}
    assert rows[0].ours[30][0] == 100  # of four persons
    assert "| kissme |" in markdown(rows)
    page = write_page(tmp_path / "results/reid", rows).read_text()
    assert markdown(rows) in page
    assert "40 of 1,467 persons" in page
    assert "drsch as-printed at 250x100: one split, with input_size=250" in page
    failing = (Asked("ksh", (8,)),)
    assert "learns from features" in fill(root, tmp_path / "results/reid", splits=[0], plan=failing)["ksh-8, split 0"]
    told = json.loads(inside("reproduce", "cuhk03", "--status", "--json").stdout)
    assert [row["method"] for row in told["rows"]] == ["kissme"]
    assert inside("reproduce", "cuhk03", "tab1").returncode == 2
    shown = inside("reid", "measure", root, "kissme", "--splits", "2", "--persons", "4", "--set", "dimensions=8")
    assert "kissme at all bits: rank-1" in shown.stdout
    assert "of 1,467 persons" in shown.stdout
    assert np.isfinite(rows[1].ours[1][1])


def test_a_person_without_a_second_camera_is_counted(tmp_path):
    root = cuhk03_folder(tmp_path / "cuhk03", persons=12)
    save(root / "labeled/train/0900_00.png", crop(900, 0, 0))
    how = ("--splits", "2", "--persons", "3", "--set", "dimensions=8", "--results", tmp_path / "results")
    shown = inside("reid", "measure", root, "kissme", *how)
    assert "1 persons without a second camera are learned from only." in shown.stdout


@pytest.mark.slow
def test_what_is_too_dear_for_three_splits_has_one_and_a_teacher_s_vectors_are_made(root, tmp_path, monkeypatch):
    """The plain network before has the same form of pictures, which a taught one cannot take over."""
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    quick = {"input_size": 16, "input_width": 8, "iterations": 2, "classes_per_batch": 8, "images_per_class": 4}
    plan = (Asked("nested", (8,), settings=quick), Asked("nested", (8,), settings=quick, teacher="gist@32"))
    monkeypatch.setattr(table, "ONE_SPLIT", plan)
    assert fill(root, tmp_path / "results", plan=plan) == {}
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == [
        "nested-8-split-0.json",
        "nested-8-taught-by-gist-32-split-0.json",
    ]
