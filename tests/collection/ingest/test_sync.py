import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bitscale.collection import Collection
from bitscale.collection.ingest.sync import Changes, remembered_roots, sync
from bitscale.errors import InputError, UnreadablePicture, VanishedFiles
from bitscale.hashers import load_hasher
from bitscale.pictures.arrays import read_picture
from tests.collection.folders import fill, model, touch
from tests.pictures.made import save


@pytest.fixture
def collection(tmp_path):
    with Collection.create(tmp_path / "c.bsc", model()) as made:
        yield made


def add(collection, source, **options):
    return collection.add(source, workers=1, **options)


def numbers(changes):
    return changes.added, changes.updated, changes.moved, changes.removed, changes.unchanged, len(changes.skipped)


def test_a_folder_is_taken_in_and_searched(collection, tmp_path):
    paths, seen = fill(tmp_path / "in", 30), []
    changes = add(collection, tmp_path / "in", progress=lambda *now: seen.append(now), batch=8)
    assert numbers(changes) == (30, 0, 0, 0, 0, 0)
    assert seen == [(0, 30), (8, 30), (16, 30), (24, 30), (30, 30)]
    assert [item.path for item in collection.items()] == sorted(paths)  # ids follow the order of paths
    codes = model().encode(np.stack([read_picture(path, model().picture_form).pixels for path in sorted(paths)]))
    assert collection.index.get(range(30)) == codes
    for item in collection.items():
        facts = os.stat(item.path)
        assert (item.size, item.modified) == (facts.st_size, facts.st_mtime_ns)
        assert item.content == read_picture(item.path).content
    hits = collection.index.search(model().encode(read_picture(paths[7], model().picture_form).pixels[None]), 1)
    assert collection.item(int(hits.ids[0, 0])).path == paths[7]
    assert numbers(add(collection, tmp_path / "in")) == (0, 0, 0, 0, 30, 0)


def test_changes_are_followed(collection, tmp_path):
    folder = tmp_path / "in"
    paths = fill(folder, 40)
    add(collection, folder, labels=["old"], metadata={"camera": 1})
    ids = {item.path: item.id for item in collection.items()}
    fill(folder, 3, first=40)
    save(Path(paths[0]), 900)
    touch(paths[1])  # the same picture, saved again
    os.rename(paths[2], folder / "moved.png")
    os.remove(paths[3])
    touch(paths[0], 20)
    changes = add(collection, folder, labels=lambda path: [Path(path).parent.name])
    assert numbers(changes) == (3, 1, 1, 1, 37, 0)
    assert collection.find(paths[3]) is None
    assert ids[paths[3]] not in collection
    changed = collection.item(collection.find(paths[0]))
    assert changed.id not in ids.values()
    assert (changed.labels, changed.metadata) == (("a",), {"camera": 1})
    touched = collection.item(ids[paths[1]])
    assert (touched.modified, touched.labels) == (os.stat(paths[1]).st_mtime_ns, ("old",))
    moved = collection.item(ids[paths[2]])
    assert (moved.path, moved.labels, moved.metadata) == (str(folder / "moved.png"), ("old",), {"camera": 1})
    assert collection.find(paths[2]) is None
    assert numbers(add(collection, folder)) == (0, 0, 0, 0, 42, 0)
    assert collection.verify().ok


@pytest.mark.slow
def test_single_files_and_lists(collection, tmp_path, monkeypatch):
    paths = fill(tmp_path / "in", 6)
    assert numbers(add(collection, paths[0])) == (1, 0, 0, 0, 0, 0)
    assert numbers(add(collection, Path(paths[0]))) == (0, 0, 0, 0, 1, 0)
    assert numbers(add(collection, [paths[0], paths[1], paths[1], tmp_path / "in" / "a"])) == (3, 0, 0, 0, 1, 0)
    assert len(collection) == 4
    save(tmp_path / "x.png", 77).rename(tmp_path / "no ending")
    assert numbers(add(collection, tmp_path / "no ending")) == (1, 0, 0, 0, 0, 0)
    with pytest.raises(InputError, match="nothing to take in"):
        sync(collection, [])
    with Collection.open(collection.path, read_only=True) as reader, pytest.raises(InputError, match="reading only"):
        add(reader, paths[0])
    monkeypatch.chdir(tmp_path)
    assert numbers(add(collection, "in/b")) == (2, 0, 0, 0, 1, 0)


def test_broken_pictures_cost_themselves(collection, tmp_path):
    folder = tmp_path / "in"
    paths = fill(folder, 10)
    bad, gone = folder / "bad.jpg", folder / "cut.png"
    bad.write_text("no picture")
    gone.write_bytes(Path(paths[0]).read_bytes()[:60])
    changes = add(collection, folder)
    assert numbers(changes) == (10, 0, 0, 0, 0, 2)
    assert [Path(one.path).name for one in changes.skipped] == ["bad.jpg", "cut.png"]
    assert all("cannot be read as an image" in one.reason for one in changes.skipped)
    assert [one.path for one in collection.skipped()] == [str(bad), str(gone)]
    bad.chmod(0o600)
    again = add(collection, folder)
    assert numbers(again) == (0, 0, 0, 0, 10, 2)
    gone.write_bytes(Path(paths[0]).read_bytes())
    assert numbers(add(collection, folder)) == (1, 0, 0, 0, 10, 1)
    assert [one.path for one in collection.skipped()] == [str(bad)]
    bad.unlink()
    assert numbers(add(collection, folder)) == (0, 0, 0, 0, 11, 0)
    assert collection.skipped() == []


def test_a_changed_picture_that_is_broken_keeps_its_code(collection, tmp_path):
    """Half a copy must not cost an item its labels."""
    paths = fill(tmp_path / "in", 5)
    add(collection, tmp_path / "in", labels=["kept"])
    whole = Path(paths[0]).read_bytes()
    Path(paths[0]).write_bytes(whole[:70])
    assert numbers(add(collection, tmp_path / "in")) == (0, 0, 0, 0, 4, 1)
    assert numbers(add(collection, tmp_path / "in")) == (0, 0, 0, 0, 4, 1)
    assert collection.item(collection.find(paths[0])).labels == ("kept",)
    save(Path(paths[0]), 555)
    touch(paths[0])
    assert numbers(add(collection, tmp_path / "in")) == (0, 1, 0, 0, 4, 0)
    assert collection.item(collection.find(paths[0])).labels == ("kept",)
    assert collection.skipped() == []


def test_vanished_files_change_nothing_unless_accepted(collection, tmp_path):
    folder = tmp_path / "in"
    fill(folder, 20)
    add(collection, folder)
    before = list(collection.items())
    folder.rename(tmp_path / "away")
    with pytest.raises(VanishedFiles):
        add(collection, folder)
    folder.mkdir()
    fill(folder, 1, first=50)  # another disk in its place
    with pytest.raises(VanishedFiles):
        add(collection, folder)
    assert list(collection.items()) == before
    assert numbers(add(collection, folder, remove_missing=False)) == (1, 0, 0, 0, 0, 0)
    assert len(collection) == 21
    assert numbers(add(collection, folder, accept_missing=True)) == (0, 0, 0, 20, 1, 0)
    assert len(collection) == 1
    assert collection.notes()["roots"] == f'["{folder}"]'


def test_a_folder_moved_as_a_whole_is_followed(collection, tmp_path):
    fill(tmp_path / "in", 12)
    (tmp_path / "in" / "broken.png").write_bytes(b"no picture")
    add(collection, tmp_path / "in", labels=["mine"])
    ids = {item.id for item in collection.items()}
    os.rename(tmp_path / "in", tmp_path / "out")
    with pytest.raises(VanishedFiles, match="the folder they are in now"):
        add(collection, tmp_path / "in")
    assert numbers(add(collection, tmp_path / "out")) == (0, 0, 12, 0, 0, 1)
    assert {item.id for item in collection.items()} == ids
    assert all(item.path.startswith(str(tmp_path / "out")) and item.labels == ("mine",) for item in collection.items())
    assert remembered_roots(collection) == [str(tmp_path / "out")]  # the old place is forgotten
    assert [skipped.path for skipped in collection.skipped()] == [str(tmp_path / "out" / "broken.png")]
    assert numbers(add(collection, remembered_roots(collection))) == (0, 0, 0, 0, 12, 1)
    os.rename(tmp_path / "out", tmp_path / "a third")
    assert numbers(add(collection, [tmp_path / "out", tmp_path / "a third"])) == (0, 0, 12, 0, 0, 1)


def test_copies_of_pictures_that_are_still_there_are_no_moves(collection, tmp_path):
    fill(tmp_path / "in", 4)
    add(collection, tmp_path / "in")
    shutil.copytree(tmp_path / "in", tmp_path / "copies")
    assert numbers(add(collection, tmp_path / "copies")) == (4, 0, 0, 0, 0, 0)


def test_the_bundled_model_gets_its_own_shape(tmp_path):
    hasher = load_hasher("fashion-mnist")
    assert (hasher.picture_form.size, hasher.picture_form.channels) == ((28, 28), 1)
    save(tmp_path / "in" / "a.jpg", 1, 500, 375)
    save(tmp_path / "in" / "b.png", 2, 28, 28)
    Image.fromarray(np.full((28, 28), 7, np.uint8)).save(tmp_path / "in" / "c.png")
    with Collection.create(tmp_path / "c.bsc", hasher) as collection:
        assert numbers(add(collection, tmp_path / "in")) == (3, 0, 0, 0, 0, 0)
        assert collection.index.get([2]) == hasher.encode(np.full((1, 28, 28, 1), 7, np.uint8))
        found = collection.search(str(tmp_path / "in" / "a.jpg"), k=1)
        assert found is not None
        with pytest.raises(UnreadablePicture, match="not there"):
            collection.search(str(tmp_path / "in" / "none.jpg"))


def test_models_that_take_no_pictures(tmp_path):
    vectors = np.random.default_rng(0).standard_normal((20, 6)).astype(np.float32)
    from bitscale.data.labelled import Labelled
    from bitscale.hashers import make_hasher

    hasher = make_hasher("lsh", n_bits=8, features="none").fit(Labelled(vectors, np.zeros(20, np.int64), ("",)))
    with Collection.create(tmp_path / "c.bsc", hasher) as collection, pytest.raises(InputError, match="own vectors"):
        add(collection, tmp_path)
    odd = make_hasher("lsh", n_bits=8).fit(Labelled(np.zeros((9, 4, 5, 3), np.uint8), np.zeros(9, np.int64), ("",)))
    with pytest.raises(InputError, match="no square"):
        _ = odd.picture_form
    assert model(features="pixels").picture_form == model().picture_form


PROGRAM = """
import sys, time
from bitscale.collection import Collection

def progress(done, total):
    if 300 - total + done == int(sys.argv[3]):
        print("there", flush=True)
        time.sleep(1000)  # until the signal

with Collection.open(sys.argv[1]) as collection:
    collection.add(sys.argv[2], workers=2, batch=10, progress=progress)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on(tmp_path, how):
    fill(tmp_path / "in", 300)
    Collection.create(tmp_path / "c.bsc", model()).close()
    for stop in (20, 150):
        run = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "c.bsc"), str(tmp_path / "in"), str(stop)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert run.stdout.readline() == "there\n"
        run.send_signal(how)
        run.communicate()
        assert run.returncode == -how
        with Collection.open(tmp_path / "c.bsc") as collection:
            assert len(collection) == stop
            assert collection.verify().ok
    with Collection.open(tmp_path / "c.bsc") as collection:
        assert numbers(collection.add(tmp_path / "in", workers=1)) == (150, 0, 0, 0, 150, 0)
        assert sorted(item.path for item in collection.items()) == sorted(map(str, (tmp_path / "in").rglob("*.png")))


def test_files_known_by_size_and_time_are_not_opened(tmp_path):
    """What they hold is no picture any more, which nobody notices; benchmarks/indexing.py measures the time."""
    n = 1_000
    (tmp_path / "in").mkdir()
    first = save(tmp_path / "in" / "00000.png", 0)
    for i in range(1, n):
        os.link(first, tmp_path / "in" / f"{i:05d}.png")
    hasher = model()
    facts = first.stat()
    code = hasher.encode(np.stack([read_picture(first, hasher.picture_form).pixels] * n))
    with Collection.create(tmp_path / "c.bsc", hasher) as collection:
        paths = [str(tmp_path / "in" / f"{i:05d}.png") for i in range(n)]
        collection.add_codes(code, paths=paths, sizes=[facts.st_size] * n, modified=[facts.st_mtime_ns] * n)
        first.write_bytes(bytes(facts.st_size))  # all of them: they are links
        os.utime(first, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        assert add(collection, tmp_path / "in") == Changes(unchanged=n)
