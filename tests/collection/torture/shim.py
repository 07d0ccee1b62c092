"""Builds the shim, tells it what to do, and reads what it recorded."""

import ctypes
import enum
import hashlib
import os
import struct
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
HEAD = struct.Struct("<IIIIQqQ")


class Kind(enum.IntEnum):
    """The steps the shim sees, as numbered there."""

    CREATE = 0
    CLEAR = 1
    WRITE = 2
    TRUNCATE = 3
    ALLOCATE = 4
    SYNC = 5
    RENAME = 6
    LINK = 7
    UNLINK = 8
    MKDIR = 9
    RMDIR = 10
    OPEN = 11  # for reading
    READ = 12
    MARK = 13  # an acknowledgement
    EDIT = 14  # opening what is there, for writing


OPENS = frozenset({Kind.OPEN, Kind.EDIT, Kind.CREATE, Kind.CLEAR})
CHANGES = frozenset(Kind) - {Kind.OPEN, Kind.EDIT, Kind.READ, Kind.MARK}  # what a crash can fall between
ALLOCATIONS = frozenset({Kind.CREATE, Kind.WRITE, Kind.ALLOCATE, Kind.MKDIR, Kind.LINK, Kind.SYNC})  # may lack space
ACTIONS = {"count": 0, "die": 1, "tear": 2, "fail": 3, "shorten": 4}


@dataclass(frozen=True)
class Orders:
    """What the shim does: `action` at step `at` (counted from 1) of the given kinds below `folder`."""

    folder: str
    action: str = "count"
    at: int = 0
    error: int = 0
    sticky: bool = False  # fail from there on
    kinds: frozenset = CHANGES
    only: str = ""  # count only paths with this text
    log: str = ""  # record every step here


@dataclass(frozen=True)
class Step:
    """One recorded step; `name` and `other` are below the folder, `offset` is a size where one was set."""

    kind: Kind
    inode: int
    offset: int
    name: str
    other: str
    data: bytes


class Board(ctypes.Structure):
    """How far the armed process came: shared memory, so that the process that forked it reads it after its death."""

    _fields_ = (("steps", ctypes.c_long), ("hits", ctypes.c_long), ("last", ctypes.c_char * 480))


def build() -> Path:
    """The compiled shim, built once for each version of its source; many test processes may ask at once."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"bitscale-shim-{os.getuid()}-{digest}"
    library = folder / "shim.so"
    if not library.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        partial = folder / f"{os.getpid()}.so"
        flags = ["-shared", "-fPIC", "-O2", "-U_FORTIFY_SOURCE", "-o", str(partial)]
        subprocess.run([os.environ.get("CC", "cc"), str(SOURCE), *flags, "-lpthread"], check=True)
        partial.replace(library)
    return library


def arm(orders: Orders) -> None:
    """Start watching this process, which must run with the shim preloaded."""
    ctypes.CDLL(None).shim_arm(
        os.fsencode(orders.folder),
        sum(1 << kind for kind in orders.kinds),
        os.fsencode(orders.only),
        ACTIONS[orders.action],
        ctypes.c_long(orders.at),
        orders.error,
        int(orders.sticky),
        os.fsencode(orders.log),
    )


def disarm() -> None:
    """Let everything pass from here on."""
    ctypes.CDLL(None).shim_disarm()


def mark(text: str) -> None:
    """Note in the log that something was acknowledged."""
    ctypes.CDLL(None).shim_mark(text.encode())


def board() -> Board:
    """The board of this process and its forks."""
    library = ctypes.CDLL(None)
    library.shim_board.restype = ctypes.POINTER(Board)
    return library.shim_board().contents


def read_log(path: Path) -> list[Step]:
    """All whole records of a log."""
    data, at, steps = path.read_bytes(), 0, []
    while at + HEAD.size <= len(data):
        kind, one, two, _, inode, offset, size = HEAD.unpack_from(data, at)
        at += HEAD.size
        if at + one + two + size > len(data):
            break
        name, other = os.fsdecode(data[at : at + one]), os.fsdecode(data[at + one : at + one + two])
        at += one + two
        steps.append(Step(Kind(kind), inode, offset, name, other, data[at : at + size]))
        at += size
    return steps
