"""Trying again: as long as it is worth it, and so many times."""

import pytest

from bitscale.collection.store.again import TRIES, again


def failing(times, error=KeyError):
    """Work that fails so often, and what it was called with."""
    calls = []

    def work():
        calls.append(len(calls))
        if len(calls) <= times:
            raise error(len(calls))
        return "done"

    return work, calls


@pytest.mark.parametrize("times", [0, 1, TRIES - 1])
def test_what_works_in_the_end_is_returned(times):
    work, calls = failing(times)
    assert again(work, KeyError) == "done"
    assert len(calls) == times + 1


def test_the_last_error_comes_out():
    work, calls = failing(TRIES)
    with pytest.raises(KeyError, match=str(TRIES)):
        again(work, KeyError)
    assert len(calls) == TRIES


def test_other_errors_and_hopeless_ones_come_out_at_once():
    work, calls = failing(1, ValueError)
    with pytest.raises(ValueError, match="1"):
        again(work, KeyError)
    other, more = failing(1)
    with pytest.raises(KeyError):
        again(other, KeyError, overtaken=lambda: False)
    assert len(calls) == len(more) == 1
