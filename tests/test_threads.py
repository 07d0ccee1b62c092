"""Work shared by threads: in order, the first error raised, and an interrupt at any step ends it."""

import _thread
import threading

import numpy as np
import pytest

import bitscale as bs
from bitscale.index import file
from bitscale.threads import ahead, on_threads
from tests.collection.torture.interrupts import ANYWHERE, interrupted_after

pytestmark = ANYWHERE


def test_everything_is_made_in_order_by_several_threads():
    met, seen = threading.Barrier(2, timeout=60), set()

    def work(part):
        if part < 2:
            met.wait()  # two are at work at once
        seen.add(threading.get_ident())
        return part * part

    assert on_threads(work, range(50), 2) == [part * part for part in range(50)]
    assert len(seen) == 2
    assert on_threads(work, [], 2) == []


def test_an_error_is_raised():
    with pytest.raises(ZeroDivisionError):
        on_threads(lambda part: 1 // part, [3, 0, 5], 2)


def test_where_the_system_gives_no_thread_the_caller_does_the_work(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    assert on_threads(str, [1, 2], 2) == ["1", "2"]
    assert list(ahead(str, [1, 2, 3], 2, 1)) == ["1", "2", "3"]


def test_parts_are_worked_on_ahead_in_order_and_no_further_than_asked_for():
    taken = []

    def parts():
        for part in range(10):
            taken.append(part)
            yield part

    made = ahead(lambda part: part * part, parts(), 2, 3)
    assert next(made) == 0
    assert taken == [0, 1, 2, 3]
    assert list(made) == [part * part for part in range(1, 10)]


def test_what_goes_wrong_ahead_is_raised_in_its_turn():
    made = ahead(lambda part: 6 // part, [3, 2, 0, 1], 2, 4)
    assert [next(made), next(made)] == [2, 3]
    with pytest.raises(ZeroDivisionError):
        next(made)


SHARED = {"at once": lambda parts: on_threads(abs, parts, 2), "ahead": lambda parts: ahead(abs, parts, 2, 1)}


@pytest.mark.parametrize("share", SHARED.values(), ids=SHARED)
def test_a_signal_at_any_step_ends_it(share):
    steps, beyond = 0, 0
    while beyond < 3:
        steps += 1
        made = []
        hit = interrupted_after(lambda made=made: made.extend(share([-1, -2, -3])), steps)
        assert hit or made == [1, 2, 3]
        beyond += not hit
    assert steps > 50


def test_a_signal_while_an_index_is_opened_is_an_interrupt_and_nothing_else(tmp_path, monkeypatch):
    """Its parts are checked by two threads, and here there are many parts."""
    monkeypatch.setattr(file, "CHUNK", 1 << 12)
    packed = np.random.default_rng(0).integers(0, 256, (5_000, 8), dtype=np.uint8)
    bs.ExactIndex(bs.Codes.from_packed(packed)).save(tmp_path / "x.bsi")
    steps, hits = 1, 0
    while interrupted_after(lambda: bs.ExactIndex.open(tmp_path / "x.bsi").close(), steps):
        steps, hits = steps + 37, hits + 1
    assert hits > 50
