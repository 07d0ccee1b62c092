"""Connections to a collection's SQLite: pages under checksums, any name, also where nothing can be written.

SQLite's own `cksumvfs` keeps a checksum in every page: a damaged page is an error, never an answer.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from urllib.parse import quote

import apsw
import apsw.sqlite_extra

from bitscale.errors import FileError

NO_ROOM_FOR_INDEX = (apsw.SQLITE_IOERR_SHMOPEN, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_SHMMAP)
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "9p", "fuse.sshfs", "glusterfs", "ceph"})


@cache
def _page_checksums() -> str | None:
    """The name of the VFS that checks pages; None where this apsw comes without it."""
    if not apsw.sqlite_extra.has("cksumvfs"):
        return None
    apsw.sqlite_extra.load(apsw.Connection(":memory:"), "cksumvfs")
    return "cksmvfs"


def connect(path: Path, read_only: bool, create: bool) -> tuple[apsw.Connection, bool]:
    """A connection, and whether it reads without locks, so that nobody may write meanwhile."""
    if network := network_kind(path.parent):
        raise FileError(f"{path.parent} is on a network drive ({network}), where a log is not safe. Use a local disk.")
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    if create:
        flags |= apsw.SQLITE_OPEN_CREATE
    vfs = _page_checksums()
    name, flags = f"file:{quote(os.fsencode(path))}", flags | apsw.SQLITE_OPEN_URI  # so that any bytes can be a name
    connection, way = apsw.Connection(name, flags, vfs=vfs), None
    try:
        connection.execute("PRAGMA schema_version").get  # noqa: B018
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError) as error:
        way = _other_way(path, error) if read_only else None
        connection.close(force=True)
        if way is None:
            raise
        connection = apsw.Connection(f"{name}?{way}=1", flags, vfs=vfs)
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
        _, point, mounted, *_ = [*line.split(" "), "", "", ""]
        point = point.replace("\\040", " ")
        if len(point) > best and (place.is_relative_to(point)):
            best, kind = len(point), mounted
    return kind if kind in NETWORK else None
