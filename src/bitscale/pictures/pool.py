"""Workers kept warm: started before they are needed, lent to one call after the other, ended together."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from typing import Any, Self

from bitscale.machine import cores
from bitscale.pictures.child import Child
from bitscale.pictures.decode import LIMITS, Limits
from bitscale.pictures.form import Form


class Pool:
    """Worker processes that wait for pictures; safe to use from several threads.

    After `close` it keeps no process: calls still work, each with workers of its own that end with it.
    """

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._begun: dict[str, tuple[Child, Mapping[str, Any]]] = {}  # by the picture that is about to be asked for
        self._owing: list[Child] = []  # at work on a picture that nobody asked for in the end
        self._closed = False
        self._owner = os.getpid()
        weakref.finalize(self, _end_all, self._idle, self._begun, self._owing, self._owner)

    def start(self, n: int = 1) -> None:
        """See to it that n workers are there or on their way, as many as there are cores at most; does not wait."""
        with self._lock:
            self._forget_dead()
            if not self._closed:
                while len(self._idle) < n and len(self._idle) < cores():
                    self._idle.append(Child(self.limits))

    def lend(self) -> Child:
        """A worker, warm where one is there."""
        with self._lock:
            self._forget_dead()
            if self._idle:
                return self._idle.pop()
        return Child(self.limits)

    def begin(self, path: str, form: Form) -> None:
        """Have a worker that waits, if one does, begin with a picture that is about to be searched for.

        `forget` it where it is not asked for in the end.
        """
        wanted = wanted_in(form, hashed=False)
        with self._lock:
            self._forget_dead()
            worker = next((one for one in self._idle if one.ready), None)
            if worker is not None and path not in self._begun:
                self._idle.remove(worker)
                self._begun[path] = worker, wanted
                worker.send([path], wanted)

    def take(self, path: str, wanted: Mapping[str, Any]) -> tuple[Child, bool]:
        """A worker, and whether it has begun with this picture already."""
        with self._lock:
            worker, begun = self._begun.get(path, (None, None))
            if worker is not None and begun == wanted:
                del self._begun[path]
                return worker, True
        self.forget(path)
        return self.lend(), False

    def forget(self, path: str) -> None:
        """Nobody will ask for a picture that was begun with."""
        with self._lock:
            worker, _ = self._begun.pop(path, (None, None))
            if worker is not None:
                self._owing.append(worker)

    def forget_all(self) -> None:
        """Nobody will ask for anything that was begun with."""
        for path in list(self._begun):
            self.forget(path)

    def give_back(self, worker: Child) -> None:
        """Keep a worker that has answered all it was asked; one too many is ended."""
        with self._lock:
            keep = not self._closed and os.getpid() == self._owner and (not self._idle or len(self._idle) < cores())
            if keep:
                self._idle.append(worker)
        if not keep:
            worker.end()

    def close(self) -> None:
        """End the workers; those lent end when they are given back."""
        with self._lock:
            self._closed = True
            _end_all(self._idle, self._begun, self._owing, self._owner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _forget_dead(self) -> None:
        """Leave out workers that died meanwhile, and all of them in a forked process: they are its parent's."""
        if os.getpid() != self._owner:
            self._idle.clear()
            self._begun.clear()
            self._owing.clear()
        for worker in list(self._owing):
            try:
                worker.receive(0.0)
            except TimeoutError:  # still at work
                continue
            except EOFError:
                worker.end()
            else:
                self._idle.append(worker)
            self._owing.remove(worker)
        for worker in [one for one in self._idle if not one.alive]:
            self._idle.remove(worker)
            worker.end()


def wanted_in(form: Form, *, places: bool = False, hashed: bool = True) -> dict[str, Any]:
    """What a worker is told of how a picture is wanted."""
    return {"form": dict(vars(form)), "places": places, "hashed": hashed}


def _end_all(
    idle: list[Child], begun: dict[str, tuple[Child, Mapping[str, Any]]], owing: list[Child], owner: int
) -> None:
    if os.getpid() == owner:
        for worker in [*idle, *owing, *(worker for worker, _ in begun.values())]:
            worker.end()
    idle.clear()
    begun.clear()
    owing.clear()
