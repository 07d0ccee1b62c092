import json
import os
import shutil
from pathlib import Path

import pytest

from bitscale.collection import Collection, Skipped
from bitscale.collection.ingest.changed import Known, Plan, compare, roots_of, scan
from bitscale.collection.ingest.sync import remembered_roots
from bitscale.errors import DataError, InputError, VanishedFiles
from bitscale.pictures.listing import Listing, list_pictures
from tests.collection.folders import fill, model, touch
from tests.pictures.made import save


@pytest.fixture
def known(tmp_path):
    """A folder of 40 pictures and a collection that knows them."""
    paths = fill(tmp_path / "in", 40)
    with Collection.create(tmp_path / "in" / "c.bsc", model()) as collection:
        collection.add(tmp_path / "in", workers=1)
        yield collection, tmp_path / "in", paths


def facts(plan):
    return len(plan.new), len(plan.changed), len(plan.moved), len(plan.missing), plan.unchanged


def test_listing(tmp_path):
    for name in ("b/x.JPG", "a.png", "b/c/d.webp", ".hidden.png", ".cache/y.png", "left/z.png", "no.txt"):
        save(tmp_path / f"{name}.png").rename(tmp_path / name)
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "b" / "up").symlink_to("..", target_is_directory=True)
    (tmp_path / "self.png").symlink_to("self.png")
    (tmp_path / "nowhere.png").symlink_to("missing.png")
    (tmp_path / "link.png").symlink_to("a.png")
    (tmp_path / "folder.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    found = list_pictures(str(tmp_path), [str(tmp_path / "left")])
    names = [str(Path(file.path).relative_to(tmp_path)) for file in found.files]
    assert names == ["a.png", "b/c/d.webp", "b/x.JPG", "link.png"]
    assert list(found.closed) == [str(tmp_path / "self.png")]
    for file in found.files:
        assert (file.size, file.modified) == (os.stat(file.path).st_size, os.stat(file.path).st_mtime_ns)
    assert [file.path for file in list_pictures(str(tmp_path / "a.png")).files] == [str(tmp_path / "a.png")]


def test_pictures_in_collections_are_their_own(tmp_path):
    """What was uploaded into a collection is none of another's business: it is deleted with its item there."""
    fill(tmp_path / "in", 3)
    with Collection.create(tmp_path / "in" / "other", model()) as other:
        other.upload(save(tmp_path / "elsewhere.png", 9))
        assert [path.suffix for path in other.path.rglob("uploads/*/*")] == [".png"]
        with Collection.create(tmp_path / "c.bsc", model()) as collection:
            assert collection.add(tmp_path / "in", workers=1).added == 3
            for take in (lambda: collection.add(other.path), lambda: scan(collection, [other.path])):
                with pytest.raises(InputError, match=r"is a collection, not a folder of pictures.*index -c"):
                    take()
            collection.note("roots", json.dumps([str(tmp_path / "in"), str(other.path)]))  # as it was possible before
            assert remembered_roots(collection) == [str(tmp_path / "in")]


def test_a_folder_with_one_of_a_collections_names_is_listed(tmp_path):
    save(tmp_path / "in" / "models" / "a.png")
    save(tmp_path / "in" / "segments" / "b.png")
    (tmp_path / "in" / "items.db").mkdir()
    assert len(list_pictures(str(tmp_path)).files) == 2


def test_roots(tmp_path):
    a, b = tmp_path / "a", tmp_path / "ab"
    assert roots_of([b, a / "x" / "..", a / "x", str(a)]) == [str(a), str(b)]
    assert roots_of(["/", "/tmp"]) == ["/"]


def test_nothing_changed_and_nothing_opened(known, monkeypatch):
    collection, folder, _ = known
    before = {path: path.stat().st_atime_ns for path in folder.rglob("*.png")}
    monkeypatch.setattr("builtins.open", None)
    assert facts(scan(collection, [folder])) == (0, 0, 0, 0, 40)
    assert facts(scan(collection, [folder / "a"])) == (0, 0, 0, 0, 20)
    assert {path: path.stat().st_atime_ns for path in folder.rglob("*.png")} == before


def test_new_changed_moved_deleted(known):
    collection, folder, paths = known
    fill(folder, 2, first=40)
    save(Path(paths[0]), 99)
    touch(paths[0])
    (folder / "new place").mkdir()
    os.rename(paths[1], folder / "new place" / "m.png")
    os.remove(paths[2])
    shutil.copy(paths[3], folder / "copy.png")  # a copy is new, the first is still there
    plan = scan(collection, [folder])
    assert facts(plan) == (3, 1, 1, 1, 37)
    assert plan.changed[0][0].path == plan.changed[0][1].path == paths[0]
    assert (plan.moved[0][1].path, plan.moved[0][0].path) == (paths[1], str(folder / "new place" / "m.png"))
    assert plan.missing[0].path == paths[2]


def test_a_renamed_folder_is_a_move_not_a_loss(known):
    collection, folder, _ = known
    os.rename(folder / "a", folder / "z")
    plan = scan(collection, [folder])
    assert facts(plan) == (0, 0, 20, 0, 20)
    assert len({known.id for _, known in plan.moved}) == 20


def test_pictures_alike_are_moved_one_for_one(tmp_path):
    for name in ("1.png", "2.png", "3.png"):
        save(tmp_path / "in" / name, 5)
    with Collection.create(tmp_path / "c.bsc", model()) as collection:
        collection.add(tmp_path / "in", workers=1)
        os.rename(tmp_path / "in" / "1.png", tmp_path / "in" / "x.png")
        os.rename(tmp_path / "in" / "2.png", tmp_path / "in" / "y.png")
        plan = scan(collection, [tmp_path / "in"])
        assert [(Path(k.path).name, Path(f.path).name) for f, k in plan.moved] == [
            ("1.png", "x.png"),
            ("2.png", "y.png"),
        ]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["root gone", "root empty", "a third gone", "one in eight gone", "file in its place"])
def test_a_vanished_root_asks(known, how):
    collection, folder, paths = known
    away = folder.parent / "away"
    if how in ("root gone", "root empty", "file in its place"):
        source = folder / "a"
        source.rename(away)
        if how == "root empty":
            source.mkdir()
        if how == "file in its place":
            source.write_text("a")
    else:
        source = folder
        for path in paths[: 13 if how == "a third gone" else 5]:
            os.remove(path)
    with pytest.raises(VanishedFiles, match=r"not there any more.*Nothing was changed.*accept_missing=True") as caught:
        scan(collection, [source])
    assert set(caught.value.paths) <= set(paths)
    assert len(scan(collection, [source], accept_missing=True).missing) == len(caught.value.paths)


def test_a_tenth_does_not_ask(known):
    collection, folder, paths = known
    for path in paths[:4]:
        os.remove(path)
    assert facts(scan(collection, [folder])) == (0, 0, 0, 4, 36)


def test_what_cannot_be_looked_at_is_not_missing(known):
    """A folder that cannot be opened says nothing about its pictures."""
    collection, folder, _ = known
    (folder / "b" / "self.png").symlink_to("self.png")
    plan = scan(collection, [folder])
    assert (facts(plan), [one.path for one in plan.skipped]) == ((0, 0, 0, 0, 40), [str(folder / "b" / "self.png")])
    plan, rows = Plan(), {row[1]: Known(*row) for row in collection.listing()}
    seen = list_pictures(str(folder / "b")).files
    closed = {str(folder / "a"): "Permission denied"}
    missing = compare(plan, Listing(seen, closed), rows, [Skipped(str(folder / "a" / "x.png"), 1, 1, "bad")])
    assert (missing, plan.unchanged, plan.forgotten) == ([], 20, [])
    assert plan.skipped[0].reason == "cannot be looked at (Permission denied)."


def test_broken_files_are_looked_at_again_once_they_change(known):
    collection, folder, _ = known
    bad = folder / "bad.jpg"
    bad.write_text("no picture")
    changes = collection.add(folder, workers=1)
    assert [one.path for one in changes.skipped] == [str(bad)]
    plan = scan(collection, [folder])
    assert facts(plan) == (0, 0, 0, 0, 40)
    assert [one.reason for one in plan.skipped] == [changes.skipped[0].reason]
    touch(bad)
    plan = scan(collection, [folder])
    assert (facts(plan), plan.retried) == ((1, 0, 0, 0, 40), {str(bad)})
    bad.unlink()
    assert scan(collection, [folder]).forgotten == [str(bad)]
    assert isinstance(collection.skipped()[0], Skipped)


def test_nothing_there(known, tmp_path):
    collection = known[0]
    with pytest.raises(DataError, match="nothing at"):
        scan(collection, [tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    assert facts(scan(collection, [tmp_path / "empty"])) == (0, 0, 0, 0, 0)
