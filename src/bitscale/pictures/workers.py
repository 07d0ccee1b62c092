"""Decoding in worker processes: a picture that kills, hangs or bursts its worker costs that picture and nothing else.

One thread serves each worker. It keeps a few paths ahead in the pipe, counts the seconds of each, and replaces the
worker when it dies. Results come out in the order of the paths; how far decoding runs ahead of whoever reads is
bounded, and with it memory.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from bitscale.data.child import CURE, Child
from bitscale.data.decode import AS_IT_IS, LIMITS, Form, Limits, Picture
from bitscale.errors import DataError, InputError, UnreadablePicture

Result = Picture | UnreadablePicture

AHEAD = 32  # pictures sent to a worker before the first of them is answered
_PIPE = 49_152  # bytes of paths that may wait in a pipe: less than pipes hold, so that sending never blocks
_HELD = 96 << 20  # bytes of decoded pictures that may wait to be read
_STARTS = 5  # workers killed in a row before they had begun
_NAP = 0.01  # seconds, at most, between looks at a worker's answers


def decode_files(
    paths: Sequence[str],
    form: Form = AS_IT_IS,
    *,
    workers: int | None = None,
    limits: Limits = LIMITS,
) -> Generator[Result, None, None]:
    """Every file decoded, or why not, in order. Close the iterator (or use it up) and no process is left."""
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1. Got {workers}.")
    n_workers = min(workers or cores(), -(-len(paths) // 2))
    run = _Run(paths, _window(form, n_workers), n_workers)
    threads = [threading.Thread(target=_serve, args=(run, form, limits), daemon=True) for _ in range(n_workers)]
    try:
        for thread in threads:
            thread.start()
        yield from run
    finally:
        run.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def cores() -> int:
    """Processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _window(form: Form, n_workers: int) -> int:
    """How many pictures may be under way or waiting to be read."""
    each = prod(form.size) * form.channels if form.size else _HELD // 8
    return min(max(_HELD // each, n_workers * 2, 4), 4096)


class _Run:
    """The paths to decode, handed out in order, and the results, given out in order."""

    def __init__(self, paths: Sequence[str], window: int, n_workers: int) -> None:
        self.paths, self.window, self.n_workers = paths, window, n_workers
        self.taken = self.read = 0
        self.results: dict[int, Result] = {}
        self.workers: set[Child] = set()
        self.error: BaseException | None = None
        self.stopped = False
        lock = threading.Lock()
        self.room, self.ready = threading.Condition(lock), threading.Condition(lock)

    def take(self, most: int, *, wait: bool) -> list[int]:
        """The next rows to decode: none when all are taken, or, unless `wait`, when there is no room."""
        with self.room:
            while wait and not self.stopped and self.taken < len(self.paths) and self._free() < 1:
                self.room.wait()
            left = len(self.paths) - self.taken
            share = max(left // (2 * self.n_workers), 1)  # so that all workers end at about the same time
            n = 0 if self.stopped else max(min(most, share, left, self._free()), 0)
            self.taken += n
            return list(range(self.taken - n, self.taken))

    def _free(self) -> int:
        return self.read + self.window - self.taken

    def put(self, results: Mapping[int, Result]) -> None:
        """What became of some rows."""
        with self.ready:
            self.results.update(results)
            if self.read in self.results:
                self.ready.notify()

    def fail(self, error: BaseException) -> None:
        """Let whoever reads the results meet this error."""
        with self.ready:
            self.error = self.error or error
            self.ready.notify()

    def __iter__(self) -> Iterator[Result]:
        while self.read < len(self.paths):
            with self.ready:
                while self.read not in self.results and self.error is None:
                    self.ready.wait()
                if self.error is not None:
                    raise self.error
                some = []
                while self.read in self.results:
                    some.append(self.results.pop(self.read))
                    self.read += 1
                self.room.notify_all()
            yield from some

    def enter(self, worker: Child) -> None:
        """A worker to end when all is stopped."""
        with self.room:
            self.workers.add(worker)
            if self.stopped:
                worker.process.kill()

    def leave(self, worker: Child) -> None:
        """A worker that has ended."""
        with self.room:
            self.workers.discard(worker)

    def stop(self) -> None:
        """Let the threads come to their end, whatever their workers are doing."""
        with self.room:
            self.stopped = True
            for worker in self.workers:
                worker.process.kill()
            self.room.notify_all()


def _serve(run: _Run, form: Form, limits: Limits) -> None:
    """Keep one worker busy until the paths are used up; a dead one is replaced."""
    waiting: deque[int] = deque()
    suspects: set[int] = set()
    starts = 0
    try:
        while waiting or run.taken < len(run.paths):
            if not waiting:
                waiting.extend(run.take(AHEAD, wait=True))
            if not waiting:
                return
            worker = Child(form, limits)
            run.enter(worker)
            try:
                if worker.greet():
                    starts = 0
                    _feed(run, worker, waiting, suspects, limits.seconds)
                elif (starts := starts + 1) == _STARTS:
                    raise DataError(f"{_STARTS} processes to decode pictures were killed while they started. {CURE}")
            finally:
                run.leave(worker)
                worker.end()
    except BaseException as error:
        if not run.stopped:
            run.fail(error)


def _feed(run: _Run, worker: Child, waiting: deque[int], suspects: set[int], seconds: float) -> None:
    """Send paths and pass on answers, until all are done or the worker is lost, which costs the first of `waiting`."""
    unsent, in_pipe = deque(waiting), 0
    pace, at = 0.0, time.monotonic()  # seconds a picture, about
    while True:
        if len(waiting) <= AHEAD // 2:
            fresh = run.take(AHEAD - len(waiting), wait=not waiting)
            waiting.extend(fresh)
            unsent.extend(fresh)
        if not waiting:
            return
        chunk: list[str] = []
        while unsent and (in_pipe + _bytes(run.paths[unsent[0]]) < _PIPE or not (in_pipe or chunk)):
            chunk.append(run.paths[unsent.popleft()])
            in_pipe += _bytes(chunk[-1])
        if chunk:
            worker.send(chunk)
        time.sleep(min(pace * len(waiting) / 4, _NAP))  # to be woken for some answers and not for each
        try:
            frames = worker.receive(seconds)
            answers = {row: _result(run.paths[row], *frame) for row, frame in zip(waiting, frames, strict=False)}
        except (EOFError, TimeoutError, ValueError, KeyError, TypeError) as error:  # dead, hung, or out of its mind
            _lost(run, worker, waiting, suspects, error)
            return
        run.put(answers)
        for row in answers:
            waiting.popleft()
            in_pipe -= _bytes(run.paths[row])
        before, at = at, time.monotonic()
        pace = 0.8 * pace + 0.2 * (at - before) / len(answers)


def _bytes(path: str) -> int:
    """At most what a path takes in JSON."""
    return 12 * len(path) + 64


def _lost(run: _Run, worker: Child, waiting: deque[int], suspects: set[int], error: Exception) -> None:
    """A worker hung or died over the first of `waiting`; after one death it may be innocent and is tried once more."""
    if isinstance(error, TimeoutError):
        reason = "took longer to decode than a picture may. It is damaged, or its disk is slow."
    elif waiting[0] in suspects:
        reason = f"ended the process that decoded it ({worker.end() or 'its answer made no sense'}). It is damaged."
    else:
        suspects.add(waiting[0])
        return
    row = waiting.popleft()
    run.put({row: UnreadablePicture(run.paths[row], reason)})


def _result(path: str, facts: dict[str, Any], payload: bytes) -> Result:
    if "reason" in facts:
        return UnreadablePicture(path, facts["reason"], facts["lasting"])
    pixels = np.frombuffer(payload, np.uint8).reshape(facts.pop("shape"))
    return Picture(pixels, bytes.fromhex(facts.pop("content")), **facts)
