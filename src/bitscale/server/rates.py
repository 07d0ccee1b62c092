"""How often one asks: requests of a key or an address within a second, a minute or an hour, and failed keys."""

from __future__ import annotations

import math
import re
import time

from bitscale.errors import InputError
from bitscale.server.answers import Refused

RATE = re.compile(r"([1-9][0-9]{0,9})/(second|minute|hour)")
SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3_600.0}
FAILURES = "20/minute"  # keys that are not valid, from one address


class Rates:
    """Counts, and refuses with 429 and the seconds to wait. Only the event loop asks."""

    def __init__(self, rate: str) -> None:
        self._requests, self._failures = Window(rate), Window(FAILURES)

    def check(self, who: str) -> None:
        """Count a request of somebody."""
        if not self._requests.takes(who):
            raise self._requests.too_many(f"more than {self._requests.rate} requests. Slow down.")

    def failed(self, address: str) -> None:
        """Count a key that was not valid."""
        if not self._failures.takes(address):
            raise self._failures.too_many("too many keys that are not valid came from there. Wait a minute.")

    def clear(self) -> None:
        """Forget all counts."""
        self._requests, self._failures = Window(self._requests.rate), Window(FAILURES)


class Window:
    """So many of each within a time. Counts of a time that is over are dropped together: nothing of them is kept."""

    def __init__(self, rate: str) -> None:
        known = RATE.fullmatch(rate)
        if known is None:
            raise InputError(f"a rate is a number a time, as 500/second or 10000/minute. Got {rate!r}.")
        self.rate, self._most, self._seconds = rate, int(known[1]), SECONDS[known[2]]
        self._end, self._counts = 0.0, dict[str, int]()

    def takes(self, who: str) -> bool:
        """Count one, and say whether it is within the rate."""
        now = time.monotonic()
        if now >= self._end:
            self._end, self._counts = now + self._seconds, {}
        count = self._counts[who] = self._counts.get(who, 0) + 1
        return count <= self._most

    def too_many(self, message: str) -> Refused:
        """The refusal, with the seconds until counting begins anew."""
        left = max(math.ceil(self._end - time.monotonic()), 1)
        return Refused(429, message, "TooMany", {"Retry-After": str(left)})
