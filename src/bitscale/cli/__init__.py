"""The door of the command line: it loads next to nothing itself, so that even Ctrl-C while loading ends in one line.

`app` has the verbs. Exit codes: 0 done, 1 could not be done, 2 wrong usage, 3 asks (files vanished: say how to go on),
130 stopped.
"""

from __future__ import annotations

import os
import sys

STOPPED = 130  # exit code after Ctrl-C: 128 + SIGINT
LIGHT = ("index", "add", "search", "reindex")  # verbs whose networks run in onnxruntime and whose matrices are small
STOPPED_WORDS = "stopped; run the same command again to go on"


def main() -> None:
    """Run the command line and exit; an error is one line on stderr, or with --json one document on stdout."""
    open_what_is_closed()
    escape_what_cannot_be_printed()
    if sys.argv[1:2] and sys.argv[1] in LIGHT:  # before NumPy is loaded: its threads would spin between small products
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from bitscale.cli.app import run

        code = run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = stopped_while_loading("--json" in sys.argv)
    except BrokenPipeError:  # whoever read our output has gone, as `head` does
        code = leave_the_pipe()
    except OSError as error:  # it cannot be printed: a full disk, where output goes to a file
        code = leave_the_pipe()
        sys.stderr.write(f"bitscale: what was to be printed cannot be written: {error.strerror}.\n")
    sys.exit(code)


def open_what_is_closed() -> None:
    """Open stdin, stdout and stderr onto nothing where they are closed, so that no file of ours takes their place."""
    for handle in (0, 1, 2):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w")


def escape_what_cannot_be_printed() -> None:
    """Let a terminal whose encoding is not UTF-8 show as an escape what it has no letter for."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # they are text files here


def stopped_while_loading(as_json: bool) -> int:
    """Say that Ctrl-C came before any verb had begun; nothing was done yet."""
    import json

    if as_json:
        error = {"type": "Stopped", "message": STOPPED_WORDS, "exit_code": STOPPED}
        sys.stdout.write(json.dumps({"error": error}) + "\n")
    else:
        sys.stderr.write(f"bitscale: {STOPPED_WORDS}\n")
    return STOPPED


def leave_the_pipe() -> int:
    """End quietly: point stdout at nothing, so that Python's own flush at exit has nothing to complain about."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1
