"""How often one asks: requests of a key or an address in a moving window, and failed keys of an address."""

from __future__ import annotations

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from bitscale.errors import InputError
from bitscale.server.answers import Refused

FAILURES = parse("20/minute")  # keys that are not valid, from one address


class Rates:
    """Counts, and refuses with 429 and the seconds to wait."""

    def __init__(self, rate: str) -> None:
        try:
            self._rate: RateLimitItem = parse(rate)
        except ValueError:
            raise InputError(f"a rate is a number a time, as 500/second or 10000/minute. Got {rate!r}.") from None
        self._storage = MemoryStorage()
        self._limiter = FixedWindowRateLimiter(self._storage)

    def check(self, who: str) -> None:
        """Count a request of somebody."""
        if not self._limiter.hit(self._rate, "requests", who):
            raise self._too_many(f"more than {self._rate} requests. Slow down.", self._rate)

    def failed(self, address: str) -> None:
        """Count a key that was not valid."""
        if not self._limiter.hit(FAILURES, "failures", address):
            raise self._too_many("too many keys that are not valid came from there. Wait a minute.", FAILURES)

    def clear(self) -> None:
        """Forget all counts."""
        self._storage.reset()

    def _too_many(self, message: str, rate: RateLimitItem) -> Refused:
        return Refused(429, message, "TooMany", {"Retry-After": str(max(int(rate.get_expiry()), 1))})
