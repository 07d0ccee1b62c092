"""Collections in real engines: brought level from any state, killed anywhere, and brought back the same."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import bitscale as bs
from bitscale.collection.engines.cursor import cursor_of, since
from bitscale.collection.engines.pull import pull
from bitscale.collection.engines.push import CURSOR, Pushed, push
from bitscale.collection.engines.pushed import noted_pushes
from bitscale.collection.engines.verify import differences
from bitscale.collection.items import NewItem
from bitscale.errors import EngineError, FileError
from bitscale.index.engines import connect
from tests import servers
from tests.conftest import TORTURE, until

pytestmark = pytest.mark.slow
N = 300
HASHER = bs.load_hasher("fashion-mnist")
RNG = np.random.default_rng(5)


def some_codes(n, seed=0):
    packed = np.random.default_rng(seed).integers(0, 256, (n, HASHER.n_bits // 8), dtype=np.uint8)
    return bs.Codes(packed, HASHER.bit_weights, HASHER.fingerprint)


def some_items(n, start=0):
    odd = {0: "/pictures/caf\udce9.png", 1: "/pictures/\u00e9t\u00e9 \U0001f30d.png", 2: ""}
    now = 1_700_000_000_000_000_000
    return [
        NewItem(
            odd.get(start + i, f"/pictures/{start + i}.png"), bytes([i % 256]) * 32, 10 + i, now + i,
            ("coat", "red") if i % 2 else (), {"camera": i % 3, "note": "a\u0000b\"'; --"} if i % 3 else {},
        )
        for i in range(n)
    ]  # fmt: skip


def cleared(engine):
    place = servers.address(engine, "pushed")
    for left in connect.existing(place):
        left.drop()
    return place


@pytest.fixture(params=servers.ENGINES)
def address(request):
    yield cleared(request.param)
    cleared(request.param)


@pytest.fixture(params=["postgres", "milvus"])
def place(request):
    """One of each kind; what pgvector's server brings makes no difference to a push."""
    yield cleared(request.param)
    cleared(request.param)


@pytest.fixture
def photos(tmp_path):
    with bs.Collection.create(tmp_path / "photos.bsc", HASHER) as made:
        made.apply(codes=some_codes(N), items=some_items(N))
        yield made


def test_there_and_back(photos, address, tmp_path):
    assert push(photos, address) == Pushed(added=N, items=N)
    assert differences(photos, address, 10) == []
    assert push(photos, address) == Pushed(items=N)
    photos.remove([3, 4, 5])
    photos.apply(codes=some_codes(2, 1), items=some_items(2, N))
    photos.apply(update=[(7, NewItem("/elsewhere/7.png", photos.item(7).content, 1, 2, ("hat",)))])
    assert push(photos, address) == Pushed(added=2, updated=1, removed=3, items=N - 1)
    assert differences(photos, address, 10) == []
    assert pull(address, tmp_path / "back.bsc", HASHER, batch=100) == N - 1
    with bs.Collection.open(tmp_path / "back.bsc") as back:
        assert list(back.items()) == list(photos.items())
        assert np.array_equal(back.index.get(back.index.ids()).packed, photos.index.get(photos.index.ids()).packed)
        assert back.add_codes(some_codes(1)).tolist() == [N + 2]
    assert pull(address, tmp_path / "back.bsc", HASHER) == N
    bs.Collection.create(tmp_path / "own.bsc", HASHER).close()
    with pytest.raises(FileError, match="is a collection already"):
        pull(address, tmp_path / "own.bsc", HASHER)


def test_what_belongs_to_others_is_refused(photos, place, tmp_path):
    push(photos, place)
    if "milvus" in place:
        with pytest.raises(EngineError, match="was made exact"):
            push(photos, place, approximate="hnsw")
    other = bs.Collection.create(tmp_path / "other.bsc", HASHER)
    with other, pytest.raises(EngineError, match="holds another collection"):
        push(other, place)
    with pytest.raises(EngineError, match="give that model"):
        pull(place, tmp_path / "back.bsc", bs.make_hasher("lsh", n_bits=8, features="none").fit(vectors()))
    assert not (tmp_path / "back.bsc").exists()


def vectors():
    from bitscale.data import Labelled

    return Labelled(RNG.normal(size=(50, 16)).astype(np.float32), np.zeros(50, np.int64), ("",))


def test_the_log_is_followed_and_sealing_does_not_matter(photos, place):
    """Whatever became of the log since the last push, both sides are level after the next."""
    push(photos, place)
    before = cursor_of(photos)
    photos.remove([1, 2])
    photos.apply(codes=some_codes(3, 4), items=some_items(3, N))
    added, removed = since(photos, before)
    assert (added.tolist(), removed.tolist()) == ([N, N + 1, N + 2], [1, 2])
    assert push(photos, place) == Pushed(added=3, removed=2, items=N + 1)
    photos.remove([N, 7])
    photos.apply(codes=some_codes(2, 5), items=some_items(2, N + 3))
    between = cursor_of(photos)
    photos.seal()
    photos.seal()  # lines of the log are gone by now
    photos.compact()
    assert since(photos, before) is None
    assert push(photos, place) == Pushed(added=2, removed=2, items=N + 1)
    photos.describe([11], labels=["hat"])
    assert since(photos, between) is None  # the log does not tell of labels
    assert push(photos, place) == Pushed(updated=1, items=N + 1)
    assert differences(photos, place, 20) == []
    with connect.open_index(place) as index:
        assert index.notes()[CURSOR] == str(cursor_of(photos))
        index.remove([12])  # behind our back: the next whole comparison sees it
        assert differences(photos, place, 1)[0] == f"{N + 1} items here, {N} there"


def test_erased_here_is_erased_there(photos, place):
    push(photos, place)
    assert noted_pushes(photos.path) == [place]
    erased = photos.erase("camera=2")
    assert erased.removed > 50
    assert erased.engines == []
    with connect.open_index(place) as index:
        assert np.array_equal(index.ids(), photos.index.ids())
        if hasattr(index, "items"):
            assert index._one(f"SELECT count(*) FROM {index.items}") == len(photos)
        index.drop()
    assert photos.erase("camera=1").engines == []  # nothing is there any more, and nothing is made
    assert connect.existing(place) == []
    (photos.path / "engines.txt").write_text("postgresql://me@127.0.0.1:9/db?collection=gone\n")
    photos.apply(codes=some_codes(1, 8), items=[NewItem(labels=("last",))])
    (left,) = photos.erase("label=last").engines
    assert left.address == "postgresql://me@127.0.0.1:9/db?collection=gone"
    assert "Is the server running" in left.reason


def test_looks_can_stay_behind(photos, place):
    from bitscale.collection.store.seen import Seen
    from bitscale.pictures.look import LOOK_BYTES

    photos.keep_looks([3, 4], [Seen(5, 6, bytes([i]) * LOOK_BYTES, {"iso": i}) for i in (1, 2)])
    push(photos, place, looks=False)
    with connect.open_index(place) as index:
        assert push(photos, place) == Pushed(items=N)  # as the last push did
        assert index.looks(np.array([3, 4])) == {}
        assert push(photos, place, looks=True) == Pushed(updated=2, items=N)
        assert index.looks(np.array([2, 3, 4])) == {3: bytes([1]) * LOOK_BYTES, 4: bytes([2]) * LOOK_BYTES}


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_an_approximate_engine_says_how_good_it_is(photos, kind, tmp_path):
    address = servers.address("milvus", f"near_{kind}")
    for left in connect.existing(address):
        left.drop()
    done = push(photos, address, approximate=kind)
    assert 0.5 < done.recall.recall <= 1
    assert set(done.recall.by_bits) == {"64", "32", "8"}
    assert push(photos, address).recall == done.recall
    assert differences(photos, address, 5) == []
    with connect.open_index(address) as index:
        hits, exact = (one.search(photos.index.get([5]), 10) for one in (index, photos.index))
        assert (hits.distances >= exact.distances).all()
        among = photos.index.search(photos.index.get([5]), 10, where=hits.ids[0])
        assert np.array_equal(among.ids, hits.ids)  # in exact order, with exact distances
        assert np.array_equal(among.distances, hits.distances)
        with pytest.raises(EngineError, match="cannot list all items"):
            index.lookup(photos.index.get([5]), 3)
        index.drop()
    with pytest.raises(EngineError, match="PostgreSQL answers exactly"):
        push(photos, servers.address("postgres", "near"), approximate=kind)


def test_another_model_is_refused(photos, place):
    push(photos, place)
    other = bs.make_hasher("lsh", n_bits=64, features="none").fit(vectors())
    ids = photos.index.ids()
    photos.stage(ids, bs.Codes(some_codes(N).packed, np.ones(64), other.fingerprint), other)
    photos.switch(other)
    with pytest.raises(EngineError, match="codes of another model") as error:
        push(photos, place)
    assert place in str(error.value)


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


@pytest.fixture
def own_server():
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("BITSCALE_ENGINES_DIR")))
    folder.chmod(0o755)
    own = OwnPostgres(folder)
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


@pytest.mark.parametrize("engine", ["postgres", "milvus"])
def test_killed_anywhere_it_goes_on(photos, engine):
    """Killed after some batches, again and again: in the end no item is missing or doubled."""
    address = servers.address(engine, "killed")
    for left in connect.existing(address):
        left.drop()
    for _ in range(10 if TORTURE else 2):
        run = subprocess.Popen(
            [sys.executable, "-c", PUSH, str(photos.path), address], stdout=subprocess.PIPE, text=True
        )
        seen = 0
        while seen < 3 and run.poll() is None:
            seen += bool(run.stdout.readline())
        time.sleep(float(RNG.random()) * 0.05)
        run.kill()
        run.wait()
        run.stdout.close()
    push(photos, address)
    with connect.open_index(address) as index:
        until(lambda: len(index) == N)  # what a killed client had sent may still arrive
        assert np.array_equal(index.ids(), photos.index.ids())
        assert np.array_equal(index.get(index.ids()).packed, photos.index.get(photos.index.ids()).packed)
        index.drop()
