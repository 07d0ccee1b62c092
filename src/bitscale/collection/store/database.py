"""The collection's SQLite: one connection, pages under checksums, and errors that name the cure.

apsw brings its own SQLite, new enough for a write-ahead log that two processes can trust, and SQLite's own
`cksumvfs`, which keeps a checksum in every page: a damaged page is an error, never an answer.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import quote

import apsw
import apsw.sqlite_extra

from bitscale.errors import CorruptFile, FileError

SAFE_WAL = 3_051_003  # before it a write-ahead log can be corrupted by two writers
BUSY_MILLISECONDS = 5_000
PAGE = 4_096  # bytes
RESERVED = 8  # bytes a page, for its checksum
CHECKPOINT_PAGES = 1_000
NO_ROOM_FOR_INDEX = (apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP)
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "9p", "fuse.sshfs", "glusterfs", "ceph"})


class Database:
    """One connection to a collection's database; a lock lets threads take turns."""

    def __init__(self, path: Path, *, read_only: bool = False, create: bool = False) -> None:
        self.path, self.read_only = path, read_only
        self.lock = threading.RLock()
        self._process = os.getpid()
        self._seen = seen_from_outside(path) if path.is_file() else (0, 0)
        if apsw.sqlite_lib_version() and apsw.SQLITE_VERSION_NUMBER < SAFE_WAL:
            raise FileError(f"SQLite {apsw.sqlite_lib_version()} is too old for a safe log. Upgrade apsw.")
        if not create and not path.is_file():
            raise FileError(f"{path} is missing: {path.parent} is no collection, or is incomplete.")
        with translated(path):
            self.connection, self._frozen = _connect(path, read_only, create)
            try:
                self._refuse_half_open()
                self._configure(create)
            except BaseException:
                self.connection.close(force=True)
                raise

    def _refuse_half_open(self) -> None:
        """SQLite opens a file for reading when it cannot for writing, and would never write through this connection."""
        if not self.read_only and self.connection.readonly("main"):
            raise FileError(f"{self.path} cannot be written to. Check its permissions and the number of open files.")

    def _configure(self, create: bool) -> None:
        run = self.connection.execute
        self.connection.set_busy_timeout(BUSY_MILLISECONDS)
        if create:
            run(f"PRAGMA page_size = {PAGE}")
            self.connection.reserve_bytes("main", RESERVED)
            run("PRAGMA journal_mode = WAL")
        run("PRAGMA temp_store = MEMORY")
        run("PRAGMA cache_size = -65536")
        run("SELECT count(*) FROM sqlite_master").get  # noqa: B018  reads the first page, recovers the log
        if not self.read_only:
            run("PRAGMA synchronous = FULL")
            run("PRAGMA secure_delete = ON")
            run(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")

    @property
    def inherited(self) -> bool:
        """Whether this is a copy, in a forked process, of a connection that only its parent may use."""
        return os.getpid() != self._process

    def _refuse_in_a_fork(self) -> None:
        if self.inherited:
            raise FileError(f"{self.path.parent} was opened before a fork. Open it again in the new process.")

    def _refuse_if_changed(self) -> None:
        """A reader that could not use the log has to believe that nothing is written; so look."""
        if self._frozen and seen_from_outside(self.path) != self._seen:
            raise FileError(f"{self.path} was opened where nothing could be written, and has changed. Open it again.")

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """One version of the database for as long as the block lasts."""
        self._refuse_in_a_fork()
        with self.lock, translated(self.path):
            if self.connection.in_transaction:
                yield self.connection
                return
            self._refuse_if_changed()
            self.connection.execute("BEGIN")
            try:
                yield self.connection
                self._refuse_if_changed()
            finally:
                self._end("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """One transaction: on disk when the block is left, undone when it fails."""
        if self.read_only:
            raise FileError(f"{self.path.parent} was opened for reading only. Open it without read_only=True.")
        self._refuse_in_a_fork()
        with self.lock, translated(self.path):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            finally:
                self._end("ROLLBACK")

    def checkpoint(self) -> bool:
        """Move the log into the database and empty it; False where a reader was in the way."""
        with self.lock, translated(self.path):
            busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
            return not busy

    def vacuum(self) -> None:
        """Write the database anew, without free pages."""
        with self.lock, translated(self.path):
            self.connection.execute("VACUUM")

    def close(self) -> None:
        """Let go of the file."""
        with self.lock, translated(self.path):
            self.connection.close(force=True)

    def _end(self, how: str) -> None:
        try:
            if self.connection.in_transaction:
                self.connection.execute(how)
        except apsw.Error:  # the error that led here is the one to tell
            pass


@cache
def _page_checksums() -> str | None:
    """The name of the VFS that checks pages; None where this apsw comes without it."""
    if not apsw.sqlite_extra.has("cksumvfs"):
        return None
    apsw.sqlite_extra.load(apsw.Connection(":memory:"), "cksumvfs")
    return "cksmvfs"


def _connect(path: Path, read_only: bool, create: bool) -> tuple[apsw.Connection, bool]:
    """A connection, and whether it has to believe that nobody writes."""
    if network := network_kind(path.parent):
        raise FileError(f"{path.parent} is on a network drive ({network}), where a log is not safe. Use a local disk.")
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    if create:
        flags |= apsw.SQLITE_OPEN_CREATE
    vfs = _page_checksums()
    connection, way = apsw.Connection(str(path), flags, vfs=vfs), None
    try:
        connection.execute("PRAGMA schema_version").get  # noqa: B018
    except (apsw.CantOpenError, apsw.IOError) as error:
        way = _other_way(path, error) if read_only else None
        connection.close(force=True)
        if way is None:
            raise
        connection = apsw.Connection(f"file:{quote(str(path))}?{way}=1", flags | apsw.SQLITE_OPEN_URI, vfs=vfs)
        connection.execute("PRAGMA schema_version").get  # noqa: B018
    return connection, way == "immutable"


def _other_way(path: Path, error: apsw.Error) -> str | None:
    """How a reader can open what it cannot write beside; None where it cannot."""
    if isinstance(error, apsw.IOError):  # no room for the index of the log: keep it in memory
        return "readonly_shm" if vars(error)["extendedresult"] in NO_ROOM_FOR_INDEX else None
    return "immutable" if not seen_from_outside(path)[1] else None  # no log: nothing changes, or `reading` notices


def seen_from_outside(path: Path) -> tuple[int, int]:
    """When a database was last written, and the size of its log."""
    log = path.with_name(path.name + "-wal")
    return path.stat().st_mtime_ns, log.stat().st_size if log.exists() else 0


def network_kind(folder: Path) -> str | None:
    """The kind of network drive a folder is on; None for a local one, or where that cannot be known."""
    try:
        mounts = Path("/proc/self/mounts").read_text(errors="replace").splitlines()
        place = folder.resolve()
    except OSError:
        return None
    best, kind = -1, None
    for line in mounts:
        _, point, found, *_ = [*line.split(" "), "", "", ""]
        point = point.replace("\\040", " ")
        if len(point) > best and (place.is_relative_to(point)):
            best, kind = len(point), found
    return kind if kind in NETWORK else None


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turns what SQLite says into what a person can act on."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError, apsw.FormatError) as error:
        raise CorruptFile(f"{path} is damaged ({error}). Restore the collection from a backup.") from error
    except apsw.FullError as error:
        raise FileError(f"the disk of {path} is full. Nothing was changed; make room and try again.") from error
    except (apsw.BusyError, apsw.LockedError) as error:
        raise FileError(f"{path} is busy: another process holds it ({error}). Try again.") from error
    except (apsw.ReadOnlyError, apsw.PermissionsError, apsw.CantOpenError, apsw.ProtocolError) as error:
        cure = "Check that the folder is there and may be written to"
        raise FileError(f"{path} cannot be opened or written ({error}). {cure}.") from error
    except apsw.IOError as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:
            raise CorruptFile(f"{path}: a page's checksum is wrong. Restore the collection from a backup.") from error
        cure = "Check the disk and its free space, then try again; what was acknowledged is kept"
        raise FileError(f"{path} could not be read or written ({error}). {cure}.") from error
    except apsw.ConnectionClosedError as error:
        raise FileError(f"the collection {path.parent} was closed. Open it again.") from error
    except (apsw.SQLError, apsw.MismatchError, apsw.SchemaChangeError) as error:
        raise CorruptFile(f"{path} is not as a collection's should be ({error}). Restore it from a backup.") from error
    except apsw.Error as error:
        what = f"{type(error).__name__}: {error}"
        raise FileError(f"{path} cannot be used ({what}). Try again; if it stays so, verify the collection.") from error
