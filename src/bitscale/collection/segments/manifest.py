"""The manifest: which segment files make up the codes, of which model, and up to which change they hold."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any

import apsw
import numpy as np

from bitscale.arrays import Int
from bitscale.codes import descending
from bitscale.errors import CorruptFile

NAME = re.compile(r"[0-9A-Za-z_-]+\.bsi")


@dataclass(frozen=True)
class SegmentFile:
    """A segment on disk; size and checksum tell it from any other."""

    name: str
    items: int
    size: int
    checksum: int


@dataclass(frozen=True, eq=False)
class Manifest:
    """A state of the codes: these segments, without these ids, and then what the log holds from `sealed` on."""

    model: str
    bit_weights: tuple[float, ...]
    sealed: int = 0  # the last change that is in the segments
    segments: tuple[SegmentFile, ...] = ()
    dead: Int = field(default_factory=lambda: np.empty(0, np.int64))
    generation: int = 0


def write_manifest(connection: apsw.Connection, manifest: Manifest) -> None:
    """Add a manifest, within the caller's transaction."""
    fields = {name: value for name, value in asdict(manifest).items() if name not in ("dead", "generation")}
    body, dead = json.dumps(fields, separators=(",", ":")), manifest.dead.astype("<i8").tobytes()
    crc = checksum(manifest.generation, body, dead)
    connection.execute("INSERT INTO manifest VALUES (?, ?, ?, ?)", (manifest.generation, body, dead, crc))


def read_manifests(connection: apsw.Connection) -> list[Manifest | CorruptFile]:
    """The manifests kept, the newest first; a damaged one as the error it is."""
    query = "SELECT generation, body, dead, crc FROM manifest ORDER BY generation DESC"
    rows: Any = connection.execute(query).fetchall()
    return [parsed(*row) for row in rows]


def checksum(generation: int, body: str, dead: bytes) -> int:
    """The CRC of everything in a manifest's row."""
    return zlib.crc32(dead, zlib.crc32(f"{generation}\n{body}".encode()))


def parsed(generation: int, body: str, dead: bytes, crc: int) -> Manifest | CorruptFile:
    """A manifest from its row, or what is wrong with it."""
    try:
        if checksum(generation, body, dead) != crc:
            raise ValueError("its checksum is wrong")
        content = json.loads(body)
        model, weights, sealed = content["model"], content["bit_weights"], content["sealed"]
        if not isinstance(model, str) or not _is_count(sealed) or not isinstance(weights, list):
            raise ValueError("it does not say which codes it is about")
        segments = tuple(_segment(one) for one in content["segments"])
        weights = tuple(descending([float(weight) for weight in weights]).tolist())
        ids = np.frombuffer(dead, "<i8").astype(np.int64)
        return Manifest(model, weights, sealed, segments, ids, generation)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        return CorruptFile(f"manifest {generation} is damaged ({error})")


def _segment(described: dict[str, Any]) -> SegmentFile:
    segment = SegmentFile(**described)
    name_fits = isinstance(segment.name, str) and NAME.fullmatch(segment.name)
    if not name_fits or not all(map(_is_count, (segment.items, segment.size, segment.checksum))):
        raise ValueError("a segment of it is none")
    return segment


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
