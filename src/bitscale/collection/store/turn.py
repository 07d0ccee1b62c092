"""A lock for threads to take turns with, which an interrupted holder can let go of as a whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress


class Turn:
    """A lock that its thread may take again; `first` runs each time a thread that did not have it has taken it."""

    def __init__(self, first: Callable[[], None] | None = None) -> None:
        self._lock = threading.RLock()
        self._first = first
        self.depth = 0  # how often its thread has taken it
        self.abandoned = 0  # how often all holds on it were given up

    def __enter__(self) -> Turn:
        self._lock.acquire()
        self.depth += 1
        if self.depth == 1 and self._first is not None:
            try:
                self._first()
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        self._lock.release()

    def hold(self) -> Hold:
        """To take it for a block that may be left late, as one in a generator is: see `Hold`."""
        return Hold(self)

    def abandon(self) -> None:
        """Let go of it as often as this thread has taken it: an interrupt may have come before it was given back."""
        if self._lock.acquire(blocking=False):  # ours, or nobody's; another thread's stays that thread's
            self.depth = 0
            self.abandoned += 1
            with suppress(RuntimeError):  # until it is not ours any more
                while True:
                    self._lock.release()


class Hold:
    """One hold on a turn. Given up by `abandon`, it counts no more, and gives nothing back when its block is left.

    An interrupt can leave a generator within its block for as long as somebody keeps the traceback. When that is
    dropped, at any moment and in any thread, the turn may be somebody else's.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._taken: tuple[int, int] | None = None

    @property
    def counts(self) -> bool:
        """Whether the turn is still held by this."""
        return self._taken == (self._turn.abandoned, threading.get_ident())

    def __enter__(self) -> Hold:
        self._turn.__enter__()
        self._taken = self._turn.abandoned, threading.get_ident()
        return self

    def __exit__(self, *_: object) -> None:
        if self.counts:
            self._turn.__exit__()
