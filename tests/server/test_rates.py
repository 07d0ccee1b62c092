"""Rates: so many requests of each within a time, and nothing kept of times that are over."""

import pytest

from bitscale.errors import InputError
from bitscale.server.answers import Refused
from bitscale.server.rates import Rates, Window


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("bitscale.server.rates.time.monotonic", lambda: now[0])
    return now


def test_each_has_a_count_of_its_own(clock):
    window = Window("3/second")
    assert [window.takes("a") for _ in range(4)] == [True, True, True, False]
    assert window.takes("b")
    clock[0] += 0.999
    assert not window.takes("a")
    clock[0] += 0.001
    assert window.takes("a")


def test_nothing_is_kept_of_times_that_are_over(clock):
    window = Window("1/minute")
    for who in range(1_000):
        assert window.takes(str(who))
    clock[0] += 60
    assert window.takes("x")
    assert len(window._counts) == 1


def test_who_asks_too_often_hears_how_long_to_wait(clock):
    rates = Rates("2/minute")
    for _ in range(2):
        rates.check("a")
    clock[0] += 42.5
    with pytest.raises(Refused) as refused:
        rates.check("a")
    assert refused.value.status == 429
    assert refused.value.headers["Retry-After"] == "18"
    rates.clear()
    rates.check("a")


def test_keys_that_are_not_valid_are_counted_apart(clock):
    rates = Rates("100/second")
    for _ in range(20):
        rates.failed("a")
    with pytest.raises(Refused):
        rates.failed("a")
    rates.check("a")


@pytest.mark.parametrize("rate", ["", "500", "0/second", "-1/second", "5/fortnight", "5/second ", "1e3/second"])
def test_what_is_no_rate_is_refused(rate):
    with pytest.raises(InputError, match="a rate is a number a time"):
        Rates(rate)
