"""Collections in real engines: brought level from any state, and brought back the same."""

import shlex

import numpy as np
import pytest

import bitscale as bs
from bitscale.collection.engines.cursor import cursor_of, since
from bitscale.collection.engines.pull import pull
from bitscale.collection.engines.push import Pushed, push
from bitscale.collection.engines.pushed import noted_pushes
from bitscale.collection.engines.source import CURSOR
from bitscale.collection.engines.verify import differences
from bitscale.collection.items import NewItem
from bitscale.errors import EngineError, FileError, InputError
from bitscale.index.engines import connect
from tests import servers
from tests.cli.run import inside
from tests.collection.engines.made import HASHER, RNG, N, some_codes, some_items

pytestmark = pytest.mark.slow


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
    photos.remove([8])
    push(photos, address)
    with pytest.raises(FileError, match="was changed since"):
        pull(address, tmp_path / "back.bsc", HASHER)
    bs.Collection.create(tmp_path / "own.bsc", HASHER).close()
    with pytest.raises(FileError, match="is a collection already"):
        pull(address, tmp_path / "own.bsc", HASHER)


@pytest.mark.parametrize("place", ["postgres", "milvus"], indirect=True)
def test_codes_only_stay_so_there_and_back(place, tmp_path):
    with bs.Collection.create(tmp_path / "codes.bsc", HASHER, codes_only=True) as codes:
        codes.apply(codes=some_codes(5), items=[NewItem(labels=("coat",)) for _ in range(5)])
        push(codes, place)
        assert pull(place, tmp_path / "back.bsc", HASHER) == 5
        with bs.Collection.open(tmp_path / "back.bsc") as back:
            assert back.codes_only
            assert list(back.items()) == list(codes.items())
            with pytest.raises(InputError, match="keeps codes only"):
                back.apply(codes=some_codes(1), items=some_items(1))


def test_what_belongs_to_others_is_refused(photos, place, tmp_path):
    push(photos, place)
    if "milvus" in place:
        with pytest.raises(EngineError, match="was made exact"):
            push(photos, place, approximate="hnsw")
    other = bs.Collection.create(tmp_path / "other.bsc", HASHER)
    with other, pytest.raises(EngineError, match="holds another collection") as error:
        push(other, place)
    assert f"`bitscale unpush {shlex.quote(place)}`" in str(error.value)
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


def test_a_collection_is_removed_from_an_engine_only_when_that_is_meant(photos, place):
    push(photos, place)
    run = inside("unpush", place)
    assert (run.returncode, f"{N} items at" in run.stdout) == (3, True)
    assert len(connect.existing(place)) == 1
    assert inside("unpush", place, "--yes").returncode == 0
    assert connect.existing(place) == []
    run = inside("unpush", place, "--yes")
    assert (run.returncode, "holds no collection" in run.stderr) == (1, True)
    assert push(photos, place) == Pushed(added=N, items=N)


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
