"""Trying again where a writer came in between: what was looked up is gone, and what took its place is there at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
TRIES = 10


def again(work: Callable[[], T], error: type[Exception], *, overtaken: Callable[[], bool] = lambda: True) -> T:
    """What `work` returns; after `error` it runs anew, TRIES times in all, as long as `overtaken` holds."""
    for _ in range(TRIES - 1):
        try:
            return work()
        except error:
            if not overtaken():
                raise
    return work()
