"""Decoding in worker processes: a picture that kills, hangs or bursts its worker costs that picture and nothing else.

One thread serves each worker. It keeps a few paths ahead in the pipe, counts the seconds of each, and replaces the
worker when it dies. Results come out in the order of the paths; how far decoding runs ahead of whoever reads is
bounded, and with it memory.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.data.decode import AS_IT_IS, LIMITS, Form, Limits, Picture
from bitscale.data.frames import Frame, pack, unpack, write
from bitscale.errors import DataError, UnreadablePicture

Result = Picture | UnreadablePicture

AHEAD = 32  # pictures sent to a worker before the first of them is answered
_PIPE = 32_768  # bytes of paths that may wait in a pipe: half of what pipes hold, so that sending never blocks
_HELD = 96 << 20  # bytes of decoded pictures that may wait to be read
_START_SECONDS = 60.0
_END_SECONDS = 5.0
_STARTS = 5  # workers killed in a row before they had begun
_CURE = "Is there memory enough? Take fewer workers."
_NAP = 0.01  # seconds, at most, between looks at a worker's answers
_SLICE = 1.0  # seconds: time in which this process itself was stopped counts as at most one
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from bitscale.data.decode_worker import main; main(sys.argv[2])"


def decode_files(
    paths: Sequence[str],
    form: Form = AS_IT_IS,
    *,
    workers: int | None = None,
    limits: Limits = LIMITS,
) -> Generator[Result, None, None]:
    """Every file decoded, or why not, in order. Close the iterator (or use it up) and no process is left."""
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
        self.workers: set[_Worker] = set()
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

    def enter(self, worker: _Worker) -> None:
        """A worker to end when all is stopped."""
        with self.room:
            self.workers.add(worker)
            if self.stopped:
                worker.process.kill()

    def leave(self, worker: _Worker) -> None:
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


class _Worker:
    """A worker process and the pipes to it."""

    def __init__(self, form: Form, limits: Limits) -> None:
        home = str(Path(__file__).resolve().parents[2])
        told = json.dumps({"form": asdict(form), "limits": asdict(limits)})
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, home, told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C and Ctrl-Z reach the parent alone
        )
        self.buffer = bytearray()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.to, self.back = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.poll = select.poll()
        self.poll.register(self.back, select.POLLIN)
        _widen(self.back)

    def greet(self) -> bool:
        """Wait until it is ready to work; False when it was killed before."""
        try:
            self.receive(_START_SECONDS)
            return True
        except (EOFError, TimeoutError) as error:
            if (self.process.poll() or 0) < 0:
                return False
            self.process.kill()
            assert self.process.stderr is not None
            said = (self.process.stderr.read() or b"").decode(errors="replace").strip().splitlines() or ["no word"]
            raise DataError(
                f"a process to decode pictures cannot be started ({said[-1]}). Is Pillow installed? {_CURE}"
            ) from error

    def send(self, paths: Sequence[str]) -> None:
        """Ask for pictures; a worker that is gone shows when its answer is waited for."""
        with suppress(BrokenPipeError):
            write(self.to, pack({"paths": list(paths)}))

    def receive(self, seconds: float) -> list[Frame]:
        """The answers there are, one at least; EOFError when the worker died, TimeoutError when it takes too long."""
        left = seconds
        while not (frames := list(iter(lambda: unpack(self.buffer), None))):
            start = time.monotonic()
            if self.poll.poll(1e3 * min(left, _SLICE)):
                block = os.read(self.back, 1 << 20)
                if not block:
                    with suppress(subprocess.TimeoutExpired):
                        self.process.wait(1.0)
                    raise EOFError
                self.buffer += block
                continue
            left -= min(time.monotonic() - start, _SLICE)
            if left <= 0:
                raise TimeoutError
        return frames

    def end(self) -> str:
        """End it, and say how it ended if it did so by itself."""
        code = self.process.poll()
        self.process.kill()
        with suppress(subprocess.TimeoutExpired):  # a process that waits for a dead disk cannot be ended
            self.process.wait(_END_SECONDS)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()
        if code is not None and code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return "" if code is None else f"ended with code {code}"


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
            try:
                worker = _Worker(form, limits)
            except OSError as error:
                raise DataError(f"a process to decode pictures cannot be started ({error}). {_CURE}") from error
            run.enter(worker)
            try:
                if worker.greet():
                    starts = 0
                    _feed(run, worker, waiting, suspects, limits.seconds)
                elif (starts := starts + 1) == _STARTS:
                    raise DataError(f"{_STARTS} processes to decode pictures were killed while they started. {_CURE}")
            finally:
                run.leave(worker)
                worker.end()
    except BaseException as error:
        if not run.stopped:
            run.fail(error)


def _feed(run: _Run, worker: _Worker, waiting: deque[int], suspects: set[int], seconds: float) -> None:
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
        except (EOFError, TimeoutError) as error:
            _lost(run, worker, waiting, suspects, error)
            return
        answers = {row: _result(run.paths[row], *frame) for row, frame in zip(waiting, frames, strict=False)}
        run.put(answers)
        for row in answers:
            waiting.popleft()
            in_pipe -= _bytes(run.paths[row])
        before, at = at, time.monotonic()
        pace = 0.8 * pace + 0.2 * (at - before) / len(answers)


def _bytes(path: str) -> int:
    """At most what a path takes in JSON."""
    return 6 * len(path) + 64


def _lost(run: _Run, worker: _Worker, waiting: deque[int], suspects: set[int], error: Exception) -> None:
    """A worker hung or died over the first of `waiting`; after one death it may be innocent and is tried once more."""
    if isinstance(error, TimeoutError):
        reason = "took longer to decode than a picture may. It is damaged, or its disk is slow."
    elif waiting[0] in suspects:
        reason = f"ended the process that decoded it ({worker.end()}). It is damaged."
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


def _widen(handle: int) -> None:
    """Let a pipe hold more, where the system can."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(handle, fcntl.F_SETPIPE_SZ, 1 << 20)
