"""Work in another process for which file permissions hold, also where the tests run as root."""

import base64
import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cloudpickle

from bitscale.collection import Collection
from tests.collection.made import fill, hasher

NOBODY = 65534
OVERRIDE, READ_SEARCH = 1, 2  # the capabilities by which root passes over permissions
_DROP_FROM_BOUND = 24  # of prctl
_CAPABILITIES_VERSION = 0x20080522


def as_nobody(work):
    """What something returns, as text, done by a user who owns nothing; or the error it ends in.

    In a process of its own: a forked one could wait for ever for a lock that a thread of ours held just then.
    """
    sent = base64.b64encode(cloudpickle.dumps(work))
    command = [sys.executable, "-m", "tests.collection.unprivileged"]
    done = subprocess.run(command, input=sent, capture_output=True, cwd=Path(__file__).parents[2], check=True)
    return done.stdout.decode()


def without_privileges(work):
    """The same, done by whoever runs the tests, but without passing over permissions; its processes do not either."""
    return _in_child(work, _give_up_privileges)


def _become_nobody():
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def _give_up_privileges():
    if os.getuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (OVERRIDE, READ_SEARCH):
            assert libc.prctl(_DROP_FROM_BOUND, capability, 0, 0, 0) == 0
        header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
        assert libc.capset(header, (ctypes.c_uint32 * 6)()) == 0


def _told(work, prepare):
    try:
        prepare()
        return str(work())
    except BaseException as error:
        return f"{type(error).__name__}: {error}"


def _in_child(work, prepare):
    """For work that starts a program, or does little: threads of this process are not there."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            said = _told(work, prepare)
        finally:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(said.encode(errors="replace"))
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


def _import_all():
    """What is imported late must be there before: nobody may not be allowed to read this Python."""
    with tempfile.TemporaryDirectory() as folder, Collection.create(Path(folder) / "c.bsc", hasher()) as photos:
        fill(photos, 3)
        list(photos.search(0, k=1)[0])


if __name__ == "__main__":
    _import_all()
    print(_told(cloudpickle.loads(base64.b64decode(sys.stdin.read())), _become_nobody), end="")
