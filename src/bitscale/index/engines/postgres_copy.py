"""Rows in the binary form of PostgreSQL's COPY: a count of columns, then each column with its length in bytes."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from bitscale.index.base import I64
from bitscale.index.engines.forms import Beside

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # with no flags and no extension
TRAILER = b"\xff\xff"
NOTHING = struct.pack(">i", -1)  # the length of NULL
JSONB = b"\1"  # the version that stands before the text
FIXED = struct.Struct(">hiqiqi")  # of an item: columns, id, digest, bytes of the text
LENGTH = struct.Struct(">i")


def code_rows(packed: NDArray[np.uint8], ids: I64, stamp: int, n_bits: int) -> bytes:
    """Id, stamp and code."""
    n_bytes = packed.shape[1]
    columns = [
        ("columns", ">i2"), ("id_bytes", ">i4"), ("id", ">i8"), ("stamp_bytes", ">i4"), ("stamp", ">i8"),
        ("code_bytes", ">i4"), ("n_bits", ">i4"), ("code", np.uint8, (n_bytes,)),
    ]  # fmt: skip
    rows = np.empty(len(ids), np.dtype(columns))
    rows["columns"], rows["id_bytes"], rows["stamp_bytes"] = 3, 8, 8
    rows["id"], rows["stamp"] = ids, stamp
    rows["code_bytes"], rows["n_bits"], rows["code"] = 4 + n_bytes, n_bits, packed
    return SIGNATURE + rows.tobytes() + TRAILER


def item_rows(ids: I64, beside: Beside) -> bytes:
    """Id, digest, text, what conditions look at, and the look."""
    parts = [SIGNATURE]
    pack, length = FIXED.pack, LENGTH.pack
    rows = zip(ids.tolist(), beside.digests.tolist(), beside.texts, beside.facts, beside.looks, strict=True)
    for id, digest, text, facts, look in rows:
        told, known = text.encode(), JSONB + facts.encode()
        parts += (pack(5, 8, id, 8, digest, len(told)), told, length(len(known)), known)
        parts += (NOTHING,) if look is None else (length(len(look)), look)
    parts.append(TRAILER)
    return b"".join(parts)
