"""Shards on a real Ray cluster: killed and damaged, never a wrong answer. The contract is in tests/index/engines."""

import os
import signal

import numpy as np
import pytest

from bitscale.cluster import shard_files
from bitscale.cluster.shard import Shard
from bitscale.cluster.sharded import ShardedIndex
from bitscale.errors import ClusterError, CorruptFile, InputError
from bitscale.index.exact import ExactIndex
from tests import oracle
from tests.cluster import nodes

WORLD = oracle.world(3, 300, 40, "clusters", "steps", 4)
ODD = 10**7 + 1  # an id beyond those of WORLD, in the second of two shards


def check(index, rows, k=9, lacking=(), **how):
    ids, distances = oracle.search(WORLD.codes[rows], WORLD.ids[rows], WORLD.queries, k, **how)
    hits = index.search(WORLD.queries, k, **how)
    assert np.array_equal(hits.distances, distances)
    assert np.array_equal(hits.ids, ids)
    assert hits.lacking == hits[:2].lacking == lacking


def kill(index, shard):
    """End the process of an actor."""
    os.kill(nodes.connect().get(index._fleet.actors[shard].process.remote()), signal.SIGKILL)


# ---------------------------------------------------------------------- files, without a cluster


def shard_of(folder):
    return Shard(str(folder), WORLD.codes.bit_weights, WORLD.codes.model)


def test_a_change_is_on_disk_when_it_returns_and_done_once(tmp_path):
    shard_files.make(tmp_path)
    shard = shard_of(tmp_path)
    for change in range(1, 13):  # more than there may be files: they are merged
        part = slice(10 * change, 10 * change + 10)
        shard.add(change, WORLD.codes.packed[part], WORLD.ids[part])
        shard.add(change, WORLD.codes.packed[part], WORLD.ids[part])  # asked again after a lost answer
    shard.remove(13, WORLD.ids[20:40])
    shard.remove(13, WORLD.ids[20:40])
    with pytest.raises(ClusterError, match="stands at change 13"):
        shard.add(15, WORLD.codes.packed[:1], WORLD.ids[:1])
    with pytest.raises(InputError, match="already in this index"):
        shard.add(14, WORLD.codes.packed[:1], WORLD.ids[50:51])
    again = shard_of(tmp_path)
    left = np.r_[10:20, 40:130]
    for one in (shard, again):
        assert one.state() == (13, int(WORLD.ids[10:130].max()) + 1, 100)
        check(one.index, left)
    assert len(list(tmp_path.glob("*.bsi"))) < 12
    again.stand_at(12)
    assert shard_of(tmp_path).state()[::2] == (12, 120)


def test_a_damaged_shard_is_an_error_that_names_the_file(tmp_path):
    shard_files.make(tmp_path)
    shard_of(tmp_path).add(1, WORLD.codes.packed, WORLD.ids)
    (segment,) = tmp_path.glob("*.bsi")
    content = bytearray(segment.read_bytes())
    content[-50] ^= 1
    segment.write_bytes(content)
    with pytest.raises(CorruptFile, match=segment.name):
        shard_of(tmp_path)
    (tmp_path / "change-000000000001.json").write_text("{}")
    with pytest.raises(CorruptFile, match="change-000000000001"):
        shard_of(tmp_path)
    with pytest.raises(ClusterError, match="holds no shard"):
        shard_of(tmp_path / "none")


# ---------------------------------------------------------------------- on a cluster


@pytest.mark.slow
def test_killed_actors_come_back_and_a_lost_shard_is_never_passed_over(tmp_path):
    nodes.connect()
    everything, half = np.arange(300), np.arange(150)
    with ShardedIndex.create(tmp_path / "index", WORLD.codes[:0], 2) as index:
        index.add(WORLD.codes[half], WORLD.ids[half])
        with pytest.raises(ClusterError, match="open already"):
            ShardedIndex(tmp_path / "index")
        kill(index, 0)
        check(index, half)
        kill(index, 1)
        index.add(WORLD.codes[150:], WORLD.ids[150:])
        where = index.prepare(WORLD.ids[::3])
        kill(index, 0)
        check(index, everything, bits=17)
        kill(index, 0)
        hits = index.search(WORLD.queries, 5, where=where)
        assert np.array_equal(hits.ids, oracle.search(WORLD.codes[::3], WORLD.ids[::3], WORLD.queries, 5)[0])
        assert index.remove(WORLD.ids[:50]) == 50
        kill(index, 1)
        check(index, everything[50:])
    torn_change(tmp_path / "index")
    with ShardedIndex(tmp_path / "index", partial=True) as index:
        assert len(index) == 250
        check(index, everything[50:])
        late(index)
        lost(index, everything[50:])


def late(index):
    """A shard that is silent while others tell where they stand: what it knows is asked for before a change."""
    index.add(WORLD.codes[:1], [ODD])
    process = nodes.connect().get(index._fleet.actors[1].process.remote())
    before, index._fleet.seconds = index._fleet.seconds, 3
    os.kill(process, signal.SIGSTOP)
    index._level()
    os.kill(process, signal.SIGCONT)
    index._fleet.seconds = before
    assert index._next_id < ODD  # of the other shard alone
    with pytest.raises(InputError, match="already in this index"):
        index.add(WORLD.codes[:1], [ODD])
    assert index.add(WORLD.codes[:1]).tolist() == [ODD + 1]
    assert index.remove([ODD, ODD + 1]) == 2
    assert len(index) == 250


def torn_change(folder):
    """A change that reached one shard when its driver died."""
    shard = shard_of(folder / "shard-0000")
    shard.add(shard.state()[0] + 1, WORLD.codes.packed[:1], np.array([10**6]))


def lost(index, rows):
    """The files of a shard go, and its actor after them: refused, or flagged where that was allowed."""
    for path in (index.folder / "shard-0001").glob("*.bsi"):
        path.write_bytes(b"rubbish")
    kill(index, 1)
    check(index, rows[WORLD.ids[rows] % 2 == 0], lacking=("shard-0001",))
    near = index.lookup(WORLD.queries, 3)
    assert near.lacking == ("shard-0001",)
    whole = ExactIndex(WORLD.codes[rows], WORLD.ids[rows]).lookup(WORLD.queries, 3)
    assert [[hit for hit in row if hit[0] % 2 == 0] for row in whole] == list(near)
    index.partial = False
    for asked in (lambda: index.search(WORLD.queries, 3), index.ids, lambda: index.add(WORLD.codes[:1], [10**7])):
        with pytest.raises(ClusterError, match=r"shard-0001 of .* did not answer"):
            asked()
