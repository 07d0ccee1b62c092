"""One writer, many readers: searches see one version and do not wait; a second writer is told who is first."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import cycle

import pytest

from bitscale.collection import Collection
from bitscale.errors import CollectionBusy, FileError
from tests.collection.torture.server import ROOT
from tests.collection.torture.steady import BATCH, main, version
from tests.collection.torture.world import World, codes, hasher, perform
from tests.conftest import endurance

VERSIONS = endurance(1_000)  # of the collection that a reader sees
OPENED = endurance(300)
ENDLESS = 10**9


@pytest.fixture
def path(tmp_path):
    with Collection.create(tmp_path / "photos.bsc", hasher(0)) as collection:
        collection.apply(codes=codes([bytes(4)] * BATCH, 0), items=version(0))
    return tmp_path / "photos.bsc"


@contextmanager
def writing(path, pause=0.005):
    """A steady writer in a process of its own, killed at the end if it still runs."""
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.collection.torture.steady", str(path), str(ENDLESS), str(pause)]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "begun\n"
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def check_one_version(collection, where=None):
    """All items of one version, and no other."""
    results = collection.search(codes([bytes(4)], 0), 3 * BATCH, where=where)
    items = [match.item for match in results[0]]
    assert len(items) == (BATCH if where is None else BATCH // 2)
    assert len({item.metadata["version"] for item in items}) == 1
    return items[0].metadata["version"]


def test_searches_see_one_version(path):
    with writing(path), Collection.open(path, read_only=True) as reader:
        seen = set()
        for where in cycle([{"even": 1}, None, None, None]):
            seen.add(check_one_version(reader, where))
            if len(seen) == VERSIONS:
                break


def test_searches_do_not_wait_for_a_writer(path):
    """It is within a transaction, and stays there."""
    with (
        Collection.open(path) as writer,
        Collection.open(path, read_only=True) as reader,
        writer._database.writing() as connection,
    ):
        connection.execute("UPDATE items SET metadata = '{}'")
        for where in ({"even": 1}, None):
            assert check_one_version(reader, where) == 0
        with Collection.open(path, read_only=True) as another:
            assert check_one_version(another) == 0


def test_many_readers_come_and_go(path):
    """Opening beside a writer that seals and compacts never fails, and never shows half a version."""
    with writing(path, pause=0.002):
        for _ in range(OPENED):
            with Collection.open(path, read_only=True) as reader:
                check_one_version(reader)
                assert reader.verify().problems == []
        with Collection.open(path, read_only=True) as reader:
            reader.backup(path.with_name("copy.bsc"))
    with Collection.open(path.with_name("copy.bsc")) as copy:
        check_one_version(copy)


def test_a_second_writer_is_told_who_is_first(path):
    with writing(path) as first:
        with pytest.raises(CollectionBusy, match=f"process {first.pid} on") as refusal:
            Collection.open(path)
        assert "steady" in str(refusal.value)
        assert "searching works meanwhile" in str(refusal.value)


def test_the_lock_is_free_once_its_holder_is_killed(path):
    with writing(path) as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
        with Collection.open(path) as second:
            check_one_version(second)
            assert second.verify().ok


def test_two_handles_of_one_process_are_two_writers(path):
    with Collection.open(path), pytest.raises(CollectionBusy, match=str(os.getpid())):
        Collection.open(path)
    Collection.open(path).close()


def test_threads_share_a_handle(path):
    """Two add and remove, two search, one seals and compacts; all at once."""
    with Collection.open(path) as collection:
        stop = threading.Event()

        def change(number):
            for i in range(30):
                seed = 1000 * number + i
                ids = collection.add_codes(
                    codes([bytes([number, i, 1, 1])] * 3, 0), paths=[f"/{seed}/{j}" for j in range(3)]
                )
                assert collection.remove(ids[:2]) == 2

        def look():
            while not stop.is_set():
                assert len(collection.search(codes([bytes(4)], 0), 5)[0]) == 5

        def keep_up():
            for _ in range(4):
                collection.seal()
                collection.compact()

        with ThreadPoolExecutor(5) as pool:
            looking = [pool.submit(look) for _ in range(2)]
            changing = [pool.submit(change, 1), pool.submit(change, 2), pool.submit(keep_up)]
            try:
                for job in changing:
                    job.result()
            finally:
                stop.set()
            for job in looking:
                job.result()
        assert len(collection) == BATCH + 60
        assert collection.verify().ok


def test_a_fork_cannot_harm_the_collection(path):
    """A child that inherits the handle is told to open its own, and takes nothing with it when it ends."""
    with Collection.open(path) as collection:
        child = os.fork()
        if child == 0:
            uses = [
                lambda: collection.search(codes([bytes(4)], 0), 5),
                lambda: collection.remove([0]),
                collection.compact,
            ]
            told = 0
            for use in uses:
                with suppress(FileError):
                    use()
                    told -= 1
                told += 1
            collection.close()
            os._exit(0 if told == len(uses) else 1)
        assert os.waitpid(child, 0)[1] == 0
        perform(collection, ["add", 5, 3], World(next_id=BATCH))
        with pytest.raises(CollectionBusy, match=str(os.getpid())):
            Collection.open(path)
        assert collection.verify().ok
    with Collection.open(path, read_only=True) as reader:
        assert len(reader) == BATCH + 3


def test_the_writer_is_a_program(monkeypatch, path, capsys):
    monkeypatch.setattr(sys, "argv", ["steady", str(path), "3", "0"])
    main()
    assert capsys.readouterr().out.split() == ["begun", "ended"]
    with Collection.open(path, read_only=True) as reader:
        assert check_one_version(reader) == 3
