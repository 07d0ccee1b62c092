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


def test_heaps_where_there_is_nothing_to_tell(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not keep_few_heaps()
