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
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import MAX_BITS, check_weights
from bitscale.errors import CorruptFile, FileError, InputError, NewerFormat
from bitscale.files import write_whole
from bitscale.native.layout import LANES, U64, Segment, Table, bits_set

MAGIC = b"BITSCALE"
VERSION = 1
HEAD = struct.Struct("<8sIII")
ALIGN = 64
CHUNK = 8 << 20  # bytes under one checksum
TYPES = ("uint8", "uint32", "uint64", "int64")


class Stored(NamedTuple):
    """What an index file holds."""

    bit_weights: NDArray[np.float64]
    model: str | None
    next_id: int
    tables: bool
    segments: tuple[Segment, ...]
    alive: tuple[U64 | None, ...]

    def parts(self) -> list[tuple[Segment, U64 | None]]:
        """Segments, each with its living items."""
        return list(zip(self.segments, self.alive, strict=True))


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
        "kind": "index",
        "bit_weights": stored.bit_weights.tolist(),
        "model": stored.model,
        "next_id": stored.next_id,
        "tables": stored.tables,
        "segments": segments,
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
        return _read_stored(header, arrays)
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
        raise CorruptFile(f"{path} is no bitscale index, or is damaged. Restore it from a backup.")
    return size, HEAD.unpack(head)[3]


def _require(condition: object, what: str) -> None:
    if not condition:
        raise CorruptFile(f"{what}. The file is damaged or was not written by bitscale; restore it from a backup.")


def _read_header(data: NDArray[np.uint8]) -> tuple[dict[str, Any], int]:
    _require(data.size >= HEAD.size and bytes(data[:8]) == MAGIC, "this is no bitscale index")
    _, version, length, checksum = HEAD.unpack(bytes(data[: HEAD.size]))
    if version > VERSION:
        raise NewerFormat(f"written in format {version}; this bitscale reads up to {VERSION}. Upgrade bitscale.")
    _require(version == VERSION, f"unknown format version {version}")
    _require(length <= data.size - HEAD.size, "the file ends within its header")
    body = bytes(data[HEAD.size : HEAD.size + length])
    _require(zlib.crc32(struct.pack("<II", version, length) + body) == checksum, "the header's checksum is wrong")
    header = json.loads(body)
    _require(header["kind"] == "index", f"this file holds a {header['kind']!r}, not an index")
    return header, HEAD.size + length


def _read_sections(data: NDArray[np.uint8], sections: list[dict[str, Any]], at: int) -> list[NDArray[Any]]:
    arrays, work = [], []
    for section in sections:
        begin = at + -at % ALIGN
        _require(section["type"] in TYPES, f"unknown section type {section['type']!r}")
        shape = [_whole(n) for n in section["shape"]]
        dtype = np.dtype(section["type"])
        size = dtype.itemsize
        for n in shape:
            size *= n
        _require(size <= data.size - begin, "the file is shorter than its header says")
        _require(not data[at:begin].any(), "stray bytes between sections")
        raw = data[begin : begin + size]
        sums = section["sums"]
        _require(len(sums) == -(-size // CHUNK), "checksums are missing")
        work += [(raw[i * CHUNK : (i + 1) * CHUNK], expected) for i, expected in enumerate(sums)]
        arrays.append(raw.view(dtype).reshape(shape))
        at = begin + size
    _require(at == data.size, "the file is longer than its header says")
    _require(all(_in_two(lambda part: zlib.crc32(part[0].data) == part[1], work, data.size)), "a checksum is wrong")
    return arrays


def _in_two(work: Callable[[Any], Any], parts: list[Any], size: int) -> list[Any]:
    """Work on all parts, by two threads where their size is worth it."""
    if size < CHUNK:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, parts))


def _read_stored(header: dict[str, Any], arrays: list[NDArray[Any]]) -> Stored:
    weights = check_weights(header["bit_weights"])
    _require((np.diff(weights) <= 0).all() and weights.size <= MAX_BITS, "weights out of order")
    model, next_id = header["model"], _whole(header["next_id"])
    _require(model is None or isinstance(model, str), "the model's name is no text")
    _require(isinstance(header["tables"], bool), "the tables flag is no flag")
    segments, alive = [], []
    for described in header["segments"]:
        segments.append(_read_segment(described, arrays, weights.size))
        bitmap = _perhaps(arrays, described["alive"], np.uint64)
        _require(bitmap is None or _fits(bitmap, segments[-1].n_items), "a bitmap has the wrong size")
        alive.append(bitmap)
        _require(segments[-1].first_id >= 0 and segments[-1].last_id < next_id, "ids out of range")
    _require(next_id <= 1 << 63, "ids out of range")
    stored = Stored(weights, model, next_id, header["tables"], tuple(segments), tuple(alive))
    _require(disjoint(stored.parts()), "an item stands twice")
    return stored


def _read_segment(described: dict[str, Any], arrays: list[NDArray[Any]], n_bits: int) -> Segment:
    n_codes, n_bytes = _whole(described["n_codes"]), (n_bits + 7) // 8
    ordinals = _section(arrays, described["ordinals"], np.uint32)
    ids = _perhaps(arrays, described["ids"], np.int64)
    item_offsets = _perhaps(arrays, described["item_offsets"], np.uint32)
    _require(ordinals.ndim == 1, "a segment without items")
    n_items = len(ordinals)
    _require(0 < n_codes <= n_items < 1 << 32, "a segment of impossible size")
    _require(int(ordinals.max()) < n_items, "an item out of range")
    if item_offsets is None:
        _require(n_codes == n_items, "items and codes do not match")
    else:
        _require(item_offsets.shape == (n_codes + 1,) and _climbs(item_offsets, n_items), "item offsets out of order")
    if ids is not None:
        _require(ids.shape == (n_items,) and ids[0] >= 0 and (ids[1:] > ids[:-1]).all(), "ids out of order")
    tables = tuple(_read_tables(described["tables"], arrays, n_codes, n_bytes, n_bits))
    _require(1 <= len(tables) <= 8, "an impossible number of tables")
    return Segment(n_codes, n_bytes, tables, item_offsets, ordinals, ids, _whole(described["first_id"]))


def _read_tables(
    described: list[dict[str, Any]], arrays: list[NDArray[Any]], n_codes: int, n_bytes: int, n_bits: int
) -> Iterator[Table]:
    end = 0
    for i, table in enumerate(described):
        first_bit, width = _whole(table["first_bit"]), _whole(table["width"])
        _require(first_bit == end and 1 <= width <= 24 and first_bit + width <= n_bits, "a table over impossible bits")
        end = first_bit + width
        offsets = _section(arrays, table["offsets"], np.uint32)
        blocks = _section(arrays, table["blocks"], np.uint8)
        positions = _perhaps(arrays, table["positions"], np.uint32)
        _require(blocks.shape == (-(-n_codes // LANES), n_bytes, LANES), "blocks of the wrong shape")
        _require(
            offsets.shape == ((1 << width) + 1,) and _climbs(offsets, n_codes),
            "bucket offsets out of order",
        )
        _require((positions is None) == (i == 0), "positions missing or misplaced")
        if positions is not None:
            _require(positions.shape == (n_codes,) and int(positions.max()) < n_codes, "a position out of range")
        yield Table(first_bit, width, offsets, blocks, positions)


def disjoint(parts: list[tuple[Segment, U64 | None]]) -> bool:
    """Whether no id lives in two segments."""
    for i, (segment, alive) in enumerate(parts):
        for other, other_alive in parts[i + 1 :]:
            if segment.last_id < other.all_ids()[0] or other.last_id < segment.all_ids()[0]:
                continue
            mine = np.arange(segment.n_items)[bits_set(alive, np.arange(segment.n_items))]
            ordinals, here = other.find(segment.ids_of(mine))
            if bits_set(other_alive, ordinals[here]).any():
                return False
    return True


def _fits(bitmap: U64, n: int) -> bool:
    """Whether a bitmap covers `n` items and no more."""
    return bitmap.shape == (-(-n // 64),) and not (n % 64 and int(bitmap[-1]) >> n % 64)


def _climbs(offsets: NDArray[np.uint32], total: int) -> bool:
    return bool(offsets[0] == 0 and offsets[-1] == total and (offsets[1:] >= offsets[:-1]).all())


def _section(arrays: list[NDArray[Any]], which: object, dtype: Any) -> NDArray[Any]:
    array = arrays[_whole(which)]
    _require(array.dtype == dtype, "a section of the wrong type")
    return array


def _perhaps(arrays: list[NDArray[Any]], which: object, dtype: Any) -> NDArray[Any] | None:
    return None if which is None else _section(arrays, which, dtype)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CorruptFile(f"{value!r} where a number should stand. The file is damaged; restore it from a backup.")
    return value
