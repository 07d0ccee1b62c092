"""The sealer: a thread of the writer that seals the log once it has grown, while adding and searching go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from bitscale.collection.store.turn import Turn
from bitscale.errors import BitscaleError


class Sealer:
    """Runs `work` in the background when asked; one run at a time, and never beside `exclusive` work.

    Asking and closing are single steps of the queue, so that an interrupt leaves neither half done.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self.exclusive = Turn()
        self._asked: SimpleQueue[threading.Event | bool | None] = SimpleQueue()  # True: run; None: the end
        self._wanted = self._closed = False
        self._thread = threading.Thread(target=self._run, name="bitscale sealer", daemon=True)
        self.problem: BitscaleError | None = None  # of the last run; the log keeps everything meanwhile

    def ask(self) -> None:
        """Have a run soon."""
        if not self._closed:
            self._wanted = True
            self._asked.put(True)
            self._start()

    def _start(self) -> None:
        try:
            self._thread.start()
        except RuntimeError as error:
            if not self._thread.is_alive() and not self._closed:  # no more threads to be had: asked again later
                self.problem = BitscaleError(f"sealing cannot start in the background ({error}).")

    def wait(self) -> None:
        """Until what was asked for is done."""
        if self._thread.is_alive():
            done = threading.Event()
            self._asked.put(done)
            while self._thread.is_alive() and not done.wait(0.05):
                pass

    def close(self) -> None:
        """Finish the run under way, and start no other."""
        self._closed = True
        self._asked.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while (order := self._asked.get()) is not None:
            if isinstance(order, threading.Event):
                order.set()
            elif self._wanted and not self._closed:
                self._wanted = False  # one run is enough for all who asked before it
                with self.exclusive:
                    self._once()

    def _once(self) -> None:
        try:
            self._work()
            self.problem = None
        except BitscaleError as error:
            self.problem = error
        except Exception as error:  # a thread of ours never prints; nothing is lost, the log has it all
            self.problem = BitscaleError(f"sealing failed ({error!r}).")
