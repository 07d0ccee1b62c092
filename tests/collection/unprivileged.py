"""Work in a forked child for which file permissions hold, also where the tests run as root."""

import ctypes
import os

NOBODY = 65534
OVERRIDE, READ_SEARCH = 1, 2  # the capabilities by which root passes over permissions
_DROP_FROM_BOUND = 24  # of prctl
_CAPABILITIES_VERSION = 0x20080522


def as_nobody(work):
    """What something returns, as text, done by a user who owns nothing; or the error it ends in."""
    return _in_child(work, _become_nobody)


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


def _in_child(work, prepare):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        try:
            prepare()
            said = str(work())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        finally:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(said.encode(errors="replace"))
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said
