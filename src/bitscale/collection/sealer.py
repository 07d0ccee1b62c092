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
        self._state = threading.Lock()  # over the four below
        self._asked = self._running = self._closing = False
        self._thread: threading.Thread | None = None
        self.problem: BitscaleError | None = None  # of the last run; the log keeps everything meanwhile

    def ask(self) -> None:
        """Have a run soon."""
        with self._state:
            self._asked = not self._closing
            if self._asked and not self._running:
                self._running = True
                self._thread = threading.Thread(target=self._run, name="bitscale sealer", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Until what was asked for is done."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Finish the run under way, and start no other."""
        with self._state:
            self._closing, self._asked = True, False
        self.wait()

    def _run(self) -> None:
        while True:
            with self._state:
                if not self._asked:
                    self._running = False
                    return
                self._asked = False
            with self.exclusive:
                try:
                    self._work()
                    self.problem = None
                except BitscaleError as error:
                    self.problem = error
                except Exception as error:  # a thread of ours never prints; nothing is lost, the log has it all
                    self.problem = BitscaleError(f"sealing failed ({error!r}).")
