"""Who keeps SQLite's write-ahead log from ending: a reader that holds on to an old version, by its process.

A log can only begin anew when no reader needs what it holds; until then it grows with every commit. A reader's hold is
a lock on a byte of the log's index (`-shm`), which the operating system lists with its process.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

LARGE = 64 << 20  # bytes of a log worth a word
READ_MARKS = range(123, 128)  # the locks of readers, as SQLite's file format numbers them; the first: no log needed


def log_notice(database: Path) -> list[str]:
    """A sentence about a log that has grown large, and who holds it; none where there is nothing to tell."""
    log = database.with_name(database.name + "-wal")
    size = log.stat().st_size if log.exists() else 0
    if size < LARGE:
        return []
    holders = log_holders(database)
    cause = f"Held by {' and '.join(holders)}: " if holders else "If a reader holds on to it, "
    return [f"The write-ahead log {log} has {size / 1e6:,.0f} MB. {cause}close it or let it go on."]


def log_holders(database: Path) -> list[str]:
    """The processes that hold on to a version in the log, for people; Linux tells, elsewhere none are known."""
    try:
        status = os.stat(database.with_name(database.name + "-shm"))
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return []
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    pids = set()
    for line in lines:
        _, *words = line.replace("->", "").split()
        if len(words) >= 7 and words[2] == "READ" and words[4] == place and int(words[5]) in READ_MARKS[1:]:
            pids.add(int(words[3]))
    return [_named(pid) for pid in sorted(pids)]


def _named(pid: int) -> str:
    import psutil

    with suppress(psutil.Error):
        command = " ".join(" ".join(psutil.Process(pid).cmdline()[:3]).split())
        return f"process {pid} ({command:.80})" if command else f"process {pid}"
    return f"process {pid}"
