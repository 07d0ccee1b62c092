"""Decoding in worker processes: a picture that kills, hangs or bursts its worker costs that picture and nothing else.

One thread serves each worker (the calling one, where there are but one or two pictures). It keeps a few paths ahead in
the pipe, counts the seconds of each, and replaces the worker when it dies. Results come out in the order of the paths;
how far decoding runs ahead of whoever reads is bounded, and with it memory. Items, queries and thumbnails all come this
way, under one set of limits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from math import prod
from queue import SimpleQueue
from typing import Any

import numpy as np

from bitscale.errors import DataError, InputError, UnreadablePicture
from bitscale.machine import cores
from bitscale.pictures.arrays import Picture
from bitscale.pictures.child import CURE, Child
from bitscale.pictures.decode import LIMITS, Limits, Small
from bitscale.pictures.exif import checked_exif
from bitscale.pictures.form import AS_IT_IS, Form
from bitscale.pictures.look import LOOK_BYTES
from bitscale.pictures.pool import Pool, wanted_in

Result = Picture | Small | UnreadablePicture

FEW = 2  # pictures that are waited for without threads: one worker decodes them
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
    pool: Pool | None = None,
    places: bool = False,
    hashed: bool = True,
) -> Generator[Picture | UnreadablePicture, None, None]:
    """Every file decoded, or why not, in order. Close the iterator (or use it up) and no process is left.

    workers   how many processes at most, one a core unless said
    limits    what one picture may cost
    pool      take processes from here instead, under its limits; they go on to wait there afterwards
    places    read from EXIF where a picture was taken, too
    hashed    whether the hash of each file's content is wanted
    """
    each = prod(form.size) * form.channels if form.size else _HELD // 8
    yield from _answers(paths, wanted_in(form, places=places, hashed=hashed), each, workers, limits, pool)


def draw_small(
    paths: Sequence[str],
    side: int,
    *,
    workers: int | None = None,
    limits: Limits = LIMITS,
    pool: Pool | None = None,
) -> Generator[Small | UnreadablePicture, None, None]:
    """A small copy of every file to look at, at most `side` pixels high and wide, or why not: as `decode_files`."""
    yield from _answers(paths, {"side": side}, 3 * side * side, workers, limits, pool)


def workers_for(n_pictures: int) -> int:
    """How many processes are worth while for so many pictures, as far as there are cores."""
    return n_pictures if n_pictures < 2 else min(cores(), -(-n_pictures // 2))


def _answers(
    paths: Sequence[str],
    wanted: Mapping[str, Any],
    each: int,
    workers: int | None,
    limits: Limits,
    pool: Pool | None,
) -> Generator[Any, None, None]:
    """What the workers answer, in order; `each` is about how many bytes an answer has."""
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1. Got {workers}.")
    n_workers = workers_for(len(paths)) if workers is None else min(workers, -(-len(paths) // 2))
    run = _Run(paths, wanted, min(max(_HELD // each, n_workers * 2, 4), 4096), n_workers)
    lender = Pool(limits) if pool is None else pool
    few = len(paths) <= FEW
    threads = [threading.Thread(target=_serve, args=(run, lender), daemon=True) for _ in range(0 if few else n_workers)]
    try:
        if few:
            _serve(run, lender)
        for thread in threads:
            thread.start()
        yield from run
    finally:
        if run.read < len(paths):
            run.stop()
        for thread in threads:
            if thread.is_alive():  # one whose start was interrupted finds nothing to do
                thread.join()
        if pool is None:
            lender.close()


class _Run:
    """The paths to decode, handed out in order, and the results, given out in order.

    Ctrl-C may come while the calling thread is anywhere in here. So it waits by a lock and by queues made in C:
    a Condition of Python's can be interrupted between its lock and its block, and then nobody ever gets in again.
    """

    def __init__(self, paths: Sequence[str], wanted: Mapping[str, Any], window: int, n_workers: int) -> None:
        self.paths, self.wanted, self.window, self.n_workers = paths, wanted, window, n_workers
        self.taken = self.read = 0
        self.results: dict[int, Result] = {}
        self.workers: set[Child] = set()
        self.error: BaseException | None = None
        self.stopped = False
        self._lock = threading.Lock()
        self._room: SimpleQueue[None] = SimpleQueue()  # a word for each thread that waits for room
        self._ready: SimpleQueue[None] = SimpleQueue()  # a word for the reader, if it waits
        self._crowded, self._hungry = 0, False  # how many threads wait for room; whether the reader waits

    def take(self, most: int, *, wait: bool) -> list[int]:
        """The next rows to decode: none when all are taken, or, unless `wait`, when there is no room."""
        while True:
            with self._lock:
                if not wait or self.stopped or self.taken >= len(self.paths) or self._free() >= 1:
                    left = len(self.paths) - self.taken
                    share = max(left // (2 * self.n_workers), 1)  # so that all workers end at about the same time
                    n = 0 if self.stopped else max(min(most, share, left, self._free()), 0)
                    self.taken += n
                    return list(range(self.taken - n, self.taken))
                self._crowded += 1
            self._room.get()

    def _free(self) -> int:
        return self.read + self.window - self.taken

    def put(self, results: Mapping[int, Result]) -> None:
        """Take the results of some paths."""
        with self._lock:
            self.results.update(results)
            if self.read in self.results:
                self._tell_reader()

    def fail(self, error: BaseException) -> None:
        """Let whoever reads the results meet this error."""
        with self._lock:
            self.error = self.error or error
            self._tell_reader()

    def _tell_reader(self) -> None:
        if self._hungry:
            self._hungry = False
            self._ready.put(None)

    def __iter__(self) -> Iterator[Result]:
        while self.read < len(self.paths):
            some = []
            with self._lock:
                if self.error is not None:
                    raise self.error
                while self.read in self.results:
                    some.append(self.results.pop(self.read))
                    self.read += 1
                self._hungry = not some
                crowded, self._crowded = (self._crowded, 0) if some else (0, self._crowded)
            for _ in range(crowded):
                self._room.put(None)
            if not some:
                self._ready.get()
            yield from some

    def enter(self, worker: Child) -> None:
        """A worker to end when all is stopped."""
        with self._lock:
            self.workers.add(worker)
            if self.stopped:
                worker.process.kill()

    def leave(self, worker: Child) -> None:
        """A worker that has ended."""
        with self._lock:
            self.workers.discard(worker)

    def stop(self) -> None:
        """Let the threads come to their end, whatever their workers are doing."""
        with self._lock:
            self.stopped = True
            for worker in self.workers:
                worker.process.kill()
        for _ in range(self.n_workers):
            self._room.put(None)


def _serve(run: _Run, pool: Pool) -> None:
    """Keep one worker busy until the paths are used up; a dead one is replaced."""
    waiting: deque[int] = deque()
    suspects: dict[int, float] = {}  # rows over which a worker died once, and the seconds they have left
    starts = 0
    try:
        while waiting or run.taken < len(run.paths):
            if not waiting:
                waiting.extend(run.take(AHEAD, wait=True))
            if not waiting:
                return
            worker, begun = pool.take(run.paths[waiting[0]], run.wanted)
            run.enter(worker)
            sound = False
            try:
                if worker.greet():
                    starts = 0
                    sound = _feed(run, worker, begun, waiting, suspects, pool.limits.seconds)
                elif (starts := starts + 1) == _STARTS:
                    raise DataError(f"{_STARTS} processes to decode pictures were killed while they started. {CURE}")
            finally:
                run.leave(worker)
                if sound and not run.stopped:
                    pool.give_back(worker)
                else:
                    worker.end()
    except BaseException as error:
        if not run.stopped:
            run.fail(error)


def _feed(
    run: _Run, worker: Child, begun: bool, waiting: deque[int], suspects: dict[int, float], seconds: float
) -> bool:
    """Send paths and pass on answers: True when all are done, False when the worker is lost, over the first waiting.

    begun   whether the worker was sent the first path already
    """
    unsent, in_pipe = deque(waiting), 0
    if begun:
        in_pipe = _bytes(run.paths[unsent.popleft()])
    pace, at = 0.0, time.monotonic()  # seconds a picture, about
    while True:
        if len(waiting) <= AHEAD // 2:
            fresh = run.take(AHEAD - len(waiting), wait=not waiting)
            waiting.extend(fresh)
            unsent.extend(fresh)
        if not waiting:
            return True
        chunk: list[str] = []
        while unsent and (in_pipe + _bytes(run.paths[unsent[0]]) < _PIPE or not (in_pipe or chunk)):
            chunk.append(run.paths[unsent.popleft()])
            in_pipe += _bytes(chunk[-1])
        if chunk:
            worker.send(chunk, run.wanted)
        if pace:
            time.sleep(min(pace * len(waiting) / 4, _NAP))  # to be woken for some answers and not for each
        left, asked = suspects.get(waiting[0], seconds), time.monotonic()
        try:
            frames = worker.receive(left)
            answers = {row: _result(run.paths[row], *frame) for row, frame in zip(waiting, frames, strict=False)}
        except (EOFError, TimeoutError, ValueError, KeyError, TypeError) as error:  # dead, hung, or out of its mind
            _lost(run, worker, waiting, suspects, left - (time.monotonic() - asked), error)
            return False
        run.put(answers)
        for row in answers:
            waiting.popleft()
            in_pipe -= _bytes(run.paths[row])
        before, at = at, time.monotonic()
        pace = 0.8 * pace + 0.2 * (at - before) / len(answers)


def _bytes(path: str) -> int:
    """At most what a path takes in JSON."""
    return 12 * len(path) + 64


def _lost(
    run: _Run, worker: Child, waiting: deque[int], suspects: dict[int, float], left: float, error: Exception
) -> None:
    """A worker hung or died over the first of `waiting`; after one death it may be innocent and is tried once more.

    left    seconds that picture still has
    """
    end = worker.end()  # a worker that is out of its mind is of no more use
    if isinstance(error, TimeoutError):
        reason = "took longer to decode than a picture may. It is damaged, or its disk is slow."
    elif waiting[0] in suspects:
        reason = f"ended the process that decoded it ({end or 'its answer made no sense'}). It is damaged."
    else:
        suspects[waiting[0]] = max(left, 0.0)
        return
    row = waiting.popleft()
    run.put({row: UnreadablePicture(run.paths[row], reason)})


def _result(path: str, header: dict[str, Any], payload: bytes) -> Result:
    if "reason" in header:
        return UnreadablePicture(path, header["reason"], header["lasting"])
    if "shape" not in header:
        return Small(payload, header["format"])
    pixels = np.frombuffer(payload, np.uint8, len(payload) - LOOK_BYTES).reshape(header.pop("shape"))
    header["exif"] = checked_exif(header["exif"])
    return Picture(pixels, bytes.fromhex(header.pop("content")), **header, look=payload[-LOOK_BYTES:])
