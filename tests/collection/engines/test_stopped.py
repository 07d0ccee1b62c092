"""Pushes that are stopped: by Ctrl-C, by kill -9, by a server that goes and comes back. The next one goes on."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

import bitscale as bs
from bitscale.collection.engines.collection import EngineCollection
from bitscale.collection.engines.push import Pushed, push
from bitscale.errors import EngineError
from bitscale.index.engines import connect
from bitscale.index.engines.address import parse_address
from tests import servers
from tests.cli.run import inside
from tests.collection.engines.made import RNG, N
from tests.conftest import TORTURE, until

pytestmark = pytest.mark.slow


def test_what_a_stopped_push_left_there_is_told_and_erased_too(photos, place, tmp_path):
    def stop(done, total):
        if done >= 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        push(photos, place, batch=50, progress=stop)
    for told in (inside("pull", place, tmp_path / "part.bsc", "--model", photos.path), inside("info", place)):
        assert "is under way or was stopped" in " ".join(told.stdout.split())
    assert photos.erase("camera=2").engines == []
    assert "was stopped" not in inside("info", place).stdout
    with connect.open_index(place) as index:
        assert len(index) >= 50
        assert np.array_equal(np.setdiff1d(index.ids(), photos.index.ids()), [])


class OwnPostgres:
    """A PostgreSQL of a test's own, to be ended at once and started again."""

    def __init__(self, folder):
        servers.address("postgres", "any")  # where there is one, there are its programs
        place, self.ways = servers.start_postgres(servers.postgres_programs(), folder / "own")
        self.address = place.format(name="restarted")

    def end(self):
        subprocess.run(self.ways["run"], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self):
        subprocess.run(self.ways["again"], check=True, stdout=subprocess.DEVNULL)


class OwnMilvus:
    """The same of Milvus: the program that `milvus-server` starts, since that one would look for another port."""

    def __init__(self, folder):
        servers.address("milvus", "any")
        place, way = servers.start_milvus(folder / "own")
        self.address, self.leader = place.format(name="restarted"), way["kill"]
        (program,) = psutil.Process(self.leader).children()
        self.again = {"args": [program.exe(), *program.cmdline()[1:]], "env": program.environ(), "cwd": program.cwd()}

    def end(self):
        servers.end_group(self.leader, signal.SIGKILL)

    def start(self):
        none = subprocess.DEVNULL
        self.leader = subprocess.Popen(**self.again, start_new_session=True, stdin=none, stdout=none, stderr=none).pid
        port = parse_address(self.address).port
        assert servers.wait_until(lambda: servers.listens(port), 180)


OWN = {"postgres": OwnPostgres, **({"milvus": OwnMilvus} if TORTURE else {})}  # Milvus is back after a minute or two


@pytest.fixture(params=OWN)
def own_server(request):
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("BITSCALE_ENGINES_DIR")))
    folder.chmod(0o755)
    own = OWN[request.param](folder)
    yield own
    own.end()
    shutil.rmtree(folder, ignore_errors=True)


def command(*words):
    """`bitscale push`, as it is typed."""
    words = [sys.executable, "-m", "bitscale", "push", *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_a_server_that_restarts_during_a_push(photos, own_server):
    address = own_server.address

    def end_it(done, total):
        if done == 100:
            own_server.end()

    with pytest.raises(EngineError, match="run the same command again") as error:
        push(photos, address, batch=50, progress=end_it)
    assert address in str(error.value)
    down = command(photos.path, address)
    assert down.returncode == 1
    assert "Is the server running there" in down.stderr
    assert address in down.stderr
    for secret in (servers.PASSWORD, servers.MILVUS_TOKEN):
        assert secret not in str(error.value) + down.stderr
    own_server.start()
    done = command(photos.path, address, "--verify", 10)
    assert done.returncode == 0, done.stderr
    with bs.Collection.open(photos.path, read_only=True) as here:
        assert push(here, address) == Pushed(items=N)
    with connect.open_index(address) as index:
        assert np.array_equal(index.ids(), photos.index.ids())


PUSH = """
import sys
import bitscale as bs
from bitscale.collection.engines.push import push
with bs.Collection.open(sys.argv[1], read_only=True) as photos:
    push(photos, sys.argv[2], batch=20, progress=lambda n, total: print(n, flush=True))
"""


def killed(photos, address, lines, pause):
    """A push that is killed some time after so many lines were printed."""
    run = subprocess.Popen([sys.executable, "-c", PUSH, str(photos.path), address], stdout=subprocess.PIPE, text=True)
    seen = 0
    while seen < lines and run.poll() is None:
        seen += bool(run.stdout.readline())
    time.sleep(float(RNG.random()) * pause)
    run.kill()
    run.wait()
    run.stdout.close()


def test_killed_anywhere_it_goes_on(photos, place):
    """Killed after some batches, again and again: in the end no item is missing or doubled."""
    for _ in range(10 if TORTURE else 2):
        killed(photos, place, 3, 0.05)
    push(photos, place)
    with connect.open_index(place) as index:
        until(lambda: len(index) == N)  # what a killed client had sent may still arrive
        assert np.array_equal(index.ids(), photos.index.ids())
        assert np.array_equal(index.get(index.ids()).packed, photos.index.get(photos.index.ids()).packed)


def test_killed_while_items_move_between_partitions(photos):
    """Items are given another value of that which they are parted by, and pushes of this are killed: all arrive."""
    address = servers.address("milvus", "moved")
    for left in connect.existing(address):
        left.drop()
    push(photos, address, partition_by="camera")
    for turn in range(10 if TORTURE else 2):
        for id in range(N):
            photos.describe([id], metadata={"camera": (id + turn) % 7})
        killed(photos, address, 1, 1.5)  # the line tells that there is nothing to add; what moves comes after it
    push(photos, address)
    assert push(photos, address) == Pushed(items=N)
    with EngineCollection.open(address) as there:
        until(lambda: len(there) == N)
        assert list(there.items()) == list(photos.items())
        for value in range(7):
            assert np.array_equal(there.select(f"camera={value}"), photos.select(f"camera={value}"))
        there.index.drop()
