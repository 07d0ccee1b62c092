"""bitscale reproduce: what it says, to people and to machines."""

import json

import pytest
from PIL import Image

from bitscale.cli.destinations import PERSONS
from bitscale.cli.reproduce_cells import check_report
from bitscale.paper.blocks import to_html
from bitscale.paper.figures import Figure, Line, draw
from bitscale.paper.report import FIGURES, PAGE, TITLE
from bitscale.reid.table import write_page
from tests.cli.run import bitscale, inside


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("BITSCALE_DATA", str(tmp_path / "data"))
    return tmp_path


@pytest.mark.slow
def test_a_small_version_and_its_status(here):
    done = inside("reproduce", "tab1", "--quick", "--only", "lsh", "--only", "itq")
    assert done.returncode == 0, done.stderr
    assert "4 cells measured, 0 were there; all are in results/paper/quick." in done.stdout
    assert "left of the plan" in done.stderr
    assert (here / "results/paper/quick/report.html").is_file()
    again = json.loads(inside("reproduce", "tab1", "--quick", "--only", "lsh", "--json").stdout)
    assert (again["measured"], again["there"], again["failed"]) == (0, 2, {})
    found = json.loads(inside("reproduce", "--quick", "--status", "--json", "--only", "lsh").stdout)
    assert {row["dataset"] for row in found} == {"sample"}
    assert all(row["ours"] > 10 for row in found if row["metric"] == "map")


def test_the_status_of_everything_without_anything(here):
    found = json.loads(inside("reproduce", "--status", "--json").stdout)
    assert {"tab1", "tab222", "tabtime", "fig:comp", "ablations"} <= {row["table"] for row in found}
    assert all(row["ours"] is None for row in found)
    keys = {"table", "dataset", "method", "bits", "metric", "paper", "ours", "protocol", "recipe", "network"}
    assert all(keys <= row.keys() for row in found)
    told = inside("reproduce", "tab2", "--status")
    assert "61.46" in told.stdout
    assert not (here / "results").exists()

    def tables(*words):
        return {row["table"] for row in json.loads(inside("reproduce", *words, "--status", "--json").stdout)}

    assert tables("tab2") == {"tab2"}
    assert tables("tabtime", "fig:comp") == {"tabtime", "fig:comp"}
    assert tables("fig:CIFAR") == {f"fig:cifar10_{part}" for part in ("hamm_dist", "precision_500", "precision_k")}
    assert {"fig:comp", "fig:nus_hamm_dist"} < tables("figures")
    assert {"tab2", "tab5", "fig:comp"} < tables("cifar10")
    assert "tab5" in tables("fig:short")


def test_missing_data_is_told(here):
    done = inside("reproduce", "tab3", "--only", "lsh")
    assert done.returncode == 0
    assert "not run: no data: nus-wide is not here" in done.stdout


def test_unknown_words_are_wrong_usage(here):
    done = inside("reproduce", "tab9")
    assert done.returncode == 2
    assert "the paper has no 'tab9'" in done.stderr
    assert "did you mean 'tab1'" in inside("reproduce", "TAB1").stderr
    assert "no small version of second-track" in inside("reproduce", "second-track", "--quick").stderr
    wrong = [["--only", "nonsense"], ["cuhk03", "--only", "nonsense"], ["cuhk03", "--quick"], ["fig:short", "--quick"]]
    for words in (*wrong, ["table:tab222", "--quick"]):
        told = json.loads(inside("reproduce", *words, "--json").stdout)
        assert told["error"]["exit_code"] == 2


@pytest.mark.slow
def test_an_edited_cell_is_refused(here):
    inside("reproduce", "tab1", "--quick", "--only", "lsh")
    path = next((here / "results/paper/quick").glob("*.json"))
    path.write_text(path.read_text().replace('"dataset": "sample"', '"dataset": "mnist"'))
    done = inside("reproduce", "tab1", "--quick", "--only", "lsh")
    assert done.returncode == 1
    assert "changed after it was measured" in done.stderr


@pytest.mark.parametrize(
    ("what", "name"),
    [("mnist", "paper/report.html"), ("mnist", "paper/figures/mnist-map.png"), ("cuhk03", "reid/table.md")],
)
def test_reports_of_others_are_left_alone(here, what, name):
    mine = here / "results" / name
    mine.parent.mkdir(parents=True)
    Image.new("RGB", (9, 7), "red").save(mine, format="PNG")
    before = mine.read_bytes()
    done = inside("reproduce", what)
    assert done.returncode == 1
    assert "--force" in done.stderr
    assert mine.read_bytes() == before
    assert inside("reproduce", what, "--status").returncode == 0


def test_reports_of_ours_are_known(here):
    folder = here / "results" / "paper"
    assert check_report(folder, {"mnist"}, False) is None  # nothing is there yet
    draw(Figure("mnist-map", "map", "bits", "%", (Line("itq", ((8, 1.0), (16, 2.0))),)), folder / FIGURES)
    (folder / PAGE).write_text(to_html((), TITLE))
    (folder / FIGURES / "mine.png").write_bytes(b"mine")
    assert check_report(folder, {"mnist"}, False) is None
    assert PERSONS.is_ours(write_page(here, []))


@pytest.mark.slow
def test_as_a_process(here):
    done = bitscale("reproduce", "mnist", "--quick", "--only", "sh", cwd=here)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 2
