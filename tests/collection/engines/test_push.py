"""Collections in real engines: brought level from any state, killed anywhere, and brought back the same."""

import subprocess
import sys
import time

import numpy as np
import pytest

import bitscale as bs
from bitscale.collection.engines.pull import pull
from bitscale.collection.engines.push import Pushed, differences, push
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


@pytest.fixture(params=servers.ENGINES)
def address(request):
    place = servers.address(request.param, "pushed")
    for left in connect.existing(place):
        left.drop()
    yield place
    for left in connect.existing(place):
        left.drop()


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


def test_what_belongs_to_others_is_refused(photos, address, tmp_path):
    push(photos, address)
    other = bs.Collection.create(tmp_path / "other.bsc", HASHER)
    with other, pytest.raises(EngineError, match="holds another collection"):
        push(other, address)
    with pytest.raises(EngineError, match="give that model"):
        pull(address, tmp_path / "back.bsc", bs.make_hasher("lsh", n_bits=8, features="none").fit(vectors()))
    assert not (tmp_path / "back.bsc").exists()


def vectors():
    from bitscale.data import Labelled

    return Labelled(RNG.normal(size=(50, 16)).astype(np.float32), np.zeros(50, np.int64), ("",))


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
