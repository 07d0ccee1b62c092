"""What the torture has found, each as its smallest test."""

import errno
import os

import numpy as np
import pytest

from bitscale.collection import Collection
from bitscale.errors import FileError
from tests.collection.torture.shim import Kind, Orders
from tests.collection.torture.tasks import ended
from tests.collection.torture.world import World, codes, hasher, perform


@pytest.fixture
def path(tmp_path):
    with Collection.create(tmp_path / "photos.bsc", hasher(0)) as collection:
        perform(collection, ["add", 1, 4], World())
    return tmp_path / "photos.bsc"


def test_an_empty_collection_changes_its_model(tmp_path):
    """Nothing was staged, so nothing had brought the model."""
    with Collection.create(tmp_path / "empty.bsc", hasher(0)) as collection:
        collection.switch(hasher(1))
        assert collection.hasher.fingerprint == hasher(1).fingerprint
        assert collection.verify().ok


def test_a_reader_that_stays_open_follows_a_change_of_model(path):
    """Its model was looked up before the index was brought level, and queries were encoded by the old one."""
    with Collection.open(path) as writer, Collection.open(path, read_only=True) as reader:
        assert reader.model == hasher(0).fingerprint
        perform(writer, ["stage"], World().after(["add", 1, 4]))
        writer.switch(hasher(1))
        assert reader.model == hasher(1).fingerprint
        writer.stage(np.arange(4), codes([bytes(4)] * 4, 0), hasher(0))
        writer.switch(hasher(0))
        query = reader.hasher.encode(np.zeros((1, 8), np.float32))
        assert len(reader.search(query, 2)[0]) == 2


def test_a_writer_never_gets_a_connection_that_only_reads(path, server):
    """SQLite opens a file for reading when it cannot for writing; such a handle could never write again."""
    orders = Orders(str(path), "fail", 1, errno.EMFILE, kinds=frozenset({Kind.EDIT}), only="items.db")
    outcome = server.run("tasks:endure", str(path), [["add", 1, 4]], [["add", 2, 1]], orders=orders)
    assert outcome.error is None, ended(outcome)
    assert len(outcome.value["texts"]) == 1
    assert "open files" in outcome.value["texts"][0]


def test_a_reader_where_nothing_can_be_written_notices_a_change(path, server, tmp_path):
    """It has to read without a log, and would never see a later one."""
    kinds = frozenset({Kind.CREATE})
    assert (
        server.run(
            "tasks:look", str(path), [["add", 1, 4]], orders=Orders(str(path), "fail", 1, errno.EROFS, True, kinds)
        ).error
        is None
    )
    outcome = server.run("tasks:outlive", str(path), orders=Orders(str(path), "fail", 1, errno.EROFS, True, kinds))
    assert outcome.error is None, ended(outcome)
    assert "Open it again" in outcome.value


def test_leftovers_that_cannot_be_removed_do_not_keep_a_writer_out(path, server):
    (path / "segments" / ".left.partial").touch()
    orders = Orders(str(path), "fail", 1, errno.EIO, True, frozenset({Kind.UNLINK}), only="segments")
    outcome = server.run("tasks:operate", str(path), [["add", 1, 4]], [["add", 2, 1]], orders=orders)
    assert outcome.error is None, ended(outcome)
    assert outcome.hits > 0
    Collection.open(path).close()
    assert os.listdir(path / "segments") == []


def test_compact_says_so_when_what_was_removed_is_still_there(path, server):
    """It promises that no byte is left; where a file cannot be removed, it must not say it did."""
    orders = Orders(str(path), "fail", 1, errno.EIO, True, frozenset({Kind.UNLINK}), only="segments")
    done, then = [["add", 1, 4]], [["seal"], ["remove", [0]], ["compact"]]
    outcome = server.run("tasks:endure", str(path), done, then, orders=orders)
    assert outcome.error is None, ended(outcome)
    assert "cannot be removed" in outcome.value["texts"][0]
    assert len(os.listdir(path / "segments")) == 1


def test_a_closed_collection_says_so(path):
    collection = Collection.open(path)
    collection.close()
    with pytest.raises(FileError, match="closed"):
        collection.items_of([0])
