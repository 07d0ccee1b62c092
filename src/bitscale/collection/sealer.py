"""The sealer: a thread of the writer that seals the log once it has grown, while adding and searching go on."""

from __future__ import annotations

import threading
from collections.abc import Callable

from bitscale.errors import BitscaleError


class Sealer:
    """Runs `work` in the background when asked; one run at a time, and never beside `exclusive` work."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self.exclusive = threading.RLock()
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None
        self._closing = False
        self.problem: BitscaleError | None = None  # of the last run; the log keeps everything meanwhile

    def ask(self) -> None:
        """Have a run soon."""
        if self._closing:
            return
        self._asked.set()
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="bitscale sealer", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Until what was asked for is done."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Finish the run under way, and start no other."""
        self._closing = True
        self.wait()

    def _run(self) -> None:
        while self._asked.is_set() and not self._closing:
            self._asked.clear()
            with self.exclusive:
                try:
                    self._work()
                    self.problem = None
                except BitscaleError as error:
                    self.problem = error
