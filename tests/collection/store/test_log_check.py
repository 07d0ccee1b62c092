import io
import random
import shutil

import apsw
import pytest

from bitscale.collection import Collection
from bitscale.collection.store import log_check
from bitscale.collection.store.database import Database
from bitscale.collection.store.log_check import FRAME, HEADER, check_log
from bitscale.collection.upkeep.verify import verify
from bitscale.errors import CorruptFile
from tests.collection.torture.world import World, hasher, perform


def damaged(data):
    return log_check.damaged(io.BytesIO(data))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log of ten commits, as a crash leaves it."""
    folder = tmp_path_factory.mktemp("log")
    database = Database(folder / "items.db", create=True)
    with database.writing() as connection:
        connection.execute("CREATE TABLE t (a, b)")
    database.checkpoint()
    for i in range(10):
        with database.writing() as connection:
            connection.executemany("INSERT INTO t VALUES (?, ?)", [(i, random.Random(i).randbytes(900))] * 6)
    copy = folder / "crashed"
    copy.mkdir()
    for name in ("items.db", "items.db-wal"):
        shutil.copy(folder / name, copy / name)
    database.close()
    return copy / "items.db-wal"


def commits_seen(folder, data):
    (folder / "items.db-wal").write_bytes(data)
    (folder / "items.db-shm").unlink(missing_ok=True)
    connection = apsw.Connection(str(folder / "items.db"))
    try:
        return connection.execute("SELECT count(DISTINCT a) FROM t").get
    finally:
        connection.close()


def test_a_sound_log_passes(log):
    data = log.read_bytes()
    assert not damaged(data)
    check_log(log.with_name("items.db"))
    assert not damaged(b"")
    assert not damaged(data[:40])


def test_a_log_is_read_in_pieces(log):
    """However large it is; the sums run on from piece to piece."""

    class Counting(io.BytesIO):
        most = 0

        def read(self, n=-1):
            data = super().read(n)
            self.most = max(self.most, len(data))
            return data

    data, at_once = log.read_bytes(), log_check.AT_ONCE
    hit = bytearray(data)
    hit[HEADER.size + FRAME + 5] ^= 1
    try:
        for log_check.AT_ONCE in (1, 2, 7, at_once):
            file = Counting(data)
            assert not log_check.damaged(file)
            assert file.most <= log_check.AT_ONCE * log_check.WHOLE
            assert damaged(bytes(hit))
    finally:
        log_check.AT_ONCE = at_once
    assert at_once * log_check.WHOLE < 4 << 20


def test_a_log_cut_anywhere_is_a_crash_not_damage(log):
    data = log.read_bytes()
    for cut in range(0, len(data), 997):
        assert not damaged(data[:cut])
        assert not damaged(data[:cut] + bytes(len(data) - cut))


def test_a_log_begun_anew_over_an_old_one_passes(log, tmp_path):
    for name in ("items.db", "items.db-wal"):
        shutil.copy(log.with_name(name), tmp_path / name)
    database = Database(tmp_path / "items.db")
    database.connection.execute("PRAGMA wal_checkpoint(RESTART)").get  # noqa: B018
    with database.writing() as connection:
        connection.execute("INSERT INTO t VALUES (99, 1)")
    assert not damaged((tmp_path / "items.db-wal").read_bytes())
    database.close()


@pytest.mark.slow
def test_power_lost_while_a_log_is_begun_anew_is_no_damage(log, tmp_path):
    """The header is half old, half new; all frames are in the database. Not so in a log that was not taken over yet."""
    for name in ("items.db", "items.db-wal"):
        shutil.copy(log.with_name(name), tmp_path / name)
    database = Database(tmp_path / "items.db")
    database.connection.execute("PRAGMA wal_checkpoint(RESTART)").get  # noqa: B018
    taken = (tmp_path / "items.db").read_bytes()
    with database.writing() as connection:
        connection.execute("INSERT INTO t VALUES (99, 1)")
    header = (tmp_path / "items.db-wal").read_bytes()[: HEADER.size]
    database.close()
    old = log.read_bytes()
    for cut in range(16, HEADER.size):
        if header[:cut] + old[cut : HEADER.size] == header:
            break  # what is left to write is equal by chance: the header is whole
        (tmp_path / "items.db-wal").write_bytes(header[:cut] + old[cut:])
        (tmp_path / "items.db").write_bytes(taken)
        check_log(tmp_path / "items.db")
        shutil.copy(log.with_name("items.db"), tmp_path / "items.db")
        with pytest.raises(CorruptFile):
            check_log(tmp_path / "items.db")


def test_damage_that_would_undo_commits_is_seen(log, tmp_path):
    """Whatever byte is hit: all ten commits are there, or only the last is missing, or it is called damaged."""
    data = log.read_bytes()
    shutil.copy(log.with_name("items.db"), tmp_path / "items.db")
    clean = (tmp_path / "items.db").read_bytes()
    size = FRAME + 4096
    rng = random.Random(1)
    places = [(at, bit) for at in range(HEADER.size + FRAME) for bit in range(8)]
    places += [(at, rng.randrange(8)) for at in rng.sample(range(len(data)), 300)]
    lost = 0
    for at, bit in places:
        hit = bytearray(data)
        hit[at] ^= 1 << bit
        if damaged(bytes(hit)):
            continue
        (tmp_path / "items.db").write_bytes(clean)
        seen = commits_seen(tmp_path, bytes(hit))
        assert seen >= 9, (at, (at - HEADER.size) // size, seen)
        lost += seen == 9
    assert lost < len(places) / 3


def test_a_log_of_another_collection_is_refused(tmp_path):
    """Two collections that are alike, page for page; each crashes with a log, and the logs change places."""
    for name in "ab":
        with Collection.create(tmp_path / name, hasher(0)) as collection:
            perform(collection, ["add", 1, 4], World())
            shutil.copytree(tmp_path / name, tmp_path / f"{name} crashed")
    for one, other in ("ab", "ba"):
        shutil.copytree(tmp_path / f"{one} crashed", tmp_path / f"{one} swapped")
        (tmp_path / f"{one} swapped" / "items.db-shm").unlink()
        assert len(Collection.open(tmp_path / f"{one} crashed", read_only=True)) == 4
        shutil.copy(tmp_path / f"{other} crashed" / "items.db-wal", tmp_path / f"{one} swapped" / "items.db-wal")
        for read_only in (True, False):
            with pytest.raises(CorruptFile, match="another collection"):
                Collection.open(tmp_path / f"{one} swapped", read_only=read_only)
        assert not verify(tmp_path / f"{one} swapped").ok


def test_the_cure_is_named(log, tmp_path):
    data = bytearray(log.read_bytes())
    data[HEADER.size + FRAME + 5] ^= 1
    (tmp_path / "items.db-wal").write_bytes(data)
    with pytest.raises(CorruptFile, match="backup"):
        check_log(tmp_path / "items.db")


def test_what_failed_commits_left_behind_the_end_is_no_damage(tmp_path):
    """A commit whose sync failed is written over by the next; of a longer one the rest stays behind the log's end."""
    database = Database(tmp_path / "items.db", create=True)
    with database.writing() as connection:
        connection.execute("CREATE TABLE t (a, b)")
    database.checkpoint()
    with database.writing() as connection:
        connection.execute("INSERT INTO t VALUES (0, 0)")
    start = {name: (tmp_path / name).read_bytes() for name in ("items.db", "items.db-wal")}
    database.close()
    logs = []
    for rows in (40, 25, 12, 1):  # each shorter than the one before
        folder = tmp_path / str(rows)
        folder.mkdir()
        for name, data in start.items():
            (folder / name).write_bytes(data)
        database = Database(folder / "items.db")
        with database.writing() as connection:
            connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, random.Random(rows).randbytes(900))] * rows)
        logs.append((folder / "items.db-wal").read_bytes())
        database.close()
    lengths = [len(log) for log in logs]
    assert lengths == sorted(lengths, reverse=True)
    left = logs[0]
    for log in logs[1:]:
        left = log + left[len(log) :]
    assert not damaged(left)
