"""The tools themselves: every step is seen, done to what it says, and can be played back."""

import copy
import errno
import os
import signal
from random import Random

import pytest

from tests.collection.torture import disk
from tests.collection.torture.shim import CHANGES, OPENS, Kind, Orders, read_log


@pytest.fixture
def base(tmp_path):
    folder = tmp_path / "base"
    folder.mkdir()
    return folder


@pytest.fixture
def recorded(server, base, tmp_path):
    """A folder with an empty table, as it was, and the log of ten commits."""
    server.run("plain:make_table", str(base))
    before = disk.Disk(base)
    log = tmp_path / "log"
    outcome = server.run("plain:commits", str(base), 10, 3000, orders=Orders(str(base), log=str(log)))
    assert outcome.error is None
    return before, read_log(log), outcome


def test_every_kind_of_step_is_seen_and_replays_to_the_same_bytes(server, base, tmp_path):
    played = disk.Disk(base)
    outcome = server.run("plain:files", str(base), orders=Orders(str(base), log=str(tmp_path / "log")))
    assert outcome.error is None, outcome.trace
    steps = read_log(tmp_path / "log")
    assert {step.kind for step in steps} == set(Kind) - {Kind.READ}
    assert outcome.steps == sum(step.kind in CHANGES for step in steps)
    for step in steps:
        played.play(step)
    assert played.contents() == disk.read(base)


def test_all_of_sqlite_is_seen(recorded, base):
    """Its writes replay to the same bytes; each commit syncs the write-ahead log before it is acknowledged."""
    played, steps, _ = recorded
    for step in steps:
        played.play(step)
    assert played.contents() == disk.read(base)
    since, syncs = [], []
    for step in steps:
        if step.kind is Kind.MARK:
            syncs.append(sum(s.kind is Kind.SYNC and s.name.endswith("-wal") for s in since))
            last = max(i for i, s in enumerate(since) if s.name.endswith("-wal"))
            assert since[last].kind is Kind.SYNC  # nothing of the commit came after it
            since = []
        since.append(step)
    assert len(syncs) == 10
    assert min(syncs) >= 1


def test_dying_at_every_step_of_sqlite_loses_nothing_acknowledged(server, tmp_path):
    for action in ("die", "tear"):
        for at in range(1, 500):
            folder = tmp_path / f"{action}{at}"
            folder.mkdir()
            server.run("plain:make_table", str(folder))
            died = server.run("plain:commits", str(folder), 3, 5000, orders=Orders(str(folder), action, at))
            found = server.run("plain:rows", str(folder)).value
            assert found in (died.acks, [*died.acks, len(died.acks)]), (action, at, died)
            if not died.died():
                assert died.acks == [0, 1, 2]
                break
            assert died.last
        assert at > 20


@pytest.mark.parametrize(("number", "told"), [(errno.ENOSPC, "Full"), (errno.EIO, "IO"), (errno.EROFS, "IO")])
@pytest.mark.parametrize("sticky", [False, True])
def test_faults_are_injected_where_told(server, base, number, told, sticky):
    server.run("plain:make_table", str(base))
    orders = Orders(str(base), "fail", 8, number, sticky, CHANGES, only="-wal")
    outcome = server.run("plain:commits", str(base), 5, 5000, orders=orders)
    assert outcome.error.startswith(f"{told}Error: ")
    assert outcome.hits >= 1
    assert "plain.db-wal" in outcome.last
    assert server.run("plain:rows", str(base)).value[: len(outcome.acks)] == outcome.acks


def test_opens_and_reads_can_fail_too(server, base):
    server.run("plain:make_table", str(base))
    orders = Orders(str(base), "fail", 1, errno.EMFILE, True, OPENS)
    assert "CantOpen" in server.run("plain:rows", str(base), orders=orders).error
    orders = Orders(str(base), "fail", 2, errno.EIO, True, frozenset({Kind.READ}))
    assert "IOError" in server.run("plain:rows", str(base), orders=orders).error


def test_a_short_write_is_finished_by_its_caller(server, base):
    server.run("plain:make_table", str(base))
    outcome = server.run("plain:commits", str(base), 3, 5000, orders=Orders(str(base), "shorten", 1, sticky=True))
    assert (outcome.error, outcome.hits > 0) == (None, True)
    assert server.run("plain:rows", str(base)).value == [0, 1, 2]


def test_sqlite_survives_power_loss_and_the_disk_can_do_harm(recorded, server, tmp_path):
    """No commit is lost while syncs are told; without them some are, so the images are not harmless."""
    played, steps, _ = recorded
    rng = Random(0)
    acked, lost_without_syncs = [], 0
    cuts = sorted(rng.sample(range(len(steps)), 25))
    lazy = copy.deepcopy(played)
    for number, step in enumerate(steps):
        played.play(step)
        if step.kind is not Kind.SYNC:
            lazy.play(step)
        if step.kind is Kind.MARK:
            acked.append(int(step.name))
        if number in cuts:
            for one in (played, lazy):
                folder = tmp_path / f"image{number}{one is lazy}"
                disk.write(one.crash(rng), folder)
                outcome = server.run("plain:rows", str(folder))
                good = outcome.value in (acked, [*acked, len(acked)])
                assert good or one is lazy, outcome
                lost_without_syncs += not good
    assert lost_without_syncs > 0


def test_a_task_can_be_killed_and_its_errors_come_back(server):
    outcome = server.run("plain:wait", kill=0.01)
    assert (outcome.signal, outcome.acks) == (signal.SIGKILL, ["ready"])
    assert outcome.died()
    outcome = server.run("plain:complain")
    assert outcome.error == "ValueError: as asked"
    assert "complain" in outcome.trace
    assert server.run("plain:wait", patience=0.1).signal == signal.SIGABRT


def test_the_shim_leaves_other_folders_alone(server, base, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    outcome = server.run("plain:files", str(other), orders=Orders(str(base), "fail", 1, errno.EIO, True))
    assert (outcome.error, outcome.steps) == (None, 0)
    assert os.listdir(base) == []
