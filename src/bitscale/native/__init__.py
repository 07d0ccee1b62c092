"""The search kernels: compiled where the machine allows it, NumPy everywhere else.

BITSCALE_KERNEL chooses one by name: avx512, avx2, portable or numpy.
"""

from __future__ import annotations

import importlib.machinery
import logging
import os
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitscale.errors import InputError
from bitscale.native.compiled import FILTERS, CompiledKernel
from bitscale.native.fallback import NumpyKernel
from bitscale.native.layout import I64, U8, U32, Segment, Stats

Float = NDArray[np.float64]

log = logging.getLogger("bitscale")


class Kernel(Protocol):
    """What `ExactIndex` asks of a kernel. Views and plans are the kernel's own, made once and used many times."""

    plans_matter: bool

    @property
    def name(self) -> str: ...
    def sort(self, codes: U8, threads: int) -> tuple[U32, U32 | None, U8]: ...
    def table(self, distinct: U8, first_bit: int, width: int, threads: int) -> tuple[U32, U8, U32 | None]: ...
    def trim(self) -> None: ...
    def schedule(
        self, segment: Segment, n_tables: int, costs: NDArray[np.int32], bits: int, probe_codes: float, capacity: int
    ) -> tuple[NDArray[np.void], NDArray[np.float32], int]: ...
    def forecast(self, costs: NDArray[np.int32], bits: int, share: float) -> int: ...
    def view(self, segments: Any, alive: Any, allowed: Any = None) -> Any: ...
    def plans(self, plans: Any) -> Any: ...
    def cost_rows(self, costs: NDArray[np.int32], unit: Float) -> Any: ...
    def search(
        self, view: Any, plans: Any, costs: Any, packed: U8, base: Float | None, bits: int, k: int, strategy: str, threads: int
    ) -> tuple[I64, Float, Stats]: ...
    def lookup(
        self, view: Any, plans: Any, costs: Any, packed: U8, base: Float | None, bits: int, radius: NDArray[np.int32],
        strategy: str, threads: int,
    ) -> tuple[I64, I64, Float, Stats]: ...  # fmt: skip


def library() -> Path | None:
    """The compiled kernel's file, or None where it was not built."""
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(__file__).with_name("_kernel" + suffix)
        if path.exists():
            return path
    return None


@cache
def kernel() -> Kernel:
    """The kernel this process uses."""
    wanted = os.environ.get("BITSCALE_KERNEL", "auto")
    if wanted not in ("auto", "numpy", *FILTERS):
        raise InputError(f"BITSCALE_KERNEL must be auto, numpy, {', '.join(FILTERS)}. Got {wanted!r}.")
    path = library()
    if wanted == "numpy":
        return NumpyKernel()
    if path is None:
        if wanted != "auto":
            raise InputError(f"BITSCALE_KERNEL={wanted}, but the kernel was not compiled. Install a C++ compiler and reinstall.")
        log.warning("bitscale runs on its NumPy kernel, many times slower: install a C++ compiler and reinstall.")
        return NumpyKernel()
    try:
        return CompiledKernel(path, None if wanted == "auto" else wanted)
    except ValueError as error:
        raise InputError(f"BITSCALE_KERNEL={wanted}, but {error}.") from None
