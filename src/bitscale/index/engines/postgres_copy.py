"""Rows in the binary form of PostgreSQL's COPY: a count of columns, then each column with its length in bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bitscale.index.base import I64
from bitscale.index.engines.remote import Beside

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # with no flags and no extension
TRAILER = b"\xff\xff"


def copy_rows(packed: NDArray[np.uint8], ids: I64, stamp: int, n_bits: int, beside: Beside | None = None) -> bytes:
    """Id, stamp and code; and where something is beside them, its digest and text."""
    n_bytes = packed.shape[1]
    columns = [
        ("columns", ">i2"), ("id_bytes", ">i4"), ("id", ">i8"), ("stamp_bytes", ">i4"), ("stamp", ">i8"),
        ("code_bytes", ">i4"), ("n_bits", ">i4"), ("code", np.uint8, (n_bytes,)),
    ]  # fmt: skip
    if beside is not None:
        columns += [("digest_bytes", ">i4"), ("digest", ">i8"), ("text_bytes", ">i4")]
    rows = np.empty(len(ids), np.dtype(columns))
    rows["columns"], rows["id_bytes"], rows["stamp_bytes"] = 3 if beside is None else 5, 8, 8
    rows["id"], rows["stamp"] = ids, stamp
    rows["code_bytes"], rows["n_bits"], rows["code"] = 4 + n_bytes, n_bits, packed
    if beside is None:
        return rows.tobytes()
    texts = [text.encode() for text in beside.texts]
    rows["digest_bytes"], rows["digest"], rows["text_bytes"] = 8, beside.digests, [len(text) for text in texts]
    whole, size = rows.tobytes(), rows.dtype.itemsize
    return b"".join(part for i, text in enumerate(texts) for part in (whole[i * size : (i + 1) * size], text))
