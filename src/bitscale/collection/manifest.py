"""The manifest: which segment files make up the codes, of which model, and up to which change they hold."""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field

import apsw
import numpy as np
from numpy.typing import NDArray

from bitscale.errors import CorruptFile

I64 = NDArray[np.int64]
KEPT = 2  # manifests: the head, and the one before to fall back to


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
    dead: I64 = field(default_factory=lambda: np.empty(0, np.int64))
    generation: int = 0


def write_manifest(connection: apsw.Connection, manifest: Manifest) -> None:
    """Add a manifest, within the caller's transaction."""
    facts = {name: value for name, value in asdict(manifest).items() if name not in ("dead", "generation")}
    body, dead = json.dumps(facts, separators=(",", ":")), manifest.dead.astype("<i8").tobytes()
    crc = checksum(manifest.generation, body, dead)
    connection.execute("INSERT INTO manifest VALUES (?, ?, ?, ?)", (manifest.generation, body, dead, crc))


def read_manifests(connection: apsw.Connection) -> list[Manifest | CorruptFile]:
    """The manifests kept, the newest first; a damaged one as the error it is."""
    rows = connection.execute("SELECT generation, body, dead, crc FROM manifest ORDER BY generation DESC")
    return [_parsed(*row) for row in rows]


def checksum(generation: int, body: str, dead: bytes) -> int:
    """Over all a manifest's row holds."""
    return zlib.crc32(dead, zlib.crc32(f"{generation}\n{body}".encode()))


def _parsed(generation: int, body: str, dead: bytes, crc: int) -> Manifest | CorruptFile:
    try:
        if checksum(generation, body, dead) != crc:
            raise ValueError("its checksum is wrong")
        facts = json.loads(body)
        segments = tuple(SegmentFile(**segment) for segment in facts.pop("segments"))
        weights = tuple(facts.pop("bit_weights"))
        ids = np.frombuffer(dead, "<i8").astype(np.int64)
        return Manifest(**facts, bit_weights=weights, segments=segments, dead=ids, generation=generation)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return CorruptFile(f"manifest {generation} is damaged ({error})")
