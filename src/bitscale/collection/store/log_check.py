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
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from bitscale.collection.store.database import PAGE, RESERVED
from bitscale.errors import CorruptFile, cannot_read

U32 = NDArray[np.uint32]
Flags = NDArray[np.bool_]
HEADER = struct.Struct(">8I")  # magic, format, page size, checkpoint, salt 1, salt 2, checksum 1, checksum 2
FRAME = 24  # bytes before each page: page, size after commit (0: none), salts, checksums
WHOLE = FRAME + PAGE
MAGIC = 0x377F0682  # the last bit: checksums by big-endian words
LOOKS = 3  # a writer may be writing just now: damage stays
_PAIRS = (8 + PAGE) // 8  # of words that a frame's checksum runs over
AT_ONCE = 512  # frames read at a time: logs grow large while a reader holds on to them


def check_log(database: Path) -> None:
    """Raise CorruptFile when the log beside `database` is damaged before its end."""
    path = database.with_name(database.name + "-wal")
    for look in range(LOOKS):
        try:
            with path.open("rb") as log:
                if not damaged(log, database):
                    return
        except FileNotFoundError:
            return
        except OSError as error:
            raise cannot_read(path, error) from error
        if look < LOOKS - 1:
            time.sleep(0.02)
    raise CorruptFile(
        f"{path} is damaged before its end: changes behind the damage would be lost. Restore the collection from a "
        "backup; or move this file away, to go on without any change it holds."
    )


def damaged(log: BinaryIO, database: Path | None = None) -> bool:
    """Whether sound commits stand behind an unsound frame, or behind an unsound header and not in the database."""
    first = log.read(HEADER.size)
    if len(first) < HEADER.size:
        return False
    head = HEADER.unpack(first)
    order = ">u4" if head[0] & 1 else "<u4"
    start = summed(np.frombuffer(first[:24], order).astype(np.uint32)[None], np.zeros((1, 2), np.uint32))[0]
    if head[0] & ~1 == MAGIC and head[2] == PAGE and tuple(start.tolist()) == head[6:]:
        fields, follows = _frames(log, head, order)
        ours = (fields[:, 2:4] == np.array(head[4:6], np.uint32)).all(axis=1)
        return _commits_behind(follows & ours, fields[:, 1] != 0)
    for order in ("<u4", ">u4"):  # the header cannot be asked
        fields, follows = _frames(log, head, order)
        ends = np.flatnonzero(follows & (fields[:, 1] != 0))
        if len(ends):
            ours = (fields[:, 2:4] == fields[ends[0], 2:4]).all(axis=1)
            return database is None or not _held(database, log, fields, ours)
    return False


def _frames(log: BinaryIO, head: tuple[int, ...], order: str) -> tuple[U32, Flags]:
    """The fields of every frame (n, 6), and which frames carry the checksum that follows from the one before them."""
    all_fields, all_follow = [np.empty((0, 6), np.uint32)], [np.empty(0, np.bool_)]
    stored = computed = np.array([head[6:]], np.uint32)
    log.seek(HEADER.size)
    while len(data := log.read(WHOLE * AT_ONCE)) >= WHOLE:
        raw = np.frombuffer(data, np.uint8, len(data) // WHOLE * WHOLE).reshape(-1, WHOLE)
        fields = raw[:, :FRAME].copy().view(">u4").astype(np.uint32)
        sums = _page_sums(raw, order)
        before = np.concatenate([stored, fields[:-1, 4:]])
        due = sums + _carried(before, _PAIRS)
        again = sums + _carried(np.concatenate([computed, due[:-1]]), _PAIRS)  # a checksum itself may be hit
        all_fields.append(fields)
        all_follow.append((due == fields[:, 4:]).all(axis=1) | (again == fields[:, 4:]).all(axis=1))
        stored, computed = fields[-1:, 4:], due[-1:]
    return np.concatenate(all_fields), np.concatenate(all_follow)


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


def _held(database: Path, log: BinaryIO, fields: U32, ours: Flags) -> bool:
    """Whether a database has taken in what the log's frames hold: then a new header was being written when power
    failed."""
    places = np.flatnonzero(ours)
    last = int(np.flatnonzero(fields[places, 1])[-1])
    newest = {int(fields[at, 0]): at for at in places[: last + 1].tolist()}
    pages = int(fields[places[last], 1])
    content = PAGE - RESERVED  # the page's checksum is added on its way into the database
    with database.open("rb") as file:
        for number, at in newest.items():
            if number <= pages:
                file.seek((number - 1) * PAGE)
                log.seek(HEADER.size + at * WHOLE + FRAME)
                if file.read(content) != log.read(content):
                    return False
    return True


def summed(words: U32, start: U32) -> U32:
    """SQLite's running checksum over rows of 32-bit words (n, 2 m), begun at (n, 2).

    s0 += x0 + s1; s1 += x1 + s0, pair by pair: linear, so each word's part in the result is a fixed factor.
    """
    return _own(words, _factors(words.shape[1] // 2)[0]) + _carried(start, words.shape[1] // 2)


def _page_sums(raw: NDArray[np.uint8], order: str) -> U32:
    """The part of the checksum that each frame adds itself, by its first 8 bytes and its page."""
    factors = np.zeros((WHOLE // 4, 2), np.uint32)
    known = _factors(_PAIRS)[0]
    factors[:2], factors[FRAME // 4 :] = known[:2], known[2:]
    return _own(raw.view(order).astype(np.uint32, copy=False), factors)


def _own(words: U32, factors: U32) -> U32:
    sums: U32 = np.stack([np.einsum("ij,j->i", words, column) for column in np.ascontiguousarray(factors.T)], axis=1)
    return sums


def _carried(start: U32, pairs: int) -> U32:
    """The part of the starting checksum that remains after so many pairs of words."""
    power = _factors(pairs)[1]
    with np.errstate(over="ignore"):
        sums: U32 = np.stack([(start * power[i]).sum(axis=1, dtype=np.uint32) for i in (0, 1)], axis=1)
        return sums


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
