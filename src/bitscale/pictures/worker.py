"""The worker program: decodes the pictures its parent names, one after the other, under limits it sets itself.

Run by `bitscale.data.workers` with a JSON table of `form` and `limits` as its one argument. Frames come in on stdin
({"paths": [...]}), one frame a picture goes out on stdout; the end of stdin ends it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import Any

from bitscale.data.decode import Form, Limits, decode, readable_formats
from bitscale.data.frames import pack, unpack, write
from bitscale.errors import UnreadablePicture


def main(arguments: str) -> None:
    """Serve until stdin ends."""
    told = json.loads(arguments)
    size = told["form"]["size"]
    form = Form(**{**told["form"], "size": size and (size[0], size[1])})
    limits = Limits(**told["limits"])
    restrain(limits)
    warnings.simplefilter("ignore")
    readable_formats()
    out, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    write(out, pack({"ready": True}))
    os.dup2(nowhere, 1)  # what C libraries print must not come between frames
    os.dup2(nowhere, 2)
    buffer = bytearray()
    while block := os.read(0, 1 << 16):
        buffer += block
        while frame := unpack(buffer):
            for path in frame[0]["paths"]:
                _alarm(2 * limits.seconds + 5)  # should the parent be gone; it counts the seconds itself
                answer = decoded(path, form, limits)
                _alarm(0)
                write(out, answer)


def decoded(path: str, form: Form, limits: Limits) -> bytes:
    """The frame that answers for one picture."""
    try:
        picture = decode(path, form, limits)
        facts: dict[str, Any] = {"shape": picture.pixels.shape, "content": picture.content.hex()}
        facts |= {name: getattr(picture, name) for name in ("size", "modified", "format", "width", "height")}
        return pack(facts, picture.pixels.tobytes())
    except UnreadablePicture as error:
        return pack({"reason": error.reason, "lasting": error.lasting})
    except MemoryError:
        return pack({"reason": "needs more memory than a picture may. Make a smaller copy.", "lasting": True})


def restrain(limits: Limits) -> None:
    """No more memory than allowed on top of what the program itself takes, and no core file when it dies."""
    with suppress(AttributeError, ValueError, OSError):  # Windows has no SIGINT to ignore in this way
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    try:
        import resource
    except ImportError:
        return
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (limits.memory + _mapped(),) * 2)


def _mapped() -> int:
    """Bytes of address space in use; a guess where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 1 << 30


def _alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    main(sys.argv[1])
