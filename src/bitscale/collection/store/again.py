"""Trying again where a writer came in between: a file looked up is gone, and its successor is there already."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
TRIES = 10


def again(work: Callable[[], T], error: type[Exception], *, overtaken: Callable[[], bool] = lambda: True) -> T:
    """The result of `work()`; after `error` it is called again, TRIES times in all, as long as `overtaken()`."""
    for _ in range(TRIES - 1):
        try:
            return work()
        except error:
            if not overtaken():
                raise
    return work()
