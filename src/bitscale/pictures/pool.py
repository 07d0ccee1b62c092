"""Workers kept warm: started before they are needed, lent to one call after the other, ended together."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Self

from bitscale.machine import cores
from bitscale.pictures.child import Child
from bitscale.pictures.decode import LIMITS, Limits


class Pool:
    """Worker processes that wait for pictures; safe to use from several threads.

    After `close` it keeps no process: calls still work, each with workers of its own that end with it.
    """

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._closed = False
        self._owner = os.getpid()
        weakref.finalize(self, _end_all, self._idle, self._owner)

    def start(self, n: int = 1) -> None:
        """See to it that n workers are there or on their way, as many as there are cores at most; does not wait."""
        with self._lock:
            self._forget_dead()
            if not self._closed:
                self._idle += [Child(self.limits) for _ in range(min(n, cores()) - len(self._idle))]

    def lend(self) -> Child:
        """A worker, warm where one is there."""
        with self._lock:
            self._forget_dead()
            if self._idle:
                return self._idle.pop()
        return Child(self.limits)

    def give_back(self, worker: Child) -> None:
        """Keep a worker that has answered all it was asked; one too many is ended."""
        with self._lock:
            keep = not self._closed and os.getpid() == self._owner and len(self._idle) < cores()
            if keep:
                self._idle.append(worker)
        if not keep:
            worker.end()

    def close(self) -> None:
        """End the workers; those lent end when they are given back."""
        with self._lock:
            self._closed = True
            _end_all(self._idle, self._owner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget_dead(self) -> None:
        """Leave out workers that died meanwhile, and all of them in a forked process: they are its parent's."""
        if os.getpid() != self._owner:
            self._idle.clear()
        for worker in [one for one in self._idle if not one.alive]:
            self._idle.remove(worker)
            worker.end()


def _end_all(workers: list[Child], owner: int) -> None:
    if os.getpid() == owner:
        for worker in workers:
            worker.end()
    workers.clear()
