"""The kernels this processor can run: tests go over these, since what a processor cannot do is no skip."""

from bitscale.errors import InputError
from bitscale.native import choose
from bitscale.native.compiled import FILTERS


def runs(name):
    try:
        choose(name)
    except InputError:
        return False
    return True


COMPILED = tuple(name for name in FILTERS if runs(name))
KERNELS = (*COMPILED, "numpy")
