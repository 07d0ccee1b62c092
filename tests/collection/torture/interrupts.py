"""Interrupts at chosen lines: which lines of ours an operation reaches, and a Ctrl-C at one of them.

Two ways. "raise" throws KeyboardInterrupt at the very line: harder than life, since it also hits the clean-up of `with`
and `finally`. "signal" has a SIGINT pending when the line begins, which the interpreter delivers where it looks for
signals.
"""

import _thread
import operator
import signal
import sys
import weakref
from collections import Counter
from pathlib import Path

import pytest

import bitscale

# an interrupt may hit a finalizer, or what another library does at a garbage collection: Python tells of it and goes on
ANYWHERE = pytest.mark.filterwarnings("default::pytest.PytestUnraisableExceptionWarning")
SOURCE = str(Path(bitscale.__file__).parent)

Line = tuple[str, int]


class _Pending(weakref.ref):
    fire = staticmethod(_thread.interrupt_main)


class _Thing:
    pass


def lines_of(operation) -> Counter[Line]:
    """How often an operation comes to each line of ours, in this thread."""
    seen: Counter[Line] = Counter()

    def local(frame, event, arg):
        if event == "line":
            seen[frame.f_code.co_filename, frame.f_lineno] += 1
        return local

    _traced(operation, lambda frame: local)
    return seen


def interrupted_at(operation, line: Line, visit: int, how: str) -> bool:
    """Run an operation with an interrupt at the given visit of a line; whether it was interrupted."""
    left = visit

    def local(frame, event, arg):
        nonlocal left
        if event == "line" and frame.f_lineno == line[1]:
            left -= 1
            if left == 0:
                sys.settrace(None)
                frame.f_trace = None
                if how == "raise":
                    raise KeyboardInterrupt
                # when this frame is gone, and nothing of Python runs but what is traced: a signal comes in
                thing = _Thing()
                _KEPT[:] = [_Pending(thing, operator.methodcaller("fire"))]
        return local

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs behind
    try:
        _traced(operation, lambda frame: local if frame.f_code.co_filename == line[0] else None)
    except KeyboardInterrupt as error:
        _LAST[:] = [error]  # with its traceback and all it holds, as notebooks keep it
        return True
    finally:
        signal.signal(signal.SIGINT, before)
    return False


def interrupted_after(operation, steps: int) -> bool:
    """Run an operation with a SIGINT pending after so many steps of the interpreter, in whatever module it is then."""
    left = steps

    def local(frame, event, arg):
        nonlocal left
        if event == "opcode":
            left -= 1
            if left == 0:
                sys.settrace(None)
                frame.f_trace = None
                thing = _Thing()
                _KEPT[:] = [_Pending(thing, operator.methodcaller("fire"))]
        return local

    def begin(frame, event, arg):
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return local

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.settrace(begin)
        try:
            operation()
        finally:
            sys.settrace(None)  # a signal that is still pending comes in here
    except KeyboardInterrupt:
        return True
    finally:
        signal.signal(signal.SIGINT, before)
    return False


def drop_traceback() -> None:
    """Let go of the last interrupt and of all that its traceback holds, as a notebook does at the next error."""
    _LAST.clear()


_KEPT: list[object] = []
_LAST: list[BaseException] = []


def _traced(operation, choose) -> None:
    def begin(frame, event, arg):
        return choose(frame) if frame.f_code.co_filename.startswith(SOURCE) else None

    sys.settrace(begin)
    try:
        operation()
    finally:
        sys.settrace(None)


def chosen(seen: Counter[Line], share: int, seed: int) -> list[tuple[Line, int]]:
    """Every line on its first and on its last visit; of a tenth of them, one in ten."""
    all_of_them = sorted({(line, visit) for line, n in seen.items() for visit in (1, n)})
    return all_of_them[seed % share :: share]
