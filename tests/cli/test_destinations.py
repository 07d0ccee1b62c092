"""No verb writes over a file that bitscale did not write: every output option of every verb is tried."""

import os
import re
import shutil
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from bitscale.cli.app import GROUPS
from bitscale.cli.bench import BENCHMARKS
from bitscale.cli.destinations import MEASURED, check_destination
from bitscale.cli.verbs import VERBS
from tests.cli.run import bitscale, inside
from tests.collection.unprivileged import without_privileges

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]

# Every parameter that names a file or folder is one of these three. A new one must be added here, and an output
# gets a line in COMMANDS below.
READ = {"collection", "batch", "sources", "pictures", "model", "inputs", "labels", "path"}
READ |= {"csv", "protocol", "source", "from_feedback", "keys", "certificate", "certificate_key"}
READ |= {"audit"}  # written at its end alone, where it is an audit log: tests/server/test_audit.py
FOLDERS = {
    *((verb, "root") for verb in ("datasets", "datasets fetch", "train", "evaluate", "reproduce")),
    *((verb, "cache") for verb in ("train", "evaluate")),
    ("index", "collection"),
    ("reid measure", "results"),
    ("duplicates", "to"),  # named in a plan; nothing is written there
}
EARLY = {("reid train", "out"), ("reid train", "run"), ("reid who", "html")}  # refused before any work: see the end
OUTPUTS = {
    ("search", "html"): ".html",
    ("duplicates", "html"): ".html",
    ("duplicates", "plan"): ".json .csv .sh",
    ("train", "out"): ".safetensors",
    ("train", "run"): "folder",
    ("evaluate", "save"): ".safetensors",
    ("evaluate", "out"): ".json",
    ("evaluate", "plot"): ".png .pdf .svg",
    ("evaluate", "rankings"): "folder",
    ("encode", "out"): ".npy .bsi",
    ("export", "out"): ".onnx",
    ("demo", "out"): "folder",
    ("backup", "destination"): "folder",
}


def parameters(kind_of="Path"):
    """(verb, parameter) of each verb as they are registered: those whose type matches, which is what names a file."""
    homes = {name: import_module(f"bitscale.cli.{module}") for name, (module, _) in VERBS.items()}
    functions = {name: getattr(home, name) for name, home in homes.items() if hasattr(home, name)}
    for group in GROUPS:
        functions |= {f"{group} {inner.name}": inner.callback for inner in homes[group].app.registered_commands}
    for name, function in functions.items():
        for parameter, kind in get_type_hints(function).items():
            if re.search(kind_of, str(kind)):
                yield name, parameter


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A collection, models and arrays to run every verb with."""
    folder = tmp_path_factory.mktemp("outputs")
    split = bs.load_dataset("sample")
    (folder / "p").mkdir()
    for i in range(6):
        Image.fromarray(split.query.images[i][..., 0]).save(folder / "p" / f"{i}.png")
    assert inside("index", folder / "p", "--model", "fashion-mnist").returncode == 0
    rng = np.random.default_rng(0)
    np.save(folder / "x.npy", rng.normal(size=(60, 8)).astype(np.float32))
    np.save(folder / "y.npy", np.arange(60) % 3)
    from bitscale.data import Labelled

    vectors = Labelled(np.load(folder / "x.npy"), np.load(folder / "y.npy"), tuple("abc"))
    settings = {"features": "none", "iterations": 2, "images_per_class": 4, "classes_per_batch": 3}
    bs.make_hasher("nested", n_bits=8, **settings).fit(vectors).save(folder / "m.safetensors")
    return folder


@pytest.fixture
def words(home, tmp_path, monkeypatch):
    """The command of each output; OUT stands for where it writes."""
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    own = (home / "x.npy", "itq", "--labels", home / "y.npy", "--features", "none", "--bits", "4", "--metrics", "map")
    timed = (home / "x.npy", "nested", "--labels", home / "y.npy", "--features", "none", "--bits", "8",
             "--set", "images_per_class=4")  # fmt: skip
    deep = (*timed, "--set", "iterations=2")
    timed = (*timed, "--minutes", "0.001")
    return {
        ("search", "html"): ("search", home / "p.bsc", "1", "--html", "OUT"),
        ("duplicates", "html"): ("duplicates", home / "p.bsc", "--html", "OUT"),
        ("duplicates", "plan"): ("duplicates", home / "p.bsc", "--plan", "OUT"),
        ("train", "out"): ("train", *deep, "--out", "OUT"),
        ("train", "run"): ("train", *timed, "--out", tmp_path / "run.safetensors", "--run", "OUT"),
        ("evaluate", "save"): ("evaluate", *own, "--save", "OUT"),
        ("evaluate", "out"): ("evaluate", *own, "--out", "OUT"),
        ("evaluate", "plot"): ("evaluate", *own, "--plot", "OUT"),
        ("evaluate", "rankings"): ("evaluate", *own, "--rankings", "OUT"),
        ("encode", "out"): ("encode", home / "m.safetensors", home / "x.npy", "--out", "OUT"),
        ("export", "out"): ("export", home / "m.safetensors", "OUT"),
        ("demo", "out"): ("demo", "--steps", "1", "--out", "OUT"),
        ("backup", "destination"): ("backup", home / "p.bsc", "OUT"),
    }


def run(command, out, *more):
    return inside(*(out if word == "OUT" else word for word in command), *more)


def contents(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_every_output_is_known():
    """A parameter that names a file is read, a folder of ours, or an output that the tests below try."""
    unknown = {
        (verb, name)
        for verb, name in parameters()
        if (verb, name) not in {*OUTPUTS, *FOLDERS, *EARLY} and name not in READ
    }
    assert not unknown
    assert set(parameters()) >= EARLY
    assert set(OUTPUTS) <= set(parameters())


@pytest.mark.parametrize("which", [key for key, endings in OUTPUTS.items() if endings != "folder"], ids=" ".join)
def test_files_of_others_are_left_alone(which, words, home, tmp_path):
    """A photograph under any name, and a file of one's own with the right ending, stay byte for byte."""
    for ending in (".jpg", *OUTPUTS[which].split()):
        out = tmp_path / f"mine{ending}"
        Image.new("RGB", (9, 7), "red").save(out, format="JPEG")
        before = contents(tmp_path)
        done = run(words[which], out)
        assert done.returncode == (2 if ending == ".jpg" else 1), (ending, done.stdout)
        assert done.stderr.count("\n") == 1
        assert contents(tmp_path) == before, ending
        if ending != ".jpg":
            assert "--force" in done.stderr
            assert run(words[which], out, "--force").returncode == 0
            assert out.read_bytes() != before[out]
        out.unlink()


@pytest.mark.parametrize("which", [key for key, endings in OUTPUTS.items() if endings != "folder"], ids=" ".join)
def test_files_of_ours_are_written_again(which, words, tmp_path):
    for ending in OUTPUTS[which].split():
        for _ in range(2):
            done = run(words[which], tmp_path / f"ours{ending}")
            assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("which", [key for key, endings in OUTPUTS.items() if endings == "folder"], ids=" ".join)
def test_folders_of_others_are_left_alone(which, words, tmp_path):
    """Every file that a verb would leave in its folder, made by somebody else before."""
    if which == ("demo", "out"):
        names = ["contact-sheet.html", "model.safetensors"]
    else:
        assert run(words[which], tmp_path / "first").returncode == 0
        names = [path.relative_to(tmp_path / "first") for path in contents(tmp_path / "first")]
    assert names
    for name in names:
        folder = tmp_path / "mine"
        (folder / name).parent.mkdir(parents=True)
        Image.new("RGB", (9, 7), "red").save(folder / name, format="JPEG")
        before = contents(folder)
        assert run(words[which], folder).returncode == 1, name
        assert contents(folder) == before
        shutil.rmtree(folder)


def test_what_stands_beside_an_output_is_checked_too(words, tmp_path):
    """The card beside a model, and the list of names beside codes."""
    (tmp_path / "mine.md").write_text("# my notes\n")
    (tmp_path / "mine.npy.json").write_text("{}")
    assert "--force" in run(words["train", "out"], tmp_path / "mine.safetensors").stderr
    assert "--force" in run(words["encode", "out"], tmp_path / "mine.npy").stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.md", "mine.npy.json"]


def test_an_array_is_not_encoded_over_itself(home, words, tmp_path):
    shutil.copy(home / "x.npy", tmp_path / "x.npy")
    before = contents(tmp_path)
    done = inside("encode", home / "m.safetensors", tmp_path / "x.npy", "--out", tmp_path / "x.npy")
    assert done.returncode == 1
    assert contents(tmp_path) == before


def test_benchmarks_write_over_their_own_results_alone(tmp_path):
    """Their scripts have parsers of their own, which take beginnings of words, too."""
    mine = tmp_path / "mine.json"
    Image.new("RGB", (9, 7), "red").save(mine, format="JPEG")
    (tmp_path / "a.jpg").write_bytes(mine.read_bytes())
    before = contents(tmp_path)
    for words in (("--out", mine), (f"--out={mine}",), ("--ou", mine), (f"--o={mine}",)):
        done = inside("bench", "loss", *words)
        assert done.returncode == 1
        assert "--force" in done.stderr
    assert inside("bench", "loss", "--out", tmp_path / "a.jpg").returncode == 2
    assert contents(tmp_path) == before
    for name in BENCHMARKS:
        if (ROOT / "results" / f"{name}.json").exists():
            check_destination(ROOT / "results" / f"{name}.json", MEASURED)


def test_links_and_odd_files_are_not_ours(words, tmp_path):
    (tmp_path / "target.txt").write_text("mine")
    (tmp_path / "link.html").symlink_to(tmp_path / "target.txt")
    (tmp_path / "nowhere.html").symlink_to(tmp_path / "none")
    (tmp_path / "folder.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    for name in ("link.html", "nowhere.html", "folder.html", "pipe.html"):
        assert run(words["search", "html"], tmp_path / name).returncode == 1
    assert "it is a folder" in run(words["search", "html"], tmp_path / "folder.html", "--force").stderr
    assert (tmp_path / "target.txt").read_text() == "mine"


def test_a_folder_where_nothing_may_be_written_is_told_before_any_work(home, tmp_path):
    def encode():
        return bitscale("encode", home / "m.safetensors", home / "x.npy", "--out", closed / "x.npy").stderr

    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    assert "nothing may be written to its folder" in without_privileges(encode)


def test_the_demo_removes_nothing_that_is_not_its_own(tmp_path):
    """It trains in a folder of a common name, and removes what it left there."""
    (tmp_path / "training").mkdir()
    (tmp_path / "training" / "thesis.txt").write_text("mine")
    assert inside("demo", "--steps", "1", "--out", tmp_path).returncode == 0
    assert [path.name for path in (tmp_path / "training").iterdir()] == ["thesis.txt"]
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "training" / "history.json").write_text("mine")
    assert inside("demo", "--steps", "1", "--out", tmp_path).returncode == 1
    assert (tmp_path / "training" / "history.json").read_text() == "mine"


def test_the_slip_of_the_shell(home, tmp_path):
    """`--html slip/*.JPEG` takes the first photograph for the page."""
    for name in ("a.JPEG", "b.JPEG"):
        Image.new("RGB", (9, 7)).save(tmp_path / name)
    before = contents(tmp_path)
    done = inside("search", home / "p.bsc", "-k", 1, "--html", tmp_path / "a.JPEG", tmp_path / "b.JPEG")
    assert done.returncode == 2
    assert contents(tmp_path) == before


def test_outputs_about_persons_are_refused_before_any_work(home, tmp_path):
    mine = tmp_path / "run" / "checkpoint.safetensors"
    mine.parent.mkdir()
    for path in (tmp_path / "m.safetensors", tmp_path / "card.md", tmp_path / "who.html", mine):
        Image.new("RGB", (9, 7), "red").save(path, format="JPEG")
    before = contents(tmp_path)
    train = ("reid", "train", home / "p", "--out")
    for words in (
        (*train, tmp_path / "m.safetensors"),
        (*train, tmp_path / "card.safetensors"),
        (*train, tmp_path / "new.safetensors", "--run", mine.parent),
        ("reid", "who", home / "p.bsc", home / "p" / "1.png", "--html", tmp_path / "who.html"),
    ):
        done = inside(*words)
        assert done.returncode == 1
        assert "--force" in done.stderr
    assert contents(tmp_path) == before
