"""Searching while other threads search for something else."""

import sys
from itertools import cycle

import pytest

from bitscale.collection import Collection, NewItem
from tests.collection.made import codes_for, hasher


@pytest.fixture
def photos(tmp_path):
    with Collection.create(tmp_path / "photos.bsc", hasher()) as made:
        made.apply(codes=codes_for(made, 30), items=[NewItem(metadata={"n": i % 3}) for i in range(30)])
        yield made


def test_a_filter_stays_that_of_its_condition_whatever_comes_between_two_lines(photos):
    """Another thread's condition, at every line of the place where the last filter is kept."""
    searcher, state, others = photos._searcher, photos._serving.refresh(), cycle(range(7))
    narrow, seen = type(searcher)._among, 0

    def line(frame, event, arg):  # nothing is traced within
        nonlocal seen
        if event == "line":
            seen += 1
            assert narrow(searcher, {"id": next(others)}, state)[1] == 1
        return line

    for _ in range(2):
        before = sys.gettrace()
        sys.settrace(lambda frame, event, arg: line if frame.f_code is narrow.__code__ else None)
        try:
            prepared, passing = narrow(searcher, {"n": 0}, state)
        finally:
            sys.settrace(before)
        assert passing == 10
        assert photos.index.search(codes_for(photos, 1), 30, where=prepared).ids[0].tolist().count(-1) == 20
    assert seen > 4
