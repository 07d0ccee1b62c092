"""What parent and worker say to each other over pipes: a JSON header and raw bytes, each after its length."""

from __future__ import annotations

import json
import os
import struct
from typing import Any

LENGTHS = struct.Struct("<II")  # of the header and of the bytes

Frame = tuple[dict[str, Any], bytes]


def pack(header: dict[str, Any], payload: bytes = b"") -> bytes:
    """One frame; paths that are no UTF-8 travel as lone surrogates, which JSON escapes."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return LENGTHS.pack(len(text), len(payload)) + text + payload


def unpack(buffer: bytearray) -> Frame | None:
    """Take the first frame out of a buffer, or None while it is not whole."""
    if len(buffer) < LENGTHS.size:
        return None
    n_text, n_payload = LENGTHS.unpack_from(buffer)
    middle = LENGTHS.size + n_text
    if len(buffer) < middle + n_payload:
        return None
    header = json.loads(buffer[LENGTHS.size : middle])
    with memoryview(buffer) as view:
        payload = bytes(view[middle : middle + n_payload])
    del buffer[: middle + n_payload]
    return header, payload


def write(handle: int, frame: bytes) -> None:
    """All of a frame, waiting as long as the other side takes."""
    rest = memoryview(frame)
    while rest:
        rest = rest[os.write(handle, rest) :]
