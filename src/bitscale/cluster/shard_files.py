"""One shard of an index on disk: segment files, and numbered manifests that say which of them count.

Every change has a number. A change writes its segment files first and its manifest last, so a shard stands at one
change or at the next, and the manifest before the last stays: a change that did not reach all shards is taken back.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bitscale.atomic import write_whole
from bitscale.codes import Codes
from bitscale.errors import CorruptFile
from bitscale.index.base import I64
from bitscale.index.exact import ExactIndex

FORMAT = 1
MOST_SEGMENTS = 8  # files; more are merged into one
_MANIFEST = re.compile(r"change-(\d{12})\.json")
_SEGMENT = re.compile(r"\d{12}-\d{4}\.bsi")


@dataclass(frozen=True)
class Manifest:
    """Which files count after a change, and the next automatic id that this shard knows of."""

    change: int
    segments: tuple[str, ...]
    next_id: int


def make(folder: Path) -> None:
    """An empty shard."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder, Manifest(0, (), 0))


def changes(folder: Path) -> list[int]:
    """The changes at which the shard can be opened, ascending."""
    manifests = (_MANIFEST.fullmatch(path.name) for path in folder.iterdir()) if folder.is_dir() else ()
    return sorted(int(match[1]) for match in manifests if match)


def read(folder: Path, change: int) -> Manifest:
    """The manifest of a change."""
    path = folder / f"change-{change:012}.json"
    try:
        manifest = json.loads(path.read_bytes())
        segments = tuple(str(name) for name in manifest["segments"])
        if manifest["format"] != FORMAT or manifest["change"] != change or not all(map(_SEGMENT.fullmatch, segments)):
            raise ValueError("it does not add up")
        return Manifest(change, segments, int(manifest["next_id"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptFile(f"{path} is missing or damaged ({error}). Restore the shard's folder from a copy.") from error


def load(folder: Path, manifest: Manifest, empty: Codes) -> ExactIndex:
    """The items of a manifest; every checksum is verified. `empty` says of which model they must be."""
    parts = [ExactIndex.open(folder / name) for name in manifest.segments]
    return ExactIndex.join([ExactIndex(empty), *parts])


def write_added(folder: Path, before: Manifest, change: int, codes: Codes, ids: I64) -> Manifest:
    """Keep a change that added items; on disk when this returns."""
    segments, next_id = list(before.segments), before.next_id
    if len(ids):
        name = f"{change:012}-0000.bsi"
        ExactIndex(codes, ids).save(folder / name)
        segments.append(name)
        next_id = max(next_id, int(ids.max()) + 1)
    if len(segments) > MOST_SEGMENTS:
        name = f"{change:012}-0001.bsi"
        ExactIndex.join([ExactIndex.open(folder / one) for one in segments]).merged().save(folder / name)
        segments = [name]
    return _commit(folder, before, Manifest(change, tuple(segments), next_id))


def write_removed(folder: Path, before: Manifest, change: int, ids: I64) -> Manifest:
    """Keep a change that removed items: the files that hold some of them are written anew without them."""
    segments = []
    for number, name in enumerate(before.segments):
        with ExactIndex.open(folder / name) as part:
            if part.remove(ids):
                name = f"{change:012}-{number:04}.bsi"
                if len(part):
                    part.merged().save(folder / name)
            if len(part):
                segments.append(name)
    return _commit(folder, before, Manifest(change, tuple(segments), before.next_id))


def _commit(folder: Path, before: Manifest, after: Manifest) -> Manifest:
    _write(folder, after)
    tidy(folder, before, after)
    return after


def _write(folder: Path, manifest: Manifest) -> None:
    plain = {
        "format": FORMAT, "change": manifest.change, "segments": manifest.segments, "next_id": manifest.next_id,
    }  # fmt: skip
    path = folder / f"change-{manifest.change:012}.json"
    write_whole(path, lambda file: file.write(json.dumps(plain).encode()))


def take_back(folder: Path, change: int) -> None:
    """Forget changes after this one: they did not reach all shards."""
    for later in changes(folder):
        if later > change:
            (folder / f"change-{later:012}.json").unlink(missing_ok=True)


def tidy(folder: Path, *manifests: Manifest) -> None:
    """Remove manifests but those kept, and files that none of these names."""
    numbers = {manifest.change for manifest in manifests}
    names = {name for manifest in manifests for name in manifest.segments}
    for path in folder.iterdir():
        manifest = _MANIFEST.fullmatch(path.name)
        gone = int(manifest[1]) not in numbers if manifest else _SEGMENT.fullmatch(path.name) and path.name not in names
        if gone:
            with suppress(OSError):
                path.unlink()


def empty_codes(bit_weights: object, model: str | None) -> Codes:
    """No codes, of these weights and this model."""
    weights = np.asarray(bit_weights, np.float64)
    return Codes(np.zeros((0, (weights.size + 7) // 8), np.uint8), weights, model)
