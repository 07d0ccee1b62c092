"""A full disk, a failing disk, a read-only folder, no more handles, short writes: at every call, once and for good.

Each time the error is ours and says what to do, nothing acknowledged is lost, searching goes on where the disk can
still be read, and once the trouble is over the same handle does the work after all, and so does another process.
"""

import errno
import shutil
from random import Random

import pytest

from tests.collection.torture.shim import ALLOCATIONS, CHANGES, OPENS, Kind, Orders
from tests.collection.torture.tasks import PREPARED, copied, ended, settled
from tests.collection.torture.test_crash_points import OPERATIONS
from tests.collection.torture.world import World
from tests.conftest import TORTURE, endurance

FAULTS = {
    "disk full": (errno.ENOSPC, ALLOCATIONS),
    "disk error": (errno.EIO, CHANGES),
    "read error": (errno.EIO, frozenset({Kind.READ})),
    "read-only": (errno.EROFS, CHANGES - {Kind.SYNC} | {Kind.EDIT}),
    "no handles": (errno.EMFILE, OPENS),
}
NAMES = ["add", "remove", "change", "seal", "compact", "reindex", "background"]
STRIDE = 1 if TORTURE else 8  # every call, or every eighth from a place of its own
PAIRS = 500


def check(outcome, folder, operations, readable):
    """What every fault must leave behind."""
    assert outcome.signal == 0, ended(outcome)
    assert outcome.error is None, ended(outcome)
    for text in outcome.value["texts"]:
        assert "photos.bsc" in text, text  # which file
        assert any(word in text.lower() for word in ("check", "room", "try again", "restore", "open")), (
            text
        )  # what to do
    if readable:
        assert outcome.value["blind"] in ("", "after"), outcome.value["blind"]
    settled(folder / "photos.bsc", World().after(*PREPARED, *operations))


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", NAMES)
def test_clear_error_nothing_lost_works_again(name, fault, sticky, server, fresh, capsys):
    number, kinds = FAULTS[fault]
    operations = OPERATIONS[name]
    readable = fault in ("disk full", "disk error", "read-only")
    first = 1 + Random(f"{name} {fault} {sticky}").randrange(STRIDE)
    tried = refused = 0
    for at in range(first, 10_000, STRIDE):
        folder = fresh()
        orders = Orders(str(folder), "fail", at, number, sticky, kinds)
        task = ("tasks:endure", str(folder / "photos.bsc"), PREPARED, operations, name == "background")
        outcome = server.run(*task, orders=orders)
        check(outcome, folder, operations, readable)
        shutil.rmtree(folder)
        if not outcome.hits:
            break
        tried, refused = tried + 1, refused + bool(outcome.value["texts"])
    with capsys.disabled():
        print(f"\n{name}, {fault}: {tried} places, {refused} errors", end=" ")


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["create", "backup"])
def test_what_cannot_be_made_leaves_nothing_behind(name, fault, sticky, server, fresh, capsys):
    """A new folder is there whole or not at all, the collection it came from is untouched, and the next try works."""
    number, kinds = FAULTS[fault]
    world = World().after(*PREPARED) if name == "backup" else World().after(["add", 1, 2])
    tried = refused = 0
    for at in range(1 + Random(f"{name} {fault} {sticky}").randrange(2 * STRIDE), 10_000, 2 * STRIDE):
        folder = fresh()
        new = folder / "new.bsc"
        task = ("tasks:back_up", str(folder / "photos.bsc")) if name == "backup" else ("tasks:make",)
        task += (str(new),) if name == "backup" else (str(new), [["add", 1, 2]])
        outcome = server.run(*task, orders=Orders(str(folder), "fail", at, number, sticky, kinds))
        assert outcome.signal == 0, ended(outcome)
        if outcome.error:
            assert outcome.error.startswith("BitscaleError"), ended(outcome)
            assert "bsc" in outcome.error
        if not new.exists():
            assert not outcome.acks
            again = server.run(*task)
            assert again.error is None, ended(again)
        settled(new, *([World(), world] if outcome.error and name == "create" and new.exists() else [world]))
        settled(folder / "photos.bsc", World().after(*PREPARED))
        assert sorted(file.name for file in folder.iterdir()) == ["new.bsc", "photos.bsc"]
        shutil.rmtree(folder)
        if not outcome.hits:
            break
        tried, refused = tried + 1, refused + bool(outcome.error)
    with capsys.disabled():
        print(f"\n{name}, {fault}: {tried} places, {refused} errors", end=" ")


@pytest.mark.parametrize("name", ["add", "compact", "reindex"])
def test_short_writes_are_finished(name, server, fresh):
    for sticky, at in ((True, 1), (False, 3), (False, 7), (False, 12)):
        folder = fresh()
        orders = Orders(str(folder), "shorten", at, sticky=sticky, kinds=frozenset({Kind.WRITE}))
        outcome = server.run("tasks:endure", str(folder / "photos.bsc"), PREPARED, OPERATIONS[name], orders=orders)
        check(outcome, folder, OPERATIONS[name], True)
        assert outcome.hits > 0
        assert outcome.value["texts"] == []


@pytest.mark.parametrize("fault", ["disk full", "read-only"])
def test_readers_open_and_search_where_nothing_can_be_written(fault, server, prepared, tmp_path):
    """With a log left by a crash, and without."""
    number, kinds = FAULTS[fault]
    for crashed in (False, True):
        folder = tmp_path / f"{crashed}"
        copied(prepared, folder / "photos.bsc")
        done = PREPARED
        if crashed:
            done = [*PREPARED, ["add", 80, 3], ["note", "x", "y"]]
            task = ("tasks:operate", str(folder / "photos.bsc"), PREPARED, done[-2:])
            died = server.run(
                *task, orders=Orders(str(folder), "die", 1, only="items.db-wal", kinds=frozenset({Kind.TRUNCATE}))
            )
            assert died.acks == [-1, 0, 1]  # in close
        outcome = server.run(
            "tasks:look", str(folder / "photos.bsc"), done, orders=Orders(str(folder), "fail", 1, number, True, kinds)
        )
        assert outcome.error is None, ended(outcome)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_while_recovering_from_a_crash(fault, server, fresh, capsys):
    number, kinds = FAULTS[fault]
    rng = Random(fault)
    operations = OPERATIONS["a life"]
    pairs = hit = 0
    while pairs < endurance(PAIRS) // len(FAULTS):
        folder = fresh()
        path = str(folder / "photos.bsc")
        crash = server.run(
            "tasks:operate", path, PREPARED, operations, orders=Orders(str(folder), "die", rng.randint(8, 170))
        )
        n = crash.acks.count(-1) and len(crash.acks) - 1
        orders = Orders(str(folder), "fail", rng.randint(1, 12), number, rng.random() < 0.5, kinds)
        second = server.run("tasks:recover", path, [*PREPARED, *operations[:n]], operations[n : n + 1], orders=orders)
        assert second.error is None, ended(second)
        settled(folder / "photos.bsc", *(World().after(*PREPARED, *operations[:m]) for m in (n, n + 1)))
        shutil.rmtree(folder)
        pairs, hit = pairs + 1, hit + bool(second.hits)
    with capsys.disabled():
        print(f"\n{fault}: {pairs} crashes recovered from, {hit} with a fault", end=" ")
