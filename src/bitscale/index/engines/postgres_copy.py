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
FIXED = np.dtype(  # of an item, as long as all are; `told`: bytes of the text, which follows
    [("columns", ">i2"), ("n_id", ">i4"), ("id", ">i8"), ("n_digest", ">i4"), ("digest", ">i8"), ("told", ">i4")]
)
KNOWN = np.dtype([("bytes", ">i4"), ("version", "S1")])  # before what conditions look at
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
    n = len(ids)
    told, facts = [*map(str.encode, beside.texts)], [*map(str.encode, beside.facts)]
    first, second = np.empty(n, FIXED), np.empty(n, KNOWN)
    first["columns"], first["n_id"], first["n_digest"] = 5, 8, 8
    first["id"], first["digest"], first["told"] = ids, beside.digests, [*map(len, told)]
    second["bytes"], second["version"] = [len(JSONB) + len(known) for known in facts], JSONB
    parts: list[bytes] = [b""] * (5 * n)  # put together column by column, not row by row: rows are many
    parts[0::5], parts[1::5] = first.view(f"V{FIXED.itemsize}").tolist(), told
    parts[2::5], parts[3::5] = second.view(f"V{KNOWN.itemsize}").tolist(), facts
    parts[4::5] = [NOTHING if look is None else LENGTH.pack(len(look)) + look for look in beside.looks]
    return b"".join((SIGNATURE, *parts, TRAILER))
