"""Tasks without a collection, to test the tools: plain files, and SQLite as the collection uses it."""

import os
import shutil
import time
from pathlib import Path

import apsw

from bitscale.atomic import write_whole


def database(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.execute("pragma journal_mode = wal; pragma synchronous = full")
    return connection


def files(ack, folder: str) -> None:
    """One of every kind of step."""
    base = Path(folder)
    (base / "inner").mkdir()
    write_whole(base / "whole", lambda file: file.write(b"whole" * 1000))
    ack("whole")
    with (base / "plain").open("wb") as file:
        file.write(b"plain")
        file.flush()
        os.pwrite(file.fileno(), b"PL", 0)
        os.writev(file.fileno(), [b"one", b"two"])
        os.posix_fallocate(file.fileno(), 0, 100)
        os.ftruncate(file.fileno(), 50)
    with (base / "plain").open("ab") as file:
        file.write(b"end")
    (base / "plain").open("wb").close()
    shutil.copyfile(base / "whole", base / "inner" / "copy")
    os.link(base / "inner" / "copy", base / "link")
    (base / "link").replace(base / "inner" / "moved")
    (base / "inner" / "copy").unlink()
    (base / "empty").mkdir()
    (base / "empty").rmdir()
    (base / "gone").mkdir()
    (base / "gone" / "file").touch()
    shutil.rmtree(base / "gone")  # by folder handles


def make_table(ack, folder: str) -> None:
    connection = database(Path(folder) / "plain.db")
    connection.execute("create table t(x)")
    connection.close()


def commits(ack, folder: str, n: int, size: int) -> None:
    """Commit n rows, one by one, and acknowledge each."""
    connection = database(Path(folder) / "plain.db")
    for number in range(n):
        connection.execute("insert into t values (?)", (bytes([number]) * size,))
        ack(number)
    connection.close()


def rows(ack, folder: str) -> list[int]:
    """What SQLite finds, after checking itself."""
    connection = database(Path(folder) / "plain.db")
    assert connection.execute("pragma integrity_check").get == "ok"
    found = [row[0][0] for row in connection.execute("select x from t order by rowid")]
    connection.close()
    return found


def wait(ack) -> None:
    ack("ready")
    time.sleep(60)


def complain(ack) -> None:
    raise ValueError("as asked")
