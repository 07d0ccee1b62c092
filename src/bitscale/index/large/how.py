"""How a large index is built: by which kernel, within which memory, in segments of which size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bitscale.index.large.needs import rows_within
from bitscale.native import Kernel

Stages = Callable[[str, int, int], None]  # what is being done, how many are done, of how many


@dataclass(frozen=True)
class How:
    """The settings of a build: kernel, memory, tables, threads and size of segments."""

    kernel: Kernel
    threads: int
    tables: bool | int
    memory: int  # bytes
    segment_items: int
    progress: Stages
    most: int | None = None  # rows in hand at once; None: what memory allows

    def rows(self, n_bytes: int, width: int) -> int:
        """How many rows may be in hand at once."""
        return self.most or rows_within(self.memory, n_bytes, width)
