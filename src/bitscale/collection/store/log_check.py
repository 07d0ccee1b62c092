"""Looks for damage in SQLite's write-ahead log that SQLite itself would take for the log's end.

SQLite reads its log up to the first frame whose checksum is wrong: right for a torn write at the end, but a bit that
rots in the middle would silently undo every commit behind it. Checksums run on from frame to frame, and each commit is
synced before the next begins. So a wrong frame with two commits behind it that follow soundly on one another, or with
one and being itself the end of a commit, is damage; within the very last commit it cannot be told from a write that
power cut short.
A wrong header is damage, unless the database holds all the log does: then the log was just being begun anew.
"""

from __future__ import annotations

import struct
import time
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitscale.collection.database import PAGE, RESERVED
from bitscale.errors import CorruptFile, FileError

U32 = NDArray[np.uint32]
Flags = NDArray[np.bool_]
HEADER = struct.Struct(">8I")  # magic, format, page size, checkpoint, salt 1, salt 2, checksum 1, checksum 2
FRAME = 24  # bytes before each page: page, size after commit (0: none), salts, checksums
MAGIC = 0x377F0682  # the last bit: checksums by big-endian words
LOOKS = 3  # a writer may be writing just now: damage stays


def check_log(database: Path) -> None:
    """Raise CorruptFile when the log beside `database` is damaged before its end."""
    path = database.with_name(database.name + "-wal")
    for look in range(LOOKS):
        try:
            data = path.read_bytes()
            if not damaged(data, database):
                return
        except FileNotFoundError:
            return
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror}. Check the disk, and try again.") from error
        if look < LOOKS - 1:
            time.sleep(0.02)
    raise CorruptFile(
        f"{path} is damaged before its end: changes behind the damage would be lost. Restore the collection from a "
        "backup; or move this file away, to go on without any change it holds."
    )


def damaged(data: bytes, database: Path | None = None) -> bool:
    """Whether sound commits stand behind an unsound frame, or behind an unsound header and not in the database."""
    n = (len(data) - HEADER.size) // (FRAME + PAGE)
    if n < 1:
        return False
    head = HEADER.unpack(data[: HEADER.size])
    raw = np.frombuffer(data, np.uint8, n * (FRAME + PAGE), HEADER.size).reshape(n, -1)
    fields = raw[:, :FRAME].copy().view(">u4").astype(np.uint32)  # (n, 6)
    order = ">u4" if head[0] & 1 else "<u4"
    start = summed(np.frombuffer(data[:24], order).astype(np.uint32)[None], np.zeros((1, 2), np.uint32))[0]
    if head[0] & ~1 == MAGIC and head[2] == PAGE and tuple(start.tolist()) == head[6:]:
        ours = (fields[:, 2:4] == np.array(head[4:6], np.uint32)).all(axis=1)
        return _commits_behind(_follow(raw, fields, head, order) & ours, fields[:, 1] != 0)
    for order in ("<u4", ">u4"):  # the header cannot be asked
        ends = np.flatnonzero(_follow(raw, fields, head, order) & (fields[:, 1] != 0))
        if len(ends):
            ours = (fields[:, 2:4] == fields[ends[0], 2:4]).all(axis=1)
            return database is None or not _held(database, raw[ours], fields[ours])
    return False


def _follow(raw: NDArray[np.uint8], fields: U32, head: tuple[int, ...], order: str) -> Flags:
    """Which frames carry the checksum that follows from the one stored before them."""
    words = np.concatenate([raw[:, :8], raw[:, FRAME:]], axis=1).view(order).astype(np.uint32)
    before = np.concatenate([np.array([head[6:]], np.uint32), fields[:-1, 4:]])
    found = summed(words, before)
    again = np.concatenate([before[:1], found[:-1]])  # should a checksum itself be what was hit
    follows: Flags = (found == fields[:, 4:]).all(axis=1) | (summed(words, again) == fields[:, 4:]).all(axis=1)
    return follows


def _commits_behind(sound: Flags, commits: Flags) -> bool:
    """Whether one commit follows soundly on another behind an unsound frame, or on one that such a frame ended.

    Commits that do not follow on one another prove nothing: a commit whose sync failed is written over by the next, and
    what a longer one leaves stays behind the log's end.
    """
    seen_damage, run = False, 0
    for follows, commit in zip(sound.tolist(), commits.tolist(), strict=True):
        if not follows:
            seen_damage, run = True, int(commit)
        elif seen_damage and commit:
            run += 1
            if run == 2:
                return True
    return False


def _held(database: Path, frames: NDArray[np.uint8], fields: U32) -> bool:
    """Whether a database has taken in what these frames hold: then a new header was being written when power failed."""
    last = int(np.flatnonzero(fields[:, 1])[-1])
    newest = {int(number): at for at, number in enumerate(fields[: last + 1, 0])}
    with database.open("rb") as file:
        for number, at in newest.items():
            if number <= fields[last, 1]:
                file.seek((number - 1) * PAGE)
                content = PAGE - RESERVED  # the page's checksum is added on its way into the database
                if file.read(content) != frames[at, FRAME : FRAME + content].tobytes():
                    return False
    return True


def summed(words: U32, start: U32) -> U32:
    """SQLite's running checksum over rows of 32-bit words (n, 2 m), begun at (n, 2).

    s0 += x0 + s1; s1 += x1 + s0, pair by pair: linear, so each word's part in the result is a fixed factor.
    """
    factors, power = _factors(words.shape[1] // 2)
    with np.errstate(over="ignore"):
        own = np.stack([(words * factors[:, i]).sum(axis=1, dtype=np.uint32) for i in (0, 1)], axis=1)
        carried = np.stack([(start * power[i]).sum(axis=1, dtype=np.uint32) for i in (0, 1)], axis=1)
        found: U32 = own + carried
        return found


@cache
def _factors(pairs: int) -> tuple[U32, U32]:
    """Each word's factor in both sums (2 m, 2), and the factors of the sums begun with (2, 2)."""
    step = np.array([[1, 1], [1, 2]], object)  # (s0, s1) -> (s0 + s1, s0 + 2 s1)
    enter = np.array([[1, 0], [1, 1]], object)  # (x0, x1) -> what they add
    power = np.array([[1, 0], [0, 1]], object)
    factors = np.zeros((2 * pairs, 2), np.uint32)
    for pair in reversed(range(pairs)):
        factors[2 * pair : 2 * pair + 2] = ((power @ enter) % 2**32).T.astype(np.uint32)
        power = (power @ step) % 2**32
    return factors, power.astype(np.uint32)
