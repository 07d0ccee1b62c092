"""What the machine offers, on systems that say and on those that do not."""

import os

from bitscale.machine import cores


def test_cores_where_the_system_says():
    assert 1 <= cores() <= os.cpu_count()


def test_cores_where_it_does_not(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert cores() == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1
