"""Making segments: how many tables, how wide, and from which items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bitscale.errors import InputError
from bitscale.native import Kernel
from bitscale.native.layout import I64, U8, U64, Segment, Table, flags_of

MIN_FOR_TABLES = 1 << 15  # distinct codes below which the flat scan takes microseconds anyway
MAX_TABLES = 4
NARROWER = 2  # key bits to give up for a third table: it bounds bits that no table would see
CODES_PER_BUCKET = 4  # as a power of two: 16 codes a bucket on average, half a block
WIDEST = 22  # key bits where the number of tables is ours to choose
WIDEST_CHOSEN = 24  # where it was chosen: fewer tables, so wider ones


def key_widths(n_codes: int, n_bits: int, tables: bool | int) -> list[int]:
    """Key bits of each table. Keys take the heaviest bits first, one table after another.

    `tables`: True for as many as serve best, False for the first alone, or their number.
    """
    wanted = min(n_codes.bit_length() - CODES_PER_BUCKET, n_bits)
    width = max(1, min(wanted, WIDEST))
    if tables is False or n_codes < MIN_FOR_TABLES:
        return [width]
    if tables is not True:
        number = min(tables, n_bits)
        return [max(1, min(wanted, WIDEST_CHOSEN, n_bits // number))] * number
    if width - NARROWER <= n_bits // 3 < width:
        width = n_bits // 3
    return [width] * min(MAX_TABLES, n_bits // width)


def widest_key(n_codes: int, n_bits: int) -> int:
    """The most key bits that any table of up to so many codes has."""
    return max(1, min(n_codes.bit_length() - CODES_PER_BUCKET, n_bits, WIDEST_CHOSEN))


def check_tables(tables: bool | int) -> bool | int:
    """True, False, or a number of tables."""
    if isinstance(tables, bool | np.bool_):
        return bool(tables)
    if not isinstance(tables, int | np.integer) or not 1 <= tables <= MAX_TABLES:
        raise InputError(f"tables must be True, False, or a number from 1 to {MAX_TABLES}. Got {tables!r}.")
    return int(tables)


def build_segment(codes: U8, ids: I64, n_bits: int, kernel: Kernel, *, tables: bool | int, threads: int) -> Segment:
    """Sort `codes` (n, n_bytes) under strictly increasing `ids` into a segment."""
    n = len(ids)
    ordinals, item_offsets, distinct = kernel.sort(codes, threads)
    n_codes, built = len(distinct), []
    first_bit = 0
    for width in key_widths(n_codes, n_bits, tables):
        offsets, blocks, positions = kernel.table(distinct, first_bit, width, threads)
        built.append(Table(first_bit, width, offsets, blocks, positions))
        first_bit += width
    numbered = n > 0 and int(ids[-1]) - int(ids[0]) == n - 1
    return Segment(
        n_codes=n_codes,
        n_bytes=codes.shape[1],
        tables=tuple(built),
        item_offsets=item_offsets,
        ordinals=ordinals,
        ids=None if numbered else ids,
        first_id=int(ids[0]) if numbered else 0,
    )


def living_items(segments: Sequence[Segment], alive: Sequence[U64 | None]) -> tuple[U8, I64]:
    """Codes and ids of all living items, ordered by id."""
    all_codes, all_ids = [], []
    for segment, bitmap in zip(segments, alive, strict=True):
        codes, ids = segment.items()
        keep = flags_of(bitmap, len(ids))
        all_codes.append(codes[keep])
        all_ids.append(ids[keep])
    ids = np.concatenate(all_ids)
    order = np.argsort(ids, kind="stable")
    return np.ascontiguousarray(np.concatenate(all_codes)[order]), ids[order]
