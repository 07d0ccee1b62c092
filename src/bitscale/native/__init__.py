"""The search kernels: compiled where the machine allows it, NumPy everywhere else.

BITSCALE_KERNEL chooses one by name: avx512, avx2, portable or numpy.
"""

from __future__ import annotations

import importlib.machinery
import logging
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitscale.errors import InputError
from bitscale.native.compiled import FILTERS, CompiledKernel
from bitscale.native.fallback import NumpyKernel
from bitscale.native.layout import I64, U8, U32, Centres, Queries, Segment, Stats

NAMES = ("auto", *FILTERS, "numpy")

log = logging.getLogger("bitscale")


class Kernel(Protocol):
    """The interface of a kernel. Views, plans and cost rows are in the kernel's own form: made once, used often."""

    plans_matter: bool

    @property
    def name(self) -> str:
        """Which code runs."""

    def sort(self, codes: U8, threads: int) -> tuple[U32, U32 | None, U8]:
        """Sort codes (n, n_bytes), equal ones once: (ordinals, item offsets or None, distinct codes)."""

    def table(self, distinct: U8, first_bit: int, width: int, threads: int) -> tuple[U32, U8, U32 | None]:
        """Lay out one table over sorted distinct codes: (offsets, blocks, positions or None for table 0)."""

    def trim(self) -> None:
        """Give memory that building left behind back to the system."""

    def schedule(
        self, segment: Segment, n_tables: int, costs: NDArray[np.int32], bits: int, probe_codes: float, capacity: int
    ) -> tuple[NDArray[np.void], NDArray[np.float32], int]:
        """Probe order for one row of costs: (steps, expected codes met, bound after the last step)."""

    def forecast(self, costs: NDArray[np.int32], bits: int, share: float) -> int:
        """The integer distance below which `share` of random codes lie."""

    def centres(self, segment: Segment) -> Centres | None:
        """Where the codes of a segment crowd, radii not yet known; None where they do not."""

    def radii(self, segment: Segment, centres: Centres, costs: NDArray[np.int32], bits: int) -> NDArray[np.int32]:
        """How far the codes of each centre lie from it at most, in these costs."""

    def view(self, segments: Any, alive: Any, allowed: Any = None) -> Any:
        """Segments and bitmaps, ready for `search` and `lookup`."""

    def plans(self, plans: Any) -> Any:
        """Plans, one a segment, ready for `search` and `lookup`."""

    def cost_rows(self, costs: NDArray[np.int32], unit: NDArray[np.float64]) -> Any:
        """Costs and units of `CostTerms`, ready for `Queries`."""

    def prepare(
        self, view: Any, plans: Any, costs: Any, bits: int, k: int, mode: str, threads: int
    ) -> Callable[[U8], tuple[I64, NDArray[np.float64], Stats]]:
        """`search` for queries that share one row of costs, with everything fixed but their codes."""

    def search(
        self, view: Any, plans: Any, queries: Queries, k: int, mode: str, threads: int
    ) -> tuple[I64, NDArray[np.float64], Stats]:
        """The k first items by (distance, id) for each query."""

    def lookup(
        self, view: Any, plans: Any, queries: Queries, radius: NDArray[np.int32], mode: str, threads: int
    ) -> tuple[I64, I64, NDArray[np.float64], Stats]:
        """All items within an integer radius of each query: (offsets, ids, distances)."""


def library() -> Path | None:
    """The compiled kernel's file, or None where it was not built."""
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = Path(__file__).with_name("_kernel" + suffix)
        if path.exists():
            return path
    return None


def choose(wanted: str) -> Kernel:
    """A kernel by name: auto, avx512, avx2, portable or numpy."""
    if wanted not in NAMES:
        raise InputError(f"the kernel must be one of {', '.join(NAMES)}. Got {wanted!r}; see BITSCALE_KERNEL.")
    path = library()
    if wanted == "numpy":
        return NumpyKernel()
    if path is None:
        if wanted != "auto":
            raise InputError(f"the {wanted} kernel was not compiled. Install a C++ compiler and reinstall bitscale.")
        log.warning("bitscale runs on its NumPy kernel, many times slower: install a C++ compiler and reinstall.")
        return NumpyKernel()
    return CompiledKernel(path, None if wanted == "auto" else wanted)


@cache
def kernel() -> Kernel:
    """The kernel this process uses."""
    return choose(os.environ.get("BITSCALE_KERNEL", "auto"))
