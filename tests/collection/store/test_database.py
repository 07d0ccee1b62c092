"""The database under hard conditions: who may not write, names of any bytes, limits, transactions left open."""

import contextlib
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import apsw
import pytest

from bitscale.collection import Collection, NewItem
from bitscale.collection.store import database
from bitscale.collection.store.database import Database
from bitscale.collection.store.log_holders import log_holders
from bitscale.errors import BitscaleError, CorruptFile, FileError, InputError, MustReopen
from tests.collection.made import codes_for, fill, hasher
from tests.collection.unprivileged import as_nobody


@pytest.fixture
def photos(tmp_path):
    with Collection.create(tmp_path / "photos.bsc", hasher()) as made:
        yield made


@pytest.fixture
def open_to_all():
    """A folder that others can come to: not one of pytest's, which any other run of it closes to others again."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.slow
def test_a_folder_unwritable_by_permission_is_read_after_a_clean_close(open_to_all):
    with Collection.create(open_to_all / "photos.bsc", hasher()) as photos:
        fill(photos, 3)
    home = photos.path
    for path in (home, *home.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)

    def look():
        with Collection.open(home, read_only=True) as reader:
            return len(reader), len(list(reader.items())), reader.search(0, k=1)[0][0].id

    assert as_nobody(look) == "(3, 3, 0)"
    assert "MustReopen" not in as_nobody(lambda: Collection.open(home))
    assert "FileError" in as_nobody(lambda: Collection.open(home))


@pytest.mark.parametrize("name", [b"photos-\xff\xfe.bsc", "f\u00f6t\u00f6s # 100 % ?x=1.bsc".encode()])
def test_a_collection_whose_name_is_any_bytes(tmp_path, name):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    with Collection.create(path, hasher()) as photos:
        fill(photos, 5)
        photos.seal()
        photos.remove([1])
        photos.compact()
        photos.backup(path.with_name(path.name + ".copy"))
    with Collection.open(path, read_only=True) as reader:
        assert len(reader) == 4
        assert reader.verify().ok
    assert os.fsencode(path) in {os.fsencode(one) for one in tmp_path.iterdir()}


def test_too_many_conditions_and_too_long_ones(photos):
    fill(photos, 2)
    for where in (["a=1"] * 2_000, ["a=" + "x" * 100_000], ["a=" + "[" * 200_000], {str(i): i for i in range(101)}):
        with pytest.raises(InputError, match="at most"):
            photos.select(where)
    assert photos.select(["id>=0"] * 100).tolist() == [0, 1]


def test_too_many_open_files_is_no_damage(photos):
    fill(photos, 3)
    path = photos.path
    photos.close()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for spare in range(12):
            for read_only in (True, False):
                try:
                    Collection.open(path, read_only=read_only).close()
                except CorruptFile as error:
                    pytest.fail(f"{spare} files left: {error}")
                except BitscaleError:
                    pass
            os.close(taken.pop())
    finally:
        for handle in taken:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with Collection.open(path) as again:
        assert len(again) == 3


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return {"deep": value}


def test_metadata_nested_too_deep_is_refused(photos):
    photos.apply(codes=codes_for(photos, 1), items=[NewItem(metadata=nested(60))])
    for depth in (70, 990, 5_000):
        with pytest.raises(InputError, match="64 deep"):
            photos.apply(codes=codes_for(photos, 1), items=[NewItem(metadata=nested(depth))])
    assert photos.item(0).metadata == nested(60)
    with photos._database.writing() as connection:  # as an earlier version took it
        deep = '{"deep": ' + "[" * 100_000 + "]" * 100_000 + "}"
        connection.execute("UPDATE items SET metadata = ?", (deep,))
    with pytest.raises(CorruptFile, match="of item 0 cannot be read"):
        list(photos.items())
    assert photos.remove([0]) == 1


def test_a_transaction_left_open_is_ended_before_the_next(tmp_path):
    database = Database(tmp_path / "x.db", create=True)
    with database.writing() as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.executemany("INSERT INTO t VALUES (?)", [(i,) for i in range(5000)])
    for begin in ("BEGIN", "BEGIN IMMEDIATE"):
        database.connection.execute(begin)
        with database.writing() as connection:
            connection.execute("INSERT INTO t VALUES (1)")
    rows = None

    def half():
        nonlocal rows
        with database.reading() as connection:
            rows = connection.execute("SELECT x FROM t")
            next(rows)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()  # the rows, half read, hold on to the version, whatever is rolled back
    other = Database(tmp_path / "x.db")
    with other.writing() as connection:
        connection.execute("DELETE FROM t")
    other.close()
    with database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM t").get == 0
    database.close()


@pytest.mark.parametrize("kind", ["reading", "writing"])
@pytest.mark.parametrize("in_a_thread", [False, True])
def test_a_traceback_dropped_late_ends_nothing_of_somebody_else(tmp_path, kind, in_a_thread):
    """An interrupt between a block's beginning and `with` leaves it to whoever keeps the traceback, as notebooks do."""
    database = Database(tmp_path / "x.db", create=True)
    with database.writing() as connection:
        connection.execute("CREATE TABLE t(n)")
    kept = [getattr(database, kind)()]
    kept[0].__enter__()
    database.set_right()
    with database.writing() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        if in_a_thread:
            thread = threading.Thread(target=kept.clear)
            thread.start()
            thread.join()
        kept.clear()
        assert connection.in_transaction
        connection.execute("INSERT INTO t VALUES (2)")
    assert database.lock.depth == 0
    with database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM t").get == 2
    database.close()


def test_what_cannot_be_set_right_says_to_open_it_again(photos):
    fill(photos, 2)
    photos._database.connection.execute("BEGIN")
    home = photos.path / "items.db"
    home.rename(photos.path / "away")
    with pytest.raises(MustReopen, match="open it again"):
        len(photos)
    assert issubclass(MustReopen, FileError)
    (photos.path / "away").rename(home)
    assert len(photos) == 2


HOLD = """
import sys, time
from bitscale.collection.store import database
from bitscale.collection.store.database import Database
with Database(__import__("pathlib").Path(sys.argv[1]), read_only=True).reading() as connection:
    connection.execute("SELECT count(*) FROM items").get
    print("holding", flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
def test_the_reader_that_holds_the_log_is_named(photos, monkeypatch):
    from bitscale.collection.store import log_holders as module

    fill(photos, 20)
    photos.remove([3])
    assert photos.notices() == []
    reader = subprocess.Popen([sys.executable, "-c", HOLD, str(photos.path / "items.db")], stdout=subprocess.PIPE)
    try:
        assert reader.stdout.readline() == b"holding\n"
        fill(photos, 20, seed=1)
        assert [f"process {reader.pid} " in one for one in log_holders(photos.path / "items.db")] == [True]
        monkeypatch.setattr(module, "LARGE", 1)
        [notice] = photos.notices()
        assert f"Held by process {reader.pid} (" in notice
        with pytest.raises(FileError, match=f"process {reader.pid} .*keeps the old log"):
            photos.compact()
    finally:
        reader.kill()
        reader.wait()
    assert photos.compact()["items"] == 39


@pytest.mark.slow
def test_vacuum_needs_little_memory(tmp_path):
    """A database of 120 MB is written anew within 48 MB more than before."""
    program = """
import resource, sys, pathlib
from bitscale.collection.store import database
from bitscale.collection.store.database import Database
database = Database(pathlib.Path(sys.argv[1]), create=True)
with database.writing() as connection:
    connection.execute("CREATE TABLE t (x)")
for _ in range(12):
    with database.writing() as connection:
        connection.executemany("INSERT INTO t VALUES (randomblob(1000000))", [()] * 10)
database.connection.execute("PRAGMA cache_size = -4096")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
database.vacuum()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x.db")], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 48
    assert {path.name for path in tmp_path.iterdir()} <= {"x.db", "x.db-wal", "x.db-shm"}


def test_case_is_ignored_in_every_script(photos):
    items = [
        NewItem("/p/ÄPFEL.jpg", labels=("Ёлка",), metadata={"who": "ΣΊΣΥΦΟΣ", "n": 12, "yes": True}),
        NewItem("/p/a\u0308pfel.jpg", labels=("STRASSE",), metadata={"who": ["Çedilla"]}),
        NewItem(os.fsdecode(b"/p/\xff-\xc3\x84PFEL.jpg"), labels=("\udcff\u00c4",), metadata={"who": "\udcfe"}),
        NewItem(),
    ]
    photos.apply(codes=codes_for(photos, 4), items=items)
    assert photos.select("path~äpfel").tolist() == [0, 1, 2]
    assert photos.select("path~A\u0308PF").tolist() == [0, 1, 2]
    assert photos.select("path~" + os.fsdecode(b"\xff-")).tolist() == [2]
    assert photos.select("label~ёл").tolist() == [0]
    assert photos.select("label~straße").tolist() == [1]
    assert photos.select("label~ä").tolist() == [2]
    assert photos.select("who~σίσυφος").tolist() == [0]
    assert photos.select("who~çe").tolist() == [1]
    assert photos.select("n~2").tolist() == [0]
    assert photos.select("yes~1").tolist() == [0]


def test_threads_search_under_conditions_that_change(photos):
    """The filter kept for one condition is put aside by another thread's at any moment."""
    photos.apply(codes=codes_for(photos, 30), items=[NewItem(metadata={"n": i % 3}) for i in range(30)])
    problems = []

    def search(n):
        try:
            for _ in range(200):
                hits = photos.search(codes_for(photos, 1), k=30, where={"n": n}).hits.ids[0]
                assert {int(id) % 3 for id in hits if id >= 0} == {n}
        except BaseException as error:
            problems.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=search, args=(n % 3,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not problems


def test_two_that_make_the_same_collection(tmp_path):
    """One gets it, the others are told; nobody's half-made folder is taken away, and nothing is left over."""
    made, told = [], []

    def make():
        try:
            Collection.create(tmp_path / "photos.bsc", hasher()).close()
            made.append(1)
        except FileError as error:
            told.append(str(error))

    for _ in range(20):
        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 1, told
        assert told == [f"{tmp_path / 'photos.bsc'} is already there. Open it, or choose another name."] * 3
        with Collection.open(tmp_path / "photos.bsc") as photos:
            assert photos.verify().ok
        assert [path.name for path in tmp_path.iterdir()] == ["photos.bsc"]
        (tmp_path / "photos.bsc").rename(tmp_path.parent / f"{tmp_path.name}-{len(told)}-{time.monotonic_ns()}")
        made.clear()
        told.clear()


def test_what_a_dead_maker_left_is_removed(tmp_path):
    (tmp_path / ".photos.bsc.0123.partial").mkdir()
    (tmp_path / ".photos.bsc.0123.partial" / "items.db").write_bytes(b"half")
    Collection.create(tmp_path / "photos.bsc", hasher()).close()
    assert [path.name for path in tmp_path.iterdir()] == ["photos.bsc"]


def test_a_seal_that_failed_is_told(photos):
    fill(photos, 10)
    (photos.path / "segments").rename(photos.path / "hidden")
    photos._sealer.ask()
    photos._sealer.wait()
    [notice] = photos.notices()
    assert "could not be moved" in notice
    with Collection.open(photos.path, read_only=True) as reader:
        assert reader.notices() == [notice]
        assert len(reader) == 10
    (photos.path / "hidden").rename(photos.path / "segments")
    photos._sealer.ask()
    photos._sealer.wait()
    assert photos.notices() == []
    assert photos.notes() == {}


def test_damage_and_misuse_stay_apart(tmp_path):
    """What SQLite cannot do is no damage."""
    from bitscale.collection.store.database import translated

    for kind, wanted in ((apsw.TooBigError, FileError), (apsw.NoMemError, FileError), (apsw.CorruptError, CorruptFile)):
        with pytest.raises(wanted) as caught, translated(tmp_path):
            raise kind("x")
        assert isinstance(caught.value, CorruptFile) == (wanted is CorruptFile)


def test_an_interrupted_vacuum_lets_other_threads_compact(photos, monkeypatch):
    """The lock on SQLite's folder for temporary files belongs to the process: who is interrupted must give it back."""
    fill(photos, 20)
    taken = type(database._TEMPORARY).__enter__

    def interrupted(turn):
        taken(turn)
        if turn is database._TEMPORARY:
            raise KeyboardInterrupt  # right after it was taken, before any `try`
        return turn

    with monkeypatch.context() as patch:
        patch.setattr(type(database._TEMPORARY), "__enter__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            photos.compact()
    other = threading.Thread(target=photos.compact, daemon=True)
    other.start()
    other.join(60)
    stuck = other.is_alive()
    database._TEMPORARY.abandon()  # so that what fails does not hang
    assert not stuck
    assert len(photos) == 20
