"""Processes seen from outside, for tests: which workers one has started and are still there."""

from contextlib import suppress
from pathlib import Path


def children(pid: int | str = "self") -> list[int]:
    """Workers that a process has started and not yet seen the end of."""
    started = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread may end meanwhile
            started += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in started if is_worker(child)]


def is_worker(pid: int) -> bool:
    """Whether a process decodes pictures, or has just been forked to do so; other tests have children of their own."""
    with suppress(FileNotFoundError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        return not words or b"bitscale.pictures.worker" in words
    return False


def alive(pid: int) -> bool:
    """Whether a process still runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
