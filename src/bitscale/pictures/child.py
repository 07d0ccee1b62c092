"""A worker process and the pipes to it: started, spoken to, listened to for so long and no longer, and ended."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bitscale.errors import DataError
from bitscale.pictures.decode import PATIENCE, Limits
from bitscale.pictures.frames import Frame, pack, unpack, write

CURE = "Is there memory enough? Take fewer workers."
MORE_FILES = "Close some, take fewer workers, or allow more of them: ulimit -n 1024"
_START_SECONDS = 60.0
_END_SECONDS = 5.0
_SLICE = 1.0  # seconds: time in which this process itself was stopped counts as at most one
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from bitscale.pictures.worker import main; main(sys.argv[2])"
_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_MEMORY = {  # bytes that glibc keeps for the next picture: to be given pages anew costs a third of a small one's time
    "MALLOC_MMAP_THRESHOLD_": str(8 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(16 << 20),
}


class Child:
    """A worker process and the pipes to it; starting it takes no time here, the wait is in `greet`."""

    def __init__(self, limits: Limits) -> None:
        home = str(Path(__file__).resolve().parents[2])
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, home, json.dumps(asdict(limits))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, **_THREADS, **_MEMORY},
                start_new_session=True,  # Ctrl-C and Ctrl-Z reach the parent alone
            )
        except OSError as error:
            cure = MORE_FILES if error.errno in (errno.EMFILE, errno.ENFILE) else CURE
            raise DataError(f"a process to decode pictures cannot be started ({error}). {cure}") from error
        self.buffer = bytearray()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.to, self.back = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.poll = select.poll()
        self.poll.register(self.back, select.POLLIN)
        self.ready = False
        _widen(self.back)

    def greet(self) -> bool:
        """Wait until it is ready to work; False when it was killed before."""
        if self.ready:
            return True
        try:
            self.receive(_START_SECONDS)
            self.ready = True
            return True
        except (EOFError, TimeoutError) as error:
            if (self.process.poll() or 0) < 0:
                return False
            self.process.kill()
            assert self.process.stderr is not None
            said = (self.process.stderr.read() or b"").decode(errors="replace").strip().splitlines() or ["no word"]
            raise DataError(
                f"a process to decode pictures cannot be started ({said[-1]}). Is Pillow installed? {CURE}"
            ) from error

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        return self.process.poll() is None

    def send(self, paths: Sequence[str], wanted: Mapping[str, Any]) -> None:
        """Ask for pictures; a worker that is gone shows when its answer is waited for."""
        with suppress(BrokenPipeError):
            write(self.to, pack({"paths": list(paths), "wanted": dict(wanted)}))

    def receive(self, seconds: float) -> list[Frame]:
        """The answers there are, one at least; EOFError when the worker died, TimeoutError when it takes too long.

        While others have the processors its time stands still, for so long as `PATIENCE` allows: on a busy machine
        good pictures are read, too.
        """
        left, patience = seconds, PATIENCE * seconds
        queued: float | None = None  # looked up only for a picture that takes longer than most
        while not (frames := list(iter(lambda: unpack(self.buffer), None))):
            start = time.monotonic()
            if self.poll.poll(1e3 * max(min(left, _SLICE), 0)):
                block = os.read(self.back, 1 << 20)
                if not block:
                    with suppress(subprocess.TimeoutExpired):
                        self.process.wait(1.0)
                    raise EOFError
                self.buffer += block
                continue
            passed = min(time.monotonic() - start, _SLICE)
            before, queued = queued, self.queued()
            excused = 0.0 if before is None else min(max(queued - before, 0.0), passed, patience)
            left, patience = left - passed + excused, patience - excused
            if left <= 0:
                raise TimeoutError
        return frames

    def queued(self) -> float:
        """Seconds it was ready to run while others had the processors; 0 where the system does not tell."""
        try:
            return int(Path(f"/proc/{self.process.pid}/schedstat").read_bytes().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return 0.0

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


def _widen(handle: int) -> None:
    """Let a pipe hold more, where the system can."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(handle, fcntl.F_SETPIPE_SZ, 1 << 20)
