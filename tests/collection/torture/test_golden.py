"""Collections of every format there was: they open and become today's, and newer ones are refused untouched."""

import shutil
import tarfile
from pathlib import Path

import pytest

from bitscale.collection import Collection
from bitscale.collection.store.database import Database
from bitscale.collection.store.schema import FORMAT, FORMATS, format_of
from bitscale.errors import FileError, NewerFormat
from tests.collection.torture import disk
from tests.collection.torture.shim import CHANGES, Kind, Orders
from tests.collection.torture.tasks import ended, settled
from tests.collection.torture.world import World

GOLDEN = Path(__file__).with_name("golden")
HELD = [["add", 1, 12], ["seal"], ["columns", 2, 4], ["remove", [1, 13]]]  # what each of them holds


@pytest.fixture
def golden(tmp_path):
    """Unpacks a stored collection, as often as asked."""

    def unpack(format: int) -> Path:
        place = tmp_path / "world"
        shutil.rmtree(place, ignore_errors=True)
        with tarfile.open(GOLDEN / f"format-{format}.tar.gz") as archive:
            archive.extractall(place, filter="data")
        return (place / f"format-{format}.bsc").rename(place / "photos.bsc")

    return unpack


def held(path: Path) -> World:
    """What a stored collection holds; its model is taken from its name, for floats differ from machine to machine."""
    return World(model=next(path.glob("models/*")).stem).after(*HELD)


def written_as(path: Path) -> int:
    database = Database(path / "items.db", read_only=True)
    with database.reading() as connection:
        found = format_of(connection, path)
    database.close()
    return found


def test_every_older_format_is_here():
    assert {file.name for file in GOLDEN.iterdir()} == {f"format-{n}.tar.gz" for n in range(1, FORMAT)}


@pytest.mark.parametrize("format", range(1, FORMAT))
def test_an_older_format_opens_and_becomes_todays(format, golden):
    path = golden(format)
    assert written_as(path) == format
    with pytest.raises(FileError, match="older format"):
        Collection.open(path, read_only=True)
    with Collection.open(path) as collection:
        assert held(path).differs(collection) == ""
        collection.note("now", "possible")
        assert collection.verify().ok
        assert collection.hasher.fingerprint == collection.model
    assert written_as(path) == FORMAT
    with Collection.open(path, read_only=True) as reader:
        assert reader.notes() == {"now": "possible"}


@pytest.mark.parametrize("format", range(1, FORMAT))
@pytest.mark.parametrize("action", ["die", "tear"])
def test_dying_at_every_step_of_a_migration(format, action, server, golden, capsys):
    kinds = CHANGES if action == "die" else frozenset({Kind.WRITE})
    for at in range(1, 1000):
        path = golden(format)
        world = held(path)
        noted = world.after(["note", "a", "b"])
        orders = Orders(str(path.parent), action, at, kinds=kinds)
        outcome = server.run("tasks:operate", str(path), [], [["note", "a", "b"]], orders=orders)
        assert outcome.error is None, ended(outcome)
        settled(path, *([noted] if 0 in outcome.acks else [world, noted]), go_on=False)
        assert written_as(path) == FORMAT
        if not outcome.died():
            break
    with capsys.disabled():
        print(f"\nmigrate: {outcome.steps} steps to {action} at", end=" ")
    assert outcome.steps > 10


@pytest.mark.parametrize("read_only", [True, False])
def test_a_newer_format_is_refused_and_left_as_it_is(read_only, golden):
    path = golden(1)
    database = Database(path / "items.db")
    with database.writing() as connection:
        connection.execute(f"PRAGMA user_version = {7 * FORMATS + FORMAT + 1}")
    database.close()
    before = disk.read(path)
    with pytest.raises(NewerFormat, match="Upgrade"):
        Collection.open(path, read_only=read_only)
    after = disk.read(path)
    after.pop("writer.lock", None)
    assert {name: data for name, data in after.items() if data or name in before} == before
