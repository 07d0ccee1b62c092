"""Death at every I/O step of every operation: what is found afterwards is the state before or the state after."""

import shutil
from pathlib import Path
from signal import SIGKILL

import pytest

from tests.collection.torture.shim import CHANGES, Kind, Orders
from tests.collection.torture.tasks import PREPARED, copied, ended, leftovers, settled
from tests.collection.torture.world import World
from tests.conftest import TORTURE

OPERATIONS = {
    "add": [["add", 50, 3]],
    "add_codes": [["columns", 51, 4]],
    "remove": [["remove", [0, 7, 15]]],
    "remove a folder": [["forget", "/pictures/1"]],
    "change": [["change", {"add": [52, 2], "remove": [4], "update": [[6, 41]], "unskip": ["/pictures/broken.jpg"]}]],
    "note": [["note", "roots", "/elsewhere"]],
    "seal": [["seal"]],
    "compact": [["compact"]],
    "reindex": [["stage"], ["switch"]],
    "a life": [
        ["add", 53, 2],
        ["seal"],
        ["remove", [0]],
        ["reopen"],
        ["stage"],
        ["compact"],
        ["switch"],
        ["add", 54, 1],
    ],
    "background": [["add", 55, 8], ["remove", [0]], ["add", 56, 9], ["add", 57, 2]],
}
MOST = 5_000  # steps no operation takes
TORN = 3  # every third write is torn, and under torture every one


def points(server, action, kinds, before, task, *args):
    """Die at step 1, 2, ... of a task until it lives; yields (outcome, folder) after each death, and at the end."""
    for at in range(1, MOST, 1 if action == "die" or TORTURE else TORN):
        folder = before()
        orders = Orders(str(folder), action, at, kinds=kinds)
        outcome = server.run(
            task, *(arg.format(folder=folder) if isinstance(arg, str) else arg for arg in args), orders=orders
        )
        assert outcome.signal == (SIGKILL if outcome.hits else 0), ended(outcome)
        assert outcome.error is None, ended(outcome)
        yield outcome, folder
        if not outcome.died():
            return
        shutil.rmtree(folder)
    raise AssertionError("no end of steps")


@pytest.mark.parametrize("action", ["die", "tear"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_before_or_after_and_nothing_acknowledged_lost(name, action, server, fresh, capsys):
    operations = OPERATIONS[name]
    worlds = [World().after(*PREPARED, *operations[:n]) for n in range(len(operations) + 1)]
    kinds = CHANGES if action == "die" else frozenset({Kind.WRITE})
    n = 0
    for outcome, folder in points(
        server, action, kinds, fresh, "tasks:operate", "{folder}/photos.bsc", PREPARED, operations, name == "background"
    ):
        done = sum(number >= 0 for number in outcome.acks)
        settled(folder / "photos.bsc", *worlds[done : done + 2])
        n = outcome.steps
    with capsys.disabled():
        print(f"\n{name}: {n} steps to {action} at", end=" ")
    assert n > 10


@pytest.mark.parametrize("action", ["die", "tear"])
def test_create_appears_whole_or_not_at_all(action, server, tmp_path, capsys):
    def empty() -> Path:
        shutil.rmtree(tmp_path / "world", ignore_errors=True)
        (tmp_path / "world").mkdir()
        return tmp_path / "world"

    kinds = CHANGES if action == "die" else frozenset({Kind.WRITE})
    for outcome, folder in points(server, action, kinds, empty, "tasks:make", "{folder}/photos.bsc", [["add", 1, 2]]):
        path = folder / "photos.bsc"
        if outcome.acks or path.exists():
            settled(path, *[World(), World().after(["add", 1, 2])][outcome.acks.count(0) :])
        else:
            again = server.run("tasks:make", str(path), [["add", 1, 2]])
            assert again.error is None, ended(again)
            settled(path, World().after(["add", 1, 2]))
            assert [file.name for file in folder.iterdir()] == ["photos.bsc"]
    with capsys.disabled():
        print(f"\ncreate: {outcome.steps} steps to {action} at", end=" ")


@pytest.mark.parametrize("action", ["die", "tear"])
def test_backup_appears_whole_or_not_at_all(action, server, fresh, capsys):
    kinds = CHANGES if action == "die" else frozenset({Kind.WRITE})
    world = World().after(*PREPARED)
    task = ("tasks:back_up", "{folder}/photos.bsc", "{folder}/copy.bsc")
    for outcome, folder in points(server, action, kinds, fresh, *task):
        settled(folder / "photos.bsc", world)
        if outcome.acks or (folder / "copy.bsc").exists():
            settled(folder / "copy.bsc", world)
        else:
            again = server.run("tasks:back_up", str(folder / "photos.bsc"), str(folder / "copy.bsc"))
            assert again.error is None, ended(again)
            assert sorted(file.name for file in folder.iterdir()) == ["copy.bsc", "photos.bsc"]
    with capsys.disabled():
        print(f"\nbackup: {outcome.steps} steps to {action} at", end=" ")


def test_leftovers_are_noticed(prepared, tmp_path):
    """The check above can fail."""
    copied(prepared, tmp_path / "p")
    assert leftovers(tmp_path / "p") == []
    (tmp_path / "p" / "segments" / "x.bsi").touch()
    assert leftovers(tmp_path / "p") == ["segments/x.bsi"]
