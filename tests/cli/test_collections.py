"""Collections from the command line: every verb, every JSON shape of docs/cli.md, exit codes, hostile names."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bitscale as bs
from bitscale.cli.batch import read_batch
from bitscale.errors import InputError
from tests.cli.run import bitscale, inside
from tests.collection.folders import fill
from tests.conftest import until
from tests.pictures.made import never_ending

NASTY = "it's <b>\n$(x)\udcff\x1b[31m.png"


def picture(path, image):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image[..., 0]).save(path, "PNG")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Sixty clothes in folders of their class, a broken file, and a collection of them."""
    folder = tmp_path_factory.mktemp("cli")
    query = bs.load_dataset("sample").query
    for i in range(60):
        picture(folder / "clothes" / f"class{query.labels[i]}" / f"{i}.png", query.images[i])
    picture(folder / "clothes" / NASTY, query.images[60])
    (folder / "clothes" / "broken.png").write_bytes(b"rubbish")
    out = inside("index", folder / "clothes", "--model", "fashion-mnist", "--folder-labels", "--json")
    assert out.returncode == 0, out.stdout
    return folder, json.loads(out.stdout)


@pytest.fixture
def copied(made, tmp_path):
    """The same, to be changed."""
    shutil.copytree(made[0] / "clothes", tmp_path / "clothes")
    assert inside("index", tmp_path / "clothes", "--model", "fashion-mnist").returncode == 0
    return tmp_path


def told(*words, code=0):
    """The one JSON document that a command writes."""
    out = inside(*words, "--json")
    assert out.returncode == code, out.stdout
    assert out.stderr == ""
    assert out.stdout.count("\n") == 1
    assert out.stdout.isascii()
    return json.loads(out.stdout)


def test_index_tells_what_it_did(made):
    folder, facts = made
    assert list(facts) == ["collection", "created", "refitted", "model", "items", "added", "updated", "moved",
                           "removed", "unchanged", "skipped"]  # fmt: skip
    assert facts["collection"] == str(folder / "clothes.bsc")
    assert (facts["created"], facts["items"], facts["added"]) == (True, 61, 61)
    assert [os.path.basename(one["path"]) for one in facts["skipped"]] == ["broken.png"]
    again = told("index", "--collection", folder / "clothes.bsc")
    assert (again["created"], again["added"], again["unchanged"]) == (False, 0, 61)
    text = inside("index", folder / "clothes").stdout
    assert "61 unchanged; 61 items." in text
    assert "broken.png cannot be read" in text


@pytest.mark.slow
def test_search_by_file_id_folder_and_batch(made, tmp_path):
    folder, _ = made
    home, one = folder / "clothes.bsc", folder / "clothes" / NASTY
    facts = told("search", home, one, "-k", 3)
    assert list(facts) == ["collection", "items", "bits", "queries", "unread"]
    assert len(facts["queries"][0]["matches"]) == 4  # the very picture does not use up -k
    assert facts["queries"][0]["query"] == str(one)
    item = told("search", home, one, "--where", "path~\udcff")["queries"][0]["matches"][0]
    assert item["path"] == str(one)
    assert item["distance"] == 0
    assert told("search", folder / "clothes", item["id"], "-k", 1)["queries"][0]["query"] == f"item {item['id']}"
    by_folder = told("search", home, folder / "clothes" / "class1", "--bits", 16, "--radius", 2)
    assert by_folder["bits"] == 16
    assert len(by_folder["queries"]) == len(list((folder / "clothes" / "class1").iterdir()))
    (tmp_path / "q.csv").write_text(f"name,path,id\nx,{folder}/clothes/broken.png,\ny,,3\nz,{folder}/clothes/class1,\n")
    (tmp_path / "q.jsonl").write_text(f'5\n\n{{"id": 6}}\n{json.dumps({"path": str(one)})}\n{json.dumps(str(one))}\n')
    batch = told("search", home, "--batch", tmp_path / "q.csv")
    assert [row["query"] for row in batch["queries"]] == ["item 3"]
    assert len(batch["unread"]) == 2
    some = told("search", home, 999_999, 4)
    assert [row["query"] for row in some["queries"]] == ["item 4"]
    assert some["unread"] == [{"path": "item 999999", "reason": "is not in clothes.bsc. It may have been removed."}]
    batch = told("search", home, 4, "--batch", tmp_path / "q.jsonl", "--max-distance", 0)
    assert [row["query"] for row in batch["queries"]] == ["item 4", "item 5", "item 6", str(one), str(one)]


def test_search_for_people(made):
    folder, _ = made
    out = inside("search", folder / "clothes.bsc", folder / "clothes" / NASTY, "-k", 2)
    assert out.returncode == 0
    assert "■" in out.stdout
    assert "\x1b" not in out.stdout
    assert "\\n$(x)\\udcff\\x1b[31m.png" in out.stdout
    assert "itself" in out.stdout
    assert "same kind" in out.stdout
    none = inside("search", folder / "clothes.bsc", 1, "--where", "label=unheard-of")
    assert "no item passes the filter" in none.stdout


@pytest.mark.slow
def test_labels_and_metadata_reach_where(copied):
    query = bs.load_dataset("sample").query
    picture(copied / "new" / "a.png", query.images[70])
    facts = told("add", copied / "clothes.bsc", copied / "new", "--label", "x", "--folder-labels", "--meta", "camera=2")
    assert facts["added"] == 1
    for condition in ("camera=2", "label=x", "label=new", "path~new"):
        found = told("search", copied / "clothes.bsc", 0, "--where", condition)["queries"][0]["matches"]
        assert [match["metadata"] for match in found] == [{"camera": 2}], condition
    assert found[0]["labels"] == ["x", "new"]
    gone = told("remove", copied / "clothes.bsc", "--where", "camera=2")
    assert gone == {"collection": str(copied / "clothes.bsc"), "removed": 1, "items": 61}
    assert told("remove", copied / "clothes.bsc", 0, copied / "clothes" / "class1")["removed"] > 1
    assert "does not hold 999" in inside("remove", copied / "clothes.bsc", "999").stderr


def test_vanished_files_ask(copied):
    (copied / "clothes").rename(copied / "away")
    facts = told("index", copied / "clothes", code=3)["error"]
    assert (facts["type"], facts["exit_code"], facts["missing"], len(facts["paths"])) == ("VanishedFiles", 3, 61, 61)
    assert "--accept-missing" in inside("index", copied / "clothes").stderr
    assert told("index", copied / "clothes", "--keep-missing")["items"] == 61
    assert told("index", copied / "clothes", "--accept-missing")["items"] == 0


def test_a_contact_sheet_is_written(made, tmp_path):
    folder, _ = made
    out = inside("search", folder / "clothes.bsc", folder / "clothes" / NASTY, "--html", tmp_path / "s.html")
    assert f"contact sheet: {tmp_path / 's.html'}" in out.stdout
    page = (tmp_path / "s.html").read_text()
    assert page.count("<img") == 12  # the query, itself, and ten more
    assert "<b>" not in page
    assert told("search", folder / "clothes.bsc", 1, "--html", tmp_path / "none" / "x.html", code=1)["error"]


@pytest.mark.slow
def test_open_shows_the_sheet_in_the_browser(made, tmp_path):
    (tmp_path / "browse").write_text(f'#!/bin/sh\necho "$1" >> "{tmp_path}/shown"\n')
    (tmp_path / "browse").chmod(0o755)
    home = made[0] / "clothes.bsc"
    environment = {**os.environ, "BROWSER": f"{tmp_path}/browse"}
    out = bitscale("search", home, 1, "--open", env=environment)
    page = out.stdout.split("contact sheet: ")[1].strip()
    assert (tmp_path / "shown").read_text() == f"file://{page}\n"
    assert "<img" in Path(page).read_text()


@pytest.mark.slow
def test_duplicates_are_found_and_planned(copied):
    shutil.copy(copied / "clothes" / NASTY, copied / "clothes" / "again.png")
    told("index", copied / "clothes")
    facts = told("duplicates", copied / "clothes.bsc", "--plan", copied / "p.sh", "--html", copied / "d.html")
    assert list(facts) == ["collection", "items", "identical", "near", "related", "crowded", "unread", "plan"]
    assert list(facts["identical"][0]) == ["keep", "why", "others"]
    assert list(facts["identical"][0]["keep"]) == ["id", "path", "size", "width", "height", "modified", "differs"]
    paths = {facts["identical"][0]["keep"]["path"], facts["identical"][0]["others"][0]["path"]}
    assert {os.path.basename(path) for path in paths} == {NASTY, "again.png"}
    assert b" && rm -- " in (copied / "p.sh").read_bytes()
    assert (copied / "clothes" / "again.png").exists()
    text = inside("duplicates", copied / "clothes.bsc").stdout
    assert "1 identical" in text
    assert "Nothing was deleted" in text
    assert "\x1b" not in text
    assert (
        told("duplicates", copied / "clothes.bsc", "--plan", copied / "p.doc", code=2)["error"]["type"] == "UsageError"
    )


@pytest.mark.slow
def test_upkeep(copied):
    home = copied / "clothes.bsc"
    assert told("compact", home)["items"] == 61
    copy = told("backup", home, copied / "safe.bsc")
    assert copy["backup"] == str(copied / "safe.bsc")
    assert told("info", copied / "safe.bsc")["items"] == 61
    assert told("backup", home, copied / "safe.bsc", code=1)["error"]["type"] == "FileError"
    facts = told("verify", home, "--files")
    assert (facts["ok"], facts["problems"]) == (True, [])
    assert "all is well" in inside("verify", home, "--migrate").stdout
    picture(next((copied / "clothes" / "class1").iterdir()), bs.load_dataset("sample").query.images[99])
    facts = told("verify", home, "--files", code=1)
    assert len(facts["problems"]) == 1
    about = told("info", home)
    assert (about["kind"], about["items"], about["skipped"]) == ("collection", 61, 1)
    assert about["folders"] == [str(copied / "clothes")]


def test_what_is_not_there_is_named_and_nothing_is_removed(copied):
    home, folder = copied / "clothes.bsc", copied / "clothes"
    for words, named in (
        ((7, 99_999), "99999"),
        (("9" * 5000,), "9" * 50),
        ((folder / "nothing.png", 8), "nothing.png"),
        ((copied / "elsewhere",), "elsewhere"),
    ):
        out = told("remove", home, *words, code=1)["error"]
        assert named in out["message"]
        assert "Nothing was removed" in out["message"]
    assert told("info", home)["items"] == 61
    assert told("remove", home, folder / "broken.png")["removed"] == 0  # known, as a file that could not be read
    assert told("info", home)["skipped"] == 0
    assert told("remove", home, 7, folder / "class1")["removed"] > 1
    assert told("remove", home, "--where", "id>9000")["removed"] == 0
    assert told("remove", home, folder)["items"] == 0
    assert told("info", home)["folders"] == []
    with bs.Collection.open(home) as photos:
        assert photos.remove([99_999]) == 0  # the library goes on ignoring it


def test_a_folder_that_was_taken_in_is_known_though_nothing_of_it_is_left(copied):
    home, folder = copied / "clothes.bsc", copied / "clothes"
    told("remove", home, *range(61), folder / "broken.png")
    assert told("info", home)["folders"] == [str(folder)]
    assert told("remove", home, folder)["removed"] == 0
    assert told("info", home)["folders"] == []
    assert "does not hold" in told("remove", home, folder, code=1)["error"]["message"]


@pytest.mark.slow
def test_codes_are_verified(copied):
    home = copied / "clothes.bsc"
    facts = told("verify", home, "--codes", "all")["facts"]
    assert (facts["codes_checked"], facts["codes_unchecked"]) == (61, 0)
    assert told("verify", home, "--codes", 5)["facts"]["codes_checked"] == 5
    assert "5 codes encoded anew" in inside("verify", home, "--codes", 5).stdout
    with bs.Collection.open(home) as photos:
        first, second, *_ = photos.items()
        code = photos.index.get([second.id])
        photos.apply(remove=[first.id])
        facts = bs.collection.NewItem(first.path, first.content, first.size, first.modified)
        photos.apply(codes=code, items=[facts])
    wrong = told("verify", home, "--codes", "all", code=1)
    assert "its code is not that of" in wrong["problems"][0]
    for bad in ("0", "some", "-3", "1.5", "9" * 40):
        assert inside("verify", home, "--codes", bad).returncode == 2


def test_notices_reach_info(copied):
    home = copied / "clothes.bsc"
    assert "notices" not in told("info", home)
    with bs.Collection.open(home) as photos:
        photos.note("sealing", "the disk was full.")
    assert "the disk was full." in told("info", home)["notices"][0]
    assert "the disk was full." in inside("info", home).stdout
    assert "the disk was full." in inside("index", copied / "clothes").stdout
    assert "the disk was full." in told("index", copied / "clothes")["notices"][0]


@pytest.mark.slow
def test_reindex_with_another_model(copied):
    images = bs.load_dataset("sample").query.images
    model = bs.make_hasher("lsh", n_bits=24).fit(bs.data.Labelled(images, np.zeros(len(images), np.int64), ("a",)))
    model.save(copied / "m.safetensors")
    facts = told("reindex", copied / "clothes.bsc", "--model", copied / "m.safetensors")
    assert list(facts) == ["collection", "model", "n_bits", "items", "encoded", "resumed", "dropped"]
    assert (facts["model"], facts["n_bits"], facts["encoded"]) == (model.fingerprint, 24, 61)
    (copied / "clothes" / NASTY).unlink()
    assert told("reindex", copied / "clothes.bsc", "--model", "fashion-mnist", code=3)["error"]["missing"] == 1
    dropped = told("reindex", copied / "clothes.bsc", "--model", "fashion-mnist", "--drop-missing")["dropped"]
    assert [one["path"] for one in dropped] == [str(copied / "clothes" / NASTY)]


@pytest.mark.slow
def test_a_second_writer_is_told_who_holds_it(copied):
    with bs.Collection.open(copied / "clothes.bsc"):
        out = bitscale("remove", copied / "clothes.bsc", 1, "--json")
    assert json.loads(out.stdout)["error"]["type"] == "CollectionBusy"
    assert str(os.getpid()) in out.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("search", "none.bsc", 1), 1, "there is no collection"),
        (("search", "HOME"), 2, "nothing to search for"),
        (("search", "HOME", 999_999), 1, "999999"),
        (("search", "HOME", "none.png"), 1, "none.png"),
        (("search", "HOME", 1, "-k", 3, "--radius", 2), 2, "one of -k"),
        (("search", "HOME", 1, "--bits", 65), 1, "between 1 and 64"),
        (("search", "HOME", 1, "--where", "camera"), 2, "FIELD SIGN VALUE"),
        (("list", "HOME", "--where", "year"), 2, "quote them, as --where 'year>=2020'"),
        (("search", "HOME", 1, "--batch", "x.txt"), 2, ".csv or .jsonl"),
        (("search", "HOME", 1, "--batch", "none.csv"), 1, "cannot be read"),
        (("search", "HOME", 1, "-k", 0), 2, "-k"),
        (("search",), 2, "collection"),
        (("search", "HOME", 1, "--nonsense"), 2, "--nonsense"),
        (("index",), 2, "name a folder"),
        (("index", "none/"), 1, "nothing at"),
        (("index", "-c", "none.bsc"), 1, "there is no collection"),
        (("index", "-c", "HOME", "--model", "x"), 1, "there is no hasher file x"),
        (("index", "-c", "HOME", "--meta", "x"), 2, "NAME=VALUE"),
        (("index", "none/", "--bits", "0"), 2, "between 1 and 1024"),
        (("index", "none/", "--bits", "2000"), 2, "between 1 and 1024"),
        (("index", "none/", "--bits", "64", "--model", "fashion-mnist"), 2, "a model has its own"),
        (("index", "none/", "--features", "gist", "--model", "fashion-mnist"), 2, "a model has its own"),
        (("index", "-c", "HOME", "--bits", "32"), 1, "is for a new collection"),
        (("index", "-c", "HOME", "--features", "gist"), 1, "is for a new collection"),
        (("reindex", "HOME"), 2, "--model FILE, or --refit"),
        (("reindex", "HOME", "--refit", "--model", "x"), 2, "one of --model and --refit"),
        (("label", "HOME", 999_999, "--label", "x"), 1, "Nothing was changed"),
        (("list", "HOME", "--where", "exif.takn=2024"), 2, "exif.taken, exif.camera"),
        (("search", "HOME", 1, "--emphasis", "kind=1"), 1, "--set attributes=kind,colour"),
        (("reindex", "HOME", "--refit"), 1, "was not fitted on its own pictures"),
        (("train", "sample", "itq", "--out", "m.safetensors", "--minutes", "0"), 2, "above 0"),
        (("add", "HOME", "none.png"), 1, "nothing at"),
        (("remove", "HOME"), 2, "say what to remove"),
        (("remove", "HOME", "--where", "label<3"), 2, "labels are compared"),
        (("duplicates", "HOME", "--plan", "p.doc"), 2, "a plan is"),
        (("search", "HOME", 10**30), 1, "not in clothes.bsc"),
        (("reindex", "HOME", "--model", "none"), 1, "no hasher file"),
        (("verify", "none.bsc"), 1, "none.bsc"),
        (("compact", "none.bsc"), 1, "there is no collection"),
        (("nonsense",), 2, "nonsense"),
    ],
)
def test_mistakes_are_one_line_or_one_document(made, words, code, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [made[0] / "clothes.bsc" if word == "HOME" else word for word in words]
    out = inside(*words)
    assert out.returncode == code
    if words[0] != "verify":
        assert (out.stdout, out.stderr.count("\n")) == ("", 1), out.stderr
        assert out.stderr.startswith("bitscale: ")
        assert said in out.stderr
    out = inside(*words, "--json")
    assert (out.returncode, out.stderr) == (code, "")
    facts = json.loads(out.stdout)
    if words[0] != "verify":
        assert facts["error"]["exit_code"] == code
        assert said in facts["error"]["message"]


def test_batches_that_make_no_sense(made, tmp_path):
    for name, text in (
        ("a.csv", "file\nx\n"),
        ("b.jsonl", "{"),
        ("c.jsonl", "[1]"),
        ("d.csv", "id\nx\n"),
        ("e.csv", ""),
        ("f.jsonl", '{"path": 17}'),
    ):
        (tmp_path / name).write_text(text)
        assert (
            told("search", made[0] / "clothes.bsc", "--batch", tmp_path / name, code=1)["error"]["type"] == "InputError"
        )


@pytest.mark.parametrize("row", ["9" * 5_000, '{"id": %s}' % ("9" * 5_000), '{"id": "%s"}' % ("9" * 5_000)])
def test_a_number_too_long_names_the_limit(tmp_path, row):
    (tmp_path / "q.jsonl").write_text(row)
    with pytest.raises(InputError, match=r"has at most 1,000 digits"):
        read_batch(tmp_path / "q.jsonl")


@pytest.mark.parametrize("text", ["[" * 200_000, "[[[1]]]", '{"path": {"a": {"b": 1}}}'])
def test_a_batch_nested_too_deep_names_the_limit(tmp_path, text):
    (tmp_path / "q.jsonl").write_text(text)
    with pytest.raises(InputError, match="line 1: a path or an id is nested 1 level deep at most"):
        read_batch(tmp_path / "q.jsonl")


@pytest.mark.slow
def test_merged_streams_are_one_document(made):
    """As `bitscale ... --json 2>&1 | jq` sees it: nothing else, in success and in failure."""
    words = [sys.executable, "-m", "bitscale"]
    for more in (["search", str(made[0] / "clothes.bsc"), "1"], ["search", "none", "1"], ["search", "--nonsense"]):
        out = subprocess.run(
            [*words, *more, "--json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True
        )
        assert json.loads(out.stdout)


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path):
    """A real process, a real signal, while a worker has the last picture open and does not come to its end."""
    (tmp_path / "many").mkdir()
    for i in range(4):
        Image.fromarray(np.full((28, 28), 60 * i, np.uint8)).save(tmp_path / "many" / f"{i}.png")
    words = [sys.executable, "-m", "bitscale", "index", tmp_path / "many", "--model", "fashion-mnist"]
    hangs = never_ending(tmp_path / "site", "3.png")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=hangs)
    until((tmp_path / "many" / "3.png.open").exists)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, (out, err)
    assert err == "bitscale: stopped; run the same command again to go on\n"
    with bs.Collection.open(tmp_path / "many.bsc") as photos:
        assert len(photos) == 0
    again = subprocess.run([*words, "--json"], stdout=subprocess.PIPE, check=True)
    assert json.loads(again.stdout)["added"] == 4


@pytest.mark.slow
def test_ctrl_c_while_reindexing_keeps_what_was_encoded(tmp_path):
    rng = np.random.default_rng(0)
    for i in range(1200):
        picture(tmp_path / "many" / f"{i:04d}.png", rng.integers(0, 256, (28, 28, 1), np.uint8))
    assert inside("index", tmp_path / "many", "--model", "fashion-mnist").returncode == 0
    images = bs.load_dataset("sample").query.images
    train = bs.data.Labelled(images, np.zeros(len(images), np.int64), ("",))
    other = bs.make_hasher("lsh", n_bits=16, features="pixels", seed=5).fit(train)
    other.save(tmp_path / "other.safetensors")
    home = tmp_path / "many.bsc"
    command = [sys.executable, "-m", "bitscale", "reindex", home, "--model", tmp_path / "other.safetensors", "--json"]
    hangs = never_ending(tmp_path / "site", "1199.png")  # the last one
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=hangs
    )
    with bs.Collection.open(home, read_only=True) as reader:
        until(lambda: len(reader.staged_ids(other)) and (tmp_path / "many" / "1199.png.open").exists())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        kept = len(reader.staged_ids(other))
    assert process.returncode == 130, (out, err)
    assert json.loads(out)["error"]["exit_code"] == 130
    assert 0 < kept < 1200
    facts = told("reindex", home, "--model", tmp_path / "other.safetensors")
    assert (facts["resumed"], facts["encoded"]) == (kept, 1200 - kept)


def on_terminal(stream, *words, **environment):
    """What a process writes to one stream, that being a terminal."""
    ours, theirs = os.openpty()
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: theirs}
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment}
    command = [sys.executable, "-m", "bitscale", *map(str, words)]
    process = subprocess.Popen(command, env=settings, **streams)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error
        while chunk := os.read(ours, 65536):
            seen += chunk
    os.close(ours)
    assert process.wait(60) == 0
    return seen.decode()


@pytest.mark.slow
def test_colour_is_for_terminals_and_can_be_turned_off(made):
    words = ("search", made[0] / "clothes.bsc", 1)
    assert "\x1b[32m" in on_terminal("stdout", *words, NO_COLOR="")
    assert "\x1b[32m" not in on_terminal("stdout", *words, NO_COLOR="1")


@pytest.mark.slow
def test_a_terminal_gets_a_bar_with_total_and_json_does_not(made, tmp_path):
    words = ("index", made[0] / "clothes", "--model", "fashion-mnist")
    bar = on_terminal("stderr", *words, "-c", tmp_path / "a.bsc")
    assert "reading pictures" in bar
    assert "of 62" in bar
    assert on_terminal("stderr", *words, "-c", tmp_path / "b.bsc", "--json") == ""


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_offered(shell):
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = bitscale("--show-completion", shell, env=environment)
    assert "_COMPLETE" in script.stdout, script.stderr


@pytest.mark.slow
def test_completion_knows_verbs_and_options():
    code = "import sys; sys.argv = ['bitscale']; from bitscale.cli import main; main()"
    for words, place, said in (("bitscale se", 1, "search"), ("bitscale search --ra", 2, "--radius")):
        environment = {
            **os.environ,
            "_BITSCALE_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(place),
        }
        out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
        assert said in out.stdout.split(), out.stderr


@pytest.mark.parametrize("verb", ["index", "search", "add", "remove", "duplicates", "reindex", "verify", "compact",
                                  "backup", "info", "demo"])  # fmt: skip
def test_help_teaches_by_example(verb):
    text = inside(verb, "--help").stdout
    assert "Try: bitscale" in text
    assert "--json" in text


@pytest.mark.slow
def test_codes_fitted_on_the_pictures_themselves(tmp_path):
    """Length and features are chosen at creation; what grows is fitted anew; a stop leaves the features."""
    fill(tmp_path / "in", 4)
    facts = told("index", tmp_path / "in", "--bits", "48", "--features", "pixels@8")
    assert (facts["items"], facts["created"]) == (4, True)
    assert not (tmp_path / ".in.bsc.fitting").exists()
    fill(tmp_path / "in", 6, first=4)
    assert "bitscale reindex" in inside("index", tmp_path / "in", "--model", "fashion-mnist").stderr
    again = told("index", tmp_path / "in", "--bits", "48", "--features", "pixels@8")  # the same command as before
    assert (again["items"], again["refitted"]) == (10, True)
    assert again["model"] != facts["model"]
    about = told("info", tmp_path / "in.bsc")
    assert (about["n_bits"], about["features"]) == (48, "pixels@8")
    assert told("reindex", tmp_path / "in.bsc", "--refit")["items"] == 10
