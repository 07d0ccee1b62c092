"""The room that building a large index takes: memory for each code in hand, and bytes on disk."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from bitscale.errors import InputError
from bitscale.index.file import CHUNK
from bitscale.index.segment import key_widths
from bitscale.machine import free_memory

PROCESS = 192 << 20  # Python, NumPy, and what the allocator keeps
FEWEST_ROWS = 1 << 16
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


class Needs(NamedTuple):
    """Bytes on disk: the finished index, and what is needed beside it while it is built."""

    file: int
    scratch: int


def needs(n: int, n_bits: int, tables: bool | int = True, own_ids: bool = False) -> Needs:
    """Bytes on disk for an index of `n` codes that are all different."""
    n_bytes = (n_bits + 7) // 8
    widths = key_widths(n, n_bits, tables)
    index = n * (4 + n_bytes * len(widths) + 4 * (len(widths) - 1) + (8 if own_ids else 0))
    index += sum(4 << width for width in widths) + header_bytes(index, n_bits, 1)
    return Needs(index, n * (n_bytes + 8 + (8 if own_ids else 0)))


def header_bytes(index_bytes: int, n_bits: int, n_segments: int) -> int:
    """Room for the header of a file: a checksum a chunk, weights, and what describes segments and sections."""
    return 4096 + 12 * (index_bytes // CHUNK) + 32 * n_bits + n_segments * 4096


def rows_within(memory: int, n_bytes: int, width: int) -> int:
    """How many codes may be in hand at once within so many bytes; `width`: of the widest key."""
    fixed, row = PROCESS + (24 << width), row_bytes(n_bytes)
    if memory < fixed + FEWEST_ROWS * row:
        least = -(-(fixed + FEWEST_ROWS * row) // 10**6)
        raise InputError(f"a memory of {memory:,} bytes is too little to build this index. Give at least {least} MB.")
    return (memory - fixed) // row


def row_bytes(n_bytes: int) -> int:
    """Memory for one code in hand: three copies of it, two rows of the sort, and numbers."""
    return 3 * n_bytes + 64


def memory_of(limit: int | str | None) -> int:
    """A limit in bytes: a number, a text like "8GB" or "500 MiB", or (None) half of what is free now."""
    if limit is None:
        return free_memory() // 2
    if isinstance(limit, str):
        parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", limit.lower())
        if parts and parts[2] in UNITS:
            return int(float(parts[1]) * UNITS[parts[2]])
    elif not isinstance(limit, bool) and isinstance(limit, int | np.integer) and limit > 0:
        return int(limit)
    raise InputError(f'memory must be a number of bytes, or a text like "8GB". Got {limit!r}.')
