"""Ctrl-C at every line: the same object goes on, with right answers, or says that it must be opened again."""

import os
import shutil
import tempfile
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from bitscale.collection import Collection
from bitscale.collection.ingest.reindex import reindex
from bitscale.errors import MustReopen
from bitscale.pictures.arrays import read_picture
from tests.collection.folders import fill, model
from tests.collection.torture.interrupts import ANYWHERE, chosen, drop_traceback, interrupted_at, lines_of
from tests.collection.torture.tasks import PREPARED, make
from tests.collection.torture.world import World, code, codes, perform
from tests.conftest import TORTURE

pytestmark = ANYWHERE
SHARE = 1 if TORTURE else 10
CHANGE = [
    "change",
    {"add": [50, 3], "remove": [4], "update": [[6, 41]], "skip": ["/x"], "unskip": ["/pictures/broken.jpg"]},
]
WHERE = {"label": "cat"}


def search(collection, world):
    return collection.search(codes([code(1, 1)], world.model), k=5, where=WHERE).to_dicts()


OPERATIONS = {
    "add": (lambda c, w, d: perform(c, CHANGE, w), [CHANGE]),
    "remove": (lambda c, w, d: c.remove("/pictures/1"), [["forget", "/pictures/1"]]),
    "search": (lambda c, w, d: search(c, w), []),
    "seal": (lambda c, w, d: c.seal(), []),
    "compact": (lambda c, w, d: c.compact(), []),
    "backup": (lambda c, w, d: c.backup(d / "copy"), []),
    "switch": (lambda c, w, d: (perform(c, ["stage"], w), perform(c, ["switch"], w)), [["switch"]]),
}


@pytest.fixture
def memory():
    """A folder where syncing costs nothing, if there is one: nothing here is about power cuts."""
    place = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=place if os.access(place, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    path = tmp_path_factory.mktemp("base") / "photos.bsc"
    make(lambda _: None, str(path), PREPARED)
    return path


def how_at(line):
    """Mostly the harder way where the code keeps what a collection is."""
    own = "/collection/" in line[0] and "/collection/search/" not in line[0]
    return "raise" if own and line[1] % 3 else "signal"


def ways_at(line):
    """Both where the code keeps what a collection is, one in CI."""
    return ("raise", "signal") if TORTURE and "/collection/" in line[0] else (how_at(line),)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", OPERATIONS)
def test_the_same_object_goes_on(base, memory, name):
    operate, changes = OPERATIONS[name]
    before = World().after(*PREPARED)
    worlds = [before, *([before.after(*changes)] if changes else [])]

    def opened():
        place = memory / "world"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(base, place / "photos.bsc")
        return Collection.open(place / "photos.bsc"), place

    collection, place = opened()
    with collection:
        search(collection, before)  # what is loaded once, is
        seen = lines_of(lambda: operate(collection, before, place))
    hit = 0
    todo = [(line, visit, how) for line, visit in chosen(seen, SHARE, seed=len(name)) for how in ways_at(line)]
    for line, visit, how in todo:
        collection, place = opened()
        search(collection, before)
        hit += interrupted_at(lambda c=collection, p=place: operate(c, before, p), line, visit, how)
        try:
            goes_on(collection, worlds, (line, visit, how))
        except MustReopen:
            pass
        finally:
            collection.close()
        with Collection.open(collection.path) as again:
            assert "" in [world.differs(again) for world in worlds], (line, visit)
            assert again.verify().ok
    assert hit > len(seen) // SHARE


def goes_on(collection, worlds, where):
    """The same handle shows a right state, sees what others commit, lets other threads in, and takes changes."""
    differences = [world.differs(collection) for world in worlds]
    assert "" in differences, (where, differences)
    world = worlds[differences.index("")]
    in_thread(lambda: collection.note("thread", "was here"), where)
    perform(collection, ["add", 70, 2], world)
    world = world.after(["note", "thread", "was here"], ["add", 70, 2])
    assert world.differs(collection) == "", where
    assert search(collection, world), where
    with Collection.open(collection.path, read_only=True) as reader:
        assert world.differs(reader) == "", where
    perform(collection, ["remove", [world.next_id - 1]], world)
    perform(collection, ["remove", [world.next_id - 2]], world)
    with collection._database.writing() as connection:
        drop_traceback()
        connection.execute("DELETE FROM notes WHERE key = 'thread'")
        connection.execute("UPDATE state SET next_id = next_id - 2")


def in_thread(work, where):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), where


def test_a_reader_never_answers_from_a_version_that_is_gone(base, memory):
    """Interrupted at any line of a search, and its traceback kept as notebooks do: the next search sees new commits."""
    shutil.copytree(base, memory / "photos.bsc")
    world = World().after(*PREPARED)
    with Collection.open(memory / "photos.bsc") as writer:
        with Collection.open(writer.path, read_only=True) as reader:
            search(reader, world)

            def look():
                return reader.select(WHERE), list(reader.items()), reader.listing(), search(reader, world)

            seen = lines_of(look)
        for number, (line, visit) in enumerate(chosen(seen, SHARE, seed=3)):
            with Collection.open(writer.path, read_only=True) as reader:
                interrupted_at(look, line, visit, how_at(line))
                addition = ["add", 1000 + number, 1]
                perform(writer, addition, world)
                world = world.after(addition)
                assert world.differs(reader) == "", (line, visit)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    place = tmp_path_factory.mktemp("pictures")
    fill(place / "in", 3)
    (place / "in" / "broken.png").write_bytes(b"no picture")
    Collection.create(place / "empty.bsc", OLD).close()
    with Collection.create(place / "full.bsc", OLD) as full:
        full.add(place / "in", workers=1)
    return place


OLD, NEW = model(32, seed=1), model(48, seed=2)
TAKING_ROOMS = ("/ingest/", "/pictures/", "/hashers/", "/features/", "/data/")
TAKING = {
    "index": ("empty.bsc", lambda c, folder: c.add(folder, workers=1, batch=2), OLD),
    "reindex": ("full.bsc", lambda c, folder: reindex(c, NEW, workers=1, batch=2), NEW),
}


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", TAKING)
def test_taking_pictures_in_goes_on(pictures, memory, name):
    home, operate, hasher = TAKING[name]
    folder = pictures / "in"

    def opened():
        shutil.rmtree(memory / home, ignore_errors=True)
        return Collection.open(shutil.copytree(pictures / home, memory / home))

    with opened() as collection:
        seen = lines_of(lambda: operate(collection, folder))
        correct(collection, hasher)
    if not TORTURE:  # the rest is what the operations above reach too
        seen = Counter({line: n for line, n in seen.items() if any(room in line[0] for room in TAKING_ROOMS)})
    for line, visit in chosen(seen, SHARE, seed=len(name)):
        with opened() as collection:
            interrupted_at(lambda c=collection: operate(c, folder), line, visit, how_at(line))
            for item in collection.items():
                assert Path(item.path).parent.parent == folder, (line, visit)
            try:
                operate(collection, folder)
                correct(collection, hasher)
            except MustReopen:
                continue


def correct(collection, hasher):
    items = list(collection.items())
    assert [Path(item.path).name for item in items] == ["0000.png", "0002.png", "0001.png"]
    pixels = np.stack([read_picture(item.path, hasher.picture_form).pixels for item in items])
    assert collection.index.get([item.id for item in items]) == hasher.encode(pixels)
    assert collection.verify().ok
