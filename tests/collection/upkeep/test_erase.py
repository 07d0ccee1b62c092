"""Erased persons are nowhere: every segment, log line and staged batch is opened, every file searched for their traces.

Marks and caches that other parts of bitscale keep add themselves to `erase.TRACES`.
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from bitscale.collection import Collection
from bitscale.collection.duplicates.kept_looks import kept_looks
from bitscale.collection.segments.manifest import Manifest, read_manifests
from bitscale.collection.store.database import Database
from bitscale.collection.store.rows import unpacked_ids
from bitscale.collection.upkeep import erase as erasing
from bitscale.collection.upkeep.backup_notes import NOTES, noted_backups
from bitscale.data.root import runs_root
from bitscale.errors import InputError
from bitscale.index.exact import ExactIndex
from tests.cli.run import inside
from tests.collection.folders import model
from tests.pictures.made import save

OLD, NEW = model(64, seed=1), model(96, seed=2)


@pytest.fixture
def cameras(tmp_path, monkeypatch):
    """Three persons in a collection that was sealed, added to, staged for another model and backed up."""
    monkeypatch.setenv("BITSCALE_RUNS", str(tmp_path / "runs"))
    with Collection.create(tmp_path / "cameras.bsc", OLD) as made:
        for person in (16, 17, 18):
            for shot in range(4):
                save(tmp_path / "crops" / f"person-{person}-shot-{shot}.png", 100 * person + shot)
        taken = {"metadata": lambda path: facts(path), "labels": lambda path: [f"walker-{facts(path)['person']}"]}
        for first in (True, False):
            some = [path for path in sorted((tmp_path / "crops").iterdir()) if (path.stem[-1] in "01") == first]
            made.add(some, workers=1, **taken)
            if first:
                made.seal()
        ids = made.select("person!=null")
        made.stage(ids[:5], NEW.encode(pictures(5)), NEW)
        made.stage(ids[5:], NEW.encode(pictures(len(ids) - 5, seed=9)), NEW)
        yield made


def pictures(n, seed=8):
    return np.random.default_rng(seed).integers(0, 256, (n, 8, 8, 3), np.uint8)


def facts(path):
    person = int(Path(path).name.split("-")[1])
    return {"person": person, "camera": 2, "secret": f"xyzzy-{person}"}


def ids_kept(folder):
    """Every id in any segment file, line of the log and staged batch."""
    seen = set()
    for path in (folder / "segments").glob("*.bsi"):
        seen |= set(ExactIndex.open(path).ids().tolist())
    database = Database(folder / "items.db", read_only=True)
    with database.reading() as connection:
        for (blob,) in connection.execute("SELECT ids FROM log UNION ALL SELECT ids FROM staged"):
            seen |= set(unpacked_ids(blob).tolist())
        for manifest in read_manifests(connection):
            assert isinstance(manifest, Manifest)
    database.close()
    return seen


def traces(made, ids):
    """What could give items away: paths, names, labels, metadata, hashes, codes of both models."""
    wanted = []
    for item, code in zip(made.items_of(ids).values(), made.index.get(ids).packed, strict=True):
        wanted += [os.fsencode(item.path), os.fsencode(Path(item.path).name), item.content, code.tobytes()]
        wanted += [hashlib.sha256(Path(item.path).read_bytes()).digest(), *(label.encode() for label in item.labels)]
        wanted += [item.content.hex().encode(), item.metadata["secret"].encode()]
    return wanted


def grep(folder, wanted):
    data = b"".join(path.read_bytes() + os.fsencode(path) for path in sorted(folder.rglob("*")) if path.is_file())
    return [one for one in wanted if one in data]


def stop_duplicates(files):
    """Leave what `duplicates` leaves when it is stopped while it looks at pictures."""
    looks = kept_looks(files, workers=1)
    next(looks)
    looks.close()


@pytest.mark.slow
def test_nothing_of_a_person_is_left(cameras):
    ids = cameras.select("person=17").tolist()
    wanted = traces(cameras, ids)
    assert len(grep(cameras.path, wanted)) > 20
    assert set(ids) < ids_kept(cameras.path)
    left = cameras.path.with_name(f".{cameras.path.name}.fitting")
    left.write_bytes(wanted[0])
    stop_duplicates([(item.path, item.content) for item in cameras.items()])
    assert len(list(runs_root().rglob("*.npz"))) == 1
    erased = cameras.erase("person=17")
    assert (erased.removed, erased.caches, erased.backups) == (4, 2, [])
    assert grep(cameras.path, wanted) == []
    assert not left.exists()
    assert not list(runs_root().iterdir())
    assert not set(ids) & ids_kept(cameras.path)
    assert len(cameras) == 8
    assert cameras.select("person=16").size == cameras.select("person=18").size == 4
    assert cameras.verify(codes="all").ok
    cameras.backup(cameras.path.with_name("after.bsc"))
    assert grep(cameras.path.with_name("after.bsc"), wanted) == []
    assert cameras.erase("person=17").removed == 0


def test_a_query_that_was_called_right_for_an_erased_person_goes_too(cameras):
    """Its values and picture show that person, whoever else was called right beside."""
    of = {person: cameras.select(f"person={person}").tolist() for person in (16, 17)}
    relaxed = OLD.relax(pictures(1))
    shown, other = b"a crop of person 17 that somebody asked with", b"a crop of somebody else"
    cameras.mark(relaxed, right=[of[17][0], of[16][0]], picture=shown)
    kept = cameras.mark(relaxed, right=[of[16][0]], wrong=[of[17][1]], picture=other)
    cameras.erase("person=17")
    assert [(mark.id, mark.right, mark.wrong) for mark in cameras.marks()] == [(kept.id, (of[16][0],), ())]
    assert grep(cameras.path, [shown, other]) == [other]


def test_backups_that_still_hold_a_person_are_named(cameras, tmp_path):
    assert noted_backups(cameras.path) == []
    for name in ("one", "two", "three"):
        assert cameras.backup(tmp_path / f"{name}.bsc")["noted"]
    (tmp_path / "two.bsc").rename(tmp_path / "moved.bsc")
    with Collection.open(tmp_path / "three.bsc") as copy:
        copy.erase({"person": 17})
    with (cameras.path / NOTES).open("a") as file:
        file.write("no line of ours\n")
    erased = cameras.erase(["person=17", "camera=2"])
    held = {Path(one.path).name: one.holds for one in erased.backups}
    assert held == {"one.bsc": 4, "two.bsc": None}


@pytest.mark.slow
@pytest.mark.parametrize("where", ["person=17", "person=18"])
def test_what_was_stopped_is_completed_by_the_next_call(cameras, tmp_path, where):
    """A reader may keep the log from being emptied, and Ctrl-C may come: by then the items are gone from the rows."""

    def stopped():
        raise KeyboardInterrupt

    cameras.backup(tmp_path / "one.bsc")
    with pytest.raises(KeyboardInterrupt):
        erasing.erase(cameras, "person=17", stopped, list)
    assert cameras.select("person=17").size == 0
    also = cameras.select(where).size
    erased = cameras.erase(where)
    assert (erased.removed, [one.holds for one in erased.backups]) == (4 + also, [4 + also])
    assert cameras.erase(where).removed == 0


def test_what_keeps_something_of_items_can_add_itself(cameras, monkeypatch):
    told = []
    monkeypatch.setattr(erasing, "TRACES", [lambda collection, items: told.append(items) or 5])
    assert cameras.erase("person=18").caches == 5
    assert {item.metadata["person"] for item in told[0]} == {18}


def test_codes_only_keeps_nothing_of_files(tmp_path):
    root = tmp_path / "crops"
    for shot in range(3):
        save(root / f"hidden-{shot}.png", shot)
    (root / "broken.png").write_bytes(b"no picture")
    with Collection.create(tmp_path / "c.bsc", OLD, codes_only=True) as made:
        changes = made.add(root, workers=1, metadata={"camera": 3}, labels=["crop"])
        assert (changes.added, [Path(one.path).name for one in changes.skipped]) == (3, ["broken.png"])
        assert made.codes_only
        assert {(item.path, item.content, item.size, item.modified) for item in made.items()} == {("", None, 0, 0)}
        assert made.select("camera=3").size == 3
        found = made.search(str(root / "hidden-1.png"), k=1)
        assert found[0][0].distance == 0
        with pytest.raises(InputError, match="keeps codes only"):
            made.verify(files=True)
        with pytest.raises(InputError, match="keeps codes only"):
            made.add_codes(OLD.encode(pictures(1)), paths=["/somewhere.png"])
        with pytest.raises(InputError, match="keeps codes only"):
            made.add_codes(OLD.encode(pictures(1)), contents=[b"x" * 32])
        made.seal()
    hashes = [hashlib.sha256(path.read_bytes()).digest() for path in root.iterdir()]
    assert grep(tmp_path / "c.bsc", [b"hidden", b"broken.png", os.fsencode(root), *hashes]) == []
    with Collection.open(tmp_path / "c.bsc") as made:
        assert made.verify().ok
        assert made.add([root / "hidden-0.png"], workers=1).added == 1  # no file is known again


@pytest.mark.slow
def test_the_verbs(tmp_path):
    root = tmp_path / "crops"
    for shot in range(4):
        save(root / f"{shot}.png", shot)
    home, saved = tmp_path / "c.bsc", tmp_path / "m.safetensors"
    OLD.save(saved)
    asked = ("index", root, "-c", home, "--model", saved, "--codes-only", "--meta", "person=17", "--json")
    assert json.loads(inside(*asked).stdout)["added"] == 4
    for verb in (("reindex", home, "--model", saved), ("duplicates", home), ("verify", home, "--files")):
        refused = inside(*verb)
        assert refused.returncode == 1
        assert "keeps codes only" in refused.stderr
    assert inside("erase", home).returncode == 2
    assert inside("backup", home, tmp_path / "copy.bsc").returncode == 0
    erased = inside("erase", home, "--where", "person=17")
    assert erased.returncode == 3
    assert "4 erased, 0 left" in erased.stdout
    assert "a backup still holds 4 of them" in erased.stdout
    inside("erase", tmp_path / "copy.bsc", "--where", "person=17")
    told = json.loads(inside("erase", home, "--where", "person=17", "--json").stdout)
    assert (told["erased"], told["backups"]) == (0, [])
