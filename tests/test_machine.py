"""What the machine offers, on systems that say and on those that do not."""

import ctypes
import os
import platform
import subprocess
import sys

from bitscale.machine import cores, keep_few_heaps


def test_cores_where_the_system_says():
    assert 1 <= cores() <= os.cpu_count()


def test_cores_where_it_does_not(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores() == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_heaps_are_few_where_the_library_can_be_told():
    told = "from bitscale.machine import keep_few_heaps; print(keep_few_heaps())"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(platform.libc_ver()[0] == "glibc")


LARGE_AND_SMALL = """
import sys, psutil, numpy as np
from bitscale.machine import keep_few_heaps
keep_few_heaps()
rows = np.ones(16 << 20, np.uint8)
del rows  # from here on glibc would take blocks of this size for small ones
used = psutil.Process().memory_info().rss
large, small = [], []
for _ in range(32):
    large.append(np.ones(1 << 20, np.uint8))
    small.append(np.ones(4096, np.uint8))  # stays, behind the large one
del large
print((psutil.Process().memory_info().rss - used) >> 20)
"""


def test_large_blocks_go_back_to_the_system():
    done = subprocess.run([sys.executable, "-c", LARGE_AND_SMALL], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 4


def test_heaps_where_there_is_nothing_to_tell(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_few_heaps()
