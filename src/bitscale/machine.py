"""The processor cores and the memory that this machine gives a process."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

M_ARENA_MAX, M_MMAP_THRESHOLD = -8, -3  # glibc's mallopt: heaps that threads may spread over; size of a large block
LARGE = 1 << 18  # bytes
CORES = "BITSCALE_CORES"  # set: take no more than so many, since other processes have the rest


def cores() -> int:
    """Processor cores this process may use."""
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get(CORES, "")
    return min(here, int(asked)) if asked.isdecimal() and int(asked) else here


def free_memory() -> int:
    """Bytes that may still be taken: what the system has, or less where the control group allows less."""
    import psutil

    left = _left_in_group()
    available = int(psutil.virtual_memory().available)
    return available if left is None else min(available, left)


def keep_few_heaps(n: int = 2) -> bool:
    """Have threads share a few heaps, and large blocks go back to the system. False where malloc cannot be told.

    glibc gives threads up to eight heaps a core, each of which keeps the most it ever held. Large blocks are taken from
    the system and given back to it, always: left alone, glibc moves that limit up with the first one that is freed, and
    later ones pile up in a heap whose end some small thing holds.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    return mallopt is not None and mallopt(M_ARENA_MAX, n) == 1 and mallopt(M_MMAP_THRESHOLD, LARGE) == 1


def _left_in_group() -> int | None:
    """Bytes left below a container's limit (cgroup v2), None without a limit; psutil does not look at it."""
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
        lines = (group / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # "max" is no number
        return None
    cached = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))  # given back when asked
    return limit - used + cached
