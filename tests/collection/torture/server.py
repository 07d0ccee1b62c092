"""A process with the shim preloaded and everything imported, which forks a child for each task.

Starting Python and its imports anew for each of thousands of crashes would take hours; a fork takes milliseconds.
A task is "module:function" of these tests; it may acknowledge as it goes. The server is asked in lines of
JSON, and outlives whatever happens to the child.
"""

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bitscale.errors import BitscaleError
from tests.collection.torture import shim

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Outcome:
    """What became of a child."""

    acks: list[Any]  # in order
    value: Any  # what the task returned
    error: str | None  # "BitscaleError: ..." or another type's name first; None: none
    trace: str
    signal: int  # that ended it, 0: none
    steps: int
    hits: int
    last: str  # the step where something was done

    def died(self) -> bool:
        return self.signal == signal.SIGKILL


class Server:
    """The other end, in the test process."""

    def __init__(self) -> None:
        paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        env = {
            **os.environ,
            "LD_PRELOAD": str(shim.build()),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "tests.collection.torture.server"]
        self._process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(
        self,
        task: str,
        *args: Any,
        orders: shim.Orders | None = None,
        kill: float | None = None,
        after: int = 1,
        patience: float = 300,
    ) -> Outcome:
        """Run a task in a child; `kill` -9 it that many seconds after the acknowledgement of that number."""
        given = None
        if orders is not None:
            given = asdict(orders) | {"kinds": sorted(orders.kinds)}
        job = {"task": task, "args": args, "orders": given, "kill": kill, "after": after, "patience": patience}
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the server died")
        return Outcome(**json.loads(line))

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@dataclass
class Running:
    """A child as the server sees it."""

    pid: int
    pipe: int
    text: bytes = b""
    acks: list[Any] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)

    def read(self, wait: float) -> bool:
        """Take what the child says within `wait` seconds; False at its end."""
        if select.select([self.pipe], [], [], max(wait, 0))[0]:
            chunk = os.read(self.pipe, 1 << 20)
            self.text += chunk
            *lines, self.text = self.text.split(b"\n")
            for line in map(json.loads, lines):
                if "ack" in line:
                    self.acks.append(line["ack"])
                else:
                    self.end = line
            return bool(chunk)
        return True


def child(job: dict[str, Any], pipe: int) -> None:
    """Run one task; what it acknowledges is durable from here on, says the collection."""
    module, function = job["task"].split(":")

    def say(what: dict[str, Any]) -> None:
        os.write(pipe, json.dumps(what).encode() + b"\n")

    def ack(what: Any) -> None:
        shim.mark(json.dumps(what))
        say({"ack": what})

    orders = None
    if job["orders"]:
        orders = shim.Orders(**job["orders"] | {"kinds": frozenset(job["orders"]["kinds"])})
        shim.arm(orders)
    try:
        value = getattr(importlib.import_module(f"tests.collection.torture.{module}"), function)(ack, *job["args"])
        shim.disarm()
        say({"value": value, "error": None, "trace": ""})
    except BaseException as error:
        shim.disarm()
        kind = "BitscaleError" if isinstance(error, BitscaleError) else type(error).__name__
        say({"value": None, "error": f"{kind}: {error}", "trace": traceback.format_exc()})


def serve(job: dict[str, Any]) -> Outcome:
    board = shim.board()
    board.steps, board.hits, board.last = 0, 0, b""
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        with contextlib.suppress(BaseException):
            child(job, into)
        os._exit(0)
    os.close(into)
    running = Running(pid, out)
    deadline = time.monotonic() + job["patience"]
    kill_at, killed = None, False
    while True:
        now = time.monotonic()
        if kill_at is None and job["kill"] is not None and len(running.acks) >= job["after"]:
            kill_at = now + job["kill"]
        if not killed and (now >= deadline or (kill_at is not None and now >= kill_at)):
            os.kill(pid, signal.SIGKILL if now < deadline else signal.SIGABRT)
            killed = True
        if not running.read(min(deadline, kill_at or deadline) - now if not killed else 60):
            break
    os.close(out)
    status = os.waitpid(pid, 0)[1]
    end = {"value": None, "error": None, "trace": ""} | running.end
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return Outcome(running.acks, **end, signal=number, steps=board.steps, hits=board.hits, last=board.last.decode())


def main() -> None:
    importlib.import_module("tests.collection.torture.tasks").warm()
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a task prints is no answer
    for line in requests:
        answers.write(json.dumps(asdict(serve(json.loads(line)))).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
