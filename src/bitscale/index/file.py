"""The index file: a checked header and checked sections, mapped into memory.

    8 bytes   magic
    4 bytes   format version
    4 bytes   length of the header
    4 bytes   CRC-32 of version, length and header
    header    JSON: what the index is, and for each section its type, shape, place and checksums
    sections  arrays, each at a multiple of 64 bytes, zeros between

Nothing in a file is trusted: sizes are checked against the file's before anything is read, checksums before
anything is used, and every offset and position before a kernel sees it.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bitscale.atomic import write_whole
from bitscale.errors import CorruptFile, FileError, InputError, NewerFormat
from bitscale.index.stored import Stored, read_stored, require, whole
from bitscale.native.layout import U64, Segment
from bitscale.threads import on_threads

MAGIC = b"BITSCALE"
VERSION = 1
HEAD = struct.Struct("<8sIII")
ALIGN = 64
CHUNK = 8 << 20  # bytes under one checksum
TYPES = ("uint8", "uint32", "uint64", "int64")


# ---------------------------------------------------------------------- writing


def write_index(path: Path, stored: Stored) -> None:
    """Write `stored` to `path`, whole or not at all."""
    arrays: list[NDArray[Any]] = []

    def section(array: NDArray[Any] | None) -> int | None:
        if array is None:
            return None
        arrays.append(np.ascontiguousarray(array))
        return len(arrays) - 1

    segments = [_describe(segment, alive, section) for segment, alive in stored.parts()]
    sums = _in_two(_checksums, arrays, sum(array.nbytes for array in arrays))
    header = {
        **header_of(stored.bit_weights, stored.model, stored.next_id, stored.tables, segments),
        "sections": [
            {"type": array.dtype.name, "shape": list(array.shape), "sums": sums[i]} for i, array in enumerate(arrays)
        ],
    }
    body = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    head = struct.pack("<II", VERSION, len(body))

    def write(file: BinaryIO) -> None:
        file.write(HEAD.pack(MAGIC, VERSION, len(body), zlib.crc32(head + body)) + body)
        for array in arrays:
            file.write(bytes(-file.tell() % ALIGN))
            file.write(array.reshape(-1).view(np.uint8).data)

    try:
        write_whole(path, write)
    except OSError as error:
        raise FileError(
            f"cannot write {path}: {error.strerror}. Check the folder, its permissions and free space."
        ) from error


def header_of(
    bit_weights: NDArray[np.float64],
    model: str | None,
    next_id: int,
    tables: bool | int,
    segments: list[dict[str, Any]],
) -> dict[str, Any]:
    """The fields of a header besides its sections."""
    header = {
        "kind": "index",
        "bit_weights": bit_weights.tolist(),
        "model": model,
        "next_id": next_id,
        "tables": tables if isinstance(tables, bool) else tables > 1,
        "segments": segments,
    }
    return header if isinstance(tables, bool) else {**header, "chosen_tables": tables}


def _describe(segment: Segment, alive: U64 | None, section: Any) -> dict[str, Any]:
    return {
        "n_codes": segment.n_codes,
        "first_id": segment.first_id,
        "item_offsets": section(segment.item_offsets),
        "ordinals": section(segment.ordinals),
        "ids": section(segment.ids),
        "alive": section(alive),
        "tables": [
            {
                "first_bit": table.first_bit,
                "width": table.width,
                "offsets": section(table.offsets),
                "blocks": section(table.blocks),
                "positions": section(table.positions),
            }
            for table in segment.tables
        ],
    }


def _checksums(array: NDArray[Any]) -> list[int]:
    flat = array.reshape(-1).view(np.uint8)
    return [zlib.crc32(flat[at : at + CHUNK].data) for at in range(0, flat.size, CHUNK)]


# ---------------------------------------------------------------------- reading


def read_index(path: Path, mmap: bool = True) -> Stored:
    """Map (or read) the index at `path`, after checking every byte of it."""
    try:
        if mmap and path.stat().st_size:
            data: NDArray[np.uint8] = np.memmap(path, np.uint8, "r").view(np.ndarray)
        else:
            data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise FileError(f"cannot open {path}: {error.strerror or error}.") from error
    try:
        header, start = _read_header(data)
        arrays = _read_sections(data, header["sections"], start)
        return read_stored(header, arrays)
    except (CorruptFile, NewerFormat) as error:
        raise type(error)(f"{path}: {error}") from None
    except (
        InputError,
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        OverflowError,
        AttributeError,
        RecursionError,
    ) as error:
        raise CorruptFile(f"{path}: the header makes no sense ({error}). Restore the file from a backup.") from None


def file_identity(path: Path) -> tuple[int, int]:
    """Size and header checksum of an index file: the header holds the checksums of all the rest."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD.size)
        size = path.stat().st_size
    except OSError as error:
        raise FileError(f"cannot open {path}: {error.strerror or error}.") from error
    if len(head) < HEAD.size or head[: len(MAGIC)] != MAGIC:
        raise CorruptFile(f"{path} is no index of bitscale, or is damaged. Restore it from a backup.")
    return size, HEAD.unpack(head)[3]


def _read_header(data: NDArray[np.uint8]) -> tuple[dict[str, Any], int]:
    require(data.size >= HEAD.size and bytes(data[:8]) == MAGIC, "this is no index of bitscale")
    _, version, length, checksum = HEAD.unpack(bytes(data[: HEAD.size]))
    if version > VERSION:
        raise NewerFormat(f"written in format {version}; this bitscale reads up to {VERSION}. Upgrade bitscale.")
    require(version == VERSION, f"unknown format version {version}")
    require(length <= data.size - HEAD.size, "the file ends within its header")
    body = bytes(data[HEAD.size : HEAD.size + length])
    require(zlib.crc32(struct.pack("<II", version, length) + body) == checksum, "the header's checksum is wrong")
    header = json.loads(body)
    require(header["kind"] == "index", f"this file holds a {header['kind']!r}, not an index")
    return header, HEAD.size + length


def _read_sections(data: NDArray[np.uint8], sections: list[dict[str, Any]], at: int) -> list[NDArray[Any]]:
    arrays, work = [], []
    for section in sections:
        begin = at + -at % ALIGN
        require(section["type"] in TYPES, f"unknown section type {section['type']!r}")
        shape = [whole(n) for n in section["shape"]]
        dtype = np.dtype(section["type"])
        size = dtype.itemsize
        for n in shape:
            size *= n
        require(size <= data.size - begin, "the file is shorter than its header says")
        require(not data[at:begin].any(), "stray bytes between sections")
        raw = data[begin : begin + size]
        sums = section["sums"]
        require(len(sums) == -(-size // CHUNK), "checksums are missing")
        work += [(raw[i * CHUNK : (i + 1) * CHUNK], expected) for i, expected in enumerate(sums)]
        arrays.append(raw.view(dtype).reshape(shape))
        at = begin + size
    require(at == data.size, "the file is longer than its header says")
    require(all(_in_two(lambda part: zlib.crc32(part[0].data) == part[1], work, data.size)), "a checksum is wrong")
    return arrays


def _in_two(work: Callable[[Any], Any], parts: list[Any], size: int) -> list[Any]:
    """Work on all parts, by two threads where their size is worth it."""
    if size < CHUNK:
        return [work(part) for part in parts]
    return on_threads(work, parts, 2)
