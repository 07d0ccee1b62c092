"""The collection's SQLite: one connection, pages under checksums, and errors that name the cure.

apsw brings its own SQLite, new enough for a write-ahead log that two processes can trust.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import apsw

from bitscale.collection.store.connect import connect, seen_from_outside
from bitscale.collection.store.text_search import TEXT_SEARCH
from bitscale.collection.store.turn import Hold, Turn
from bitscale.errors import BitscaleError, CorruptFile, FileError, MustReopen

SAFE_WAL = 3_051_003  # before it a write-ahead log can be corrupted by two writers
BUSY_MILLISECONDS = 5_000
PAGE = 4_096  # bytes
RESERVED = 8  # bytes a page, for its checksum
CHECKPOINT_PAGES = 1_000
Read = TypeVar("Read")


class Database:
    """One connection to a collection's database; threads take turns, and find no transaction but their own."""

    def __init__(self, path: Path, *, read_only: bool = False, create: bool = False) -> None:
        self.path, self.read_only = path, read_only
        self.lock = Turn(self._leave_nothing_open)
        self._process = os.getpid()
        self._closed = False
        if apsw.SQLITE_VERSION_NUMBER < SAFE_WAL:
            raise FileError(f"SQLite {apsw.sqlite_lib_version()} is too old for a safe log. Upgrade apsw.")
        if not create and not path.is_file():
            raise FileError(f"{path} is missing: {path.parent} is no collection, or is incomplete.")
        self._connect(create)

    def _connect(self, create: bool = False) -> None:
        self._seen = seen_from_outside(self.path) if self.path.is_file() else (0, 0)
        with translated(self.path):
            self.connection, self._frozen = connect(self.path, self.read_only, create)
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
        for name, (function, arguments) in TEXT_SEARCH.items():
            self.connection.create_scalar_function(name, function, arguments, deterministic=True)
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
            raise MustReopen(f"{self.path.parent} was opened before a fork. Open it again in the new process.")

    def _refuse_if_changed(self) -> None:
        """A reader that could not use the log has to believe that nothing is written; so look."""
        if self._frozen and seen_from_outside(self.path) != self._seen:
            raise MustReopen(f"{self.path} was opened where nothing could be written, and has changed. Open it again.")

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """One version of the database for as long as the block lasts."""
        self._refuse_in_a_fork()
        with translated(self.path), self.lock.hold() as hold:
            if self.connection.in_transaction:
                yield self.connection
                return
            self._refuse_if_changed()
            try:
                self.connection.execute("BEGIN")
                yield self.connection
                self._refuse_if_changed()
            finally:
                self._roll_back(hold)

    def at_once(self, read: Callable[[apsw.Connection], Read]) -> Read:
        """Run one statement that reads: a version by itself, without beginning and ending a transaction around it."""
        self._refuse_in_a_fork()
        with translated(self.path), self.lock:
            self._refuse_if_changed()
            return read(self.connection)

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """One transaction: on disk when the block is left, undone when it fails."""
        if self.read_only:
            raise FileError(f"{self.path.parent} was opened for reading only. Open it without read_only=True.")
        self._refuse_in_a_fork()
        with translated(self.path), self.lock.hold() as hold:
            try:
                self.connection.execute("BEGIN IMMEDIATE")
                yield self.connection
                self.connection.execute("COMMIT")
            finally:
                self._roll_back(hold)

    def checkpoint(self) -> bool:
        """Move the log into the database and empty it; False where a reader was in the way."""
        with translated(self.path), self.lock:
            busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
            return not busy

    def vacuum(self) -> None:
        """Write the database anew, without free pages, over a file in its own folder that has no name.

        That takes room on the disk for a second copy, and little memory.
        """
        with translated(self.path), self.lock, _temporary_files_in(self.path.parent):
            self.connection.execute("PRAGMA temp_store = FILE")
            try:
                self.connection.execute("VACUUM")
            finally:
                self.connection.execute("PRAGMA temp_store = MEMORY")

    def close(self) -> None:
        """Let go of the file."""
        with translated(self.path), self.lock:
            self._closed = True
            self.connection.close(force=True)

    def set_right(self) -> None:
        """After an interrupt: let go of the locks, and of a transaction that is still open."""
        _TEMPORARY.abandon()
        self.lock.abandon()
        with self.lock:
            pass

    def _roll_back(self, hold: Hold) -> None:
        """Undo a transaction that is still open; one begun after this hold was given up belongs to another call."""
        try:
            if hold.counts and self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
        except apsw.Error:  # the error that led here is the one to tell
            pass

    def _leave_nothing_open(self) -> None:
        """Whoever gets the lock finds no transaction. One is left over when an interrupt came before its end, or when a
        traceback that somebody keeps holds rows half read: they would be answered from that version for ever."""
        if self._closed or self.inherited:
            return
        try:
            if not self.connection.in_transaction and self.connection.txn_state() == apsw.SQLITE_TXN_NONE:
                return
        except apsw.ConnectionClosedError:  # an earlier attempt at what follows
            pass
        try:
            self.connection.close(force=True)
            self._connect()
        except (apsw.Error, BitscaleError) as error:
            raise MustReopen(
                f"{self.path.parent} was interrupted, and its database cannot be reached again ({error}). "
                "What was acknowledged is on disk: close the collection, and open it again."
            ) from error


_TEMPORARY = Turn()  # SQLite has one such folder for the whole process


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    """Where SQLite makes its temporary files; a folder whose name is no text leaves it to SQLite."""
    setting = apsw.Connection(":memory:")
    try:
        name = os.fspath(folder).encode().decode()
    except UnicodeEncodeError:
        name = ""
    with _TEMPORARY.hold() as hold:
        setting.execute(f"PRAGMA temp_store_directory = {apsw.format_sql_value(name)}")
        try:
            yield
        finally:
            if hold.counts:
                setting.execute("PRAGMA temp_store_directory = ''")
            setting.close()


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
    except (apsw.NoMemError, apsw.TooBigError, apsw.RangeError) as error:
        raise FileError(f"{path}: more was asked for than SQLite can do ({error}). Ask for less at once.") from error
    except (apsw.SQLError, apsw.MismatchError, apsw.SchemaChangeError) as error:
        raise CorruptFile(f"{path} is not as a collection's should be ({error}). Restore it from a backup.") from error
    except apsw.Error as error:
        why = f"{type(error).__name__}: {error}"
        raise FileError(f"{path} cannot be used ({why}). Try again; if it stays so, verify the collection.") from error
