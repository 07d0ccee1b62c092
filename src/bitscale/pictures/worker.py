"""The worker program: decodes the pictures its parent names, one after the other, under limits it sets itself.

Run by `bitscale.pictures.child` with its limits as a JSON table. Frames come in on stdin: {"paths": [...], "wanted":
{"form": {...}}} asks for pixels, with the look of the whole picture behind them, "wanted": {"side": 192} for small
copies. One frame a picture goes out on stdout. The end of stdin ends it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import Any

from bitscale.errors import UnreadablePicture
from bitscale.pictures.decode import PATIENCE, TOO_MUCH_MEMORY, Limits, decode, load_readers, small_copy
from bitscale.pictures.form import Form
from bitscale.pictures.frames import pack, unpack, write


def main(arguments: str) -> None:
    """Serve until stdin ends."""
    limits = Limits(**json.loads(arguments))
    restrain(limits)
    warnings.simplefilter("ignore")
    load_readers()
    take_one_thread()
    out, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    write(out, pack({"ready": True}))
    os.dup2(nowhere, 1)  # what C libraries print must not come between frames
    os.dup2(nowhere, 2)
    buffer = bytearray()
    while block := os.read(0, 1 << 16):
        buffer += block
        while frame := unpack(buffer):
            for path in frame[0]["paths"]:
                _alarm((2 + PATIENCE) * limits.seconds + 5)  # should the parent be gone; it counts the seconds itself
                answer = answered(path, frame[0]["wanted"], limits)
                _alarm(0)
                write(out, answer)


def answered(path: str, wanted: dict[str, Any], limits: Limits) -> bytes:
    """The frame that answers for one picture."""
    try:
        if "side" in wanted:
            small = small_copy(path, wanted["side"], limits)
            return pack({"format": small.format}, small.data)
        how = {name: bool(wanted[name]) for name in ("places", "hashed")}
        picture = decode(path, form_of(wanted["form"]), limits, **how)
        header: dict[str, Any] = {"shape": picture.shape, "content": picture.content.hex()}
        header |= {name: getattr(picture, name) for name in ("size", "modified", "format", "width", "height", "exif")}
        return pack(header, picture.data + picture.look)
    except UnreadablePicture as error:
        return pack({"reason": error.reason, "lasting": error.lasting})
    except MemoryError:
        return pack({"reason": TOO_MUCH_MEMORY, "lasting": True})


def form_of(told: dict[str, Any]) -> Form:
    """A form as it was before it became JSON."""
    size = told["size"]
    return Form(**{**told, "size": size and (size[0], size[1])})


def take_one_thread() -> None:
    """Let AVIF's decoder start no threads: each would take a share of the memory allowed, one for every core."""
    if "PIL.AvifImagePlugin" in sys.modules:
        sys.modules["PIL.AvifImagePlugin"].__dict__["DEFAULT_MAX_THREADS"] = 1


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
