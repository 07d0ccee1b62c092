"""Features kept on disk: extraction goes on where it was broken off, and is done once for the same images.

A result is known by the features' name and settings and the images' fingerprint. While it is made there is

    KEY.part    the rows so far, plain float32
    KEY.log     one line a finished chunk: rows so far, and the CRC-32 of the chunk

and when it is complete KEY.npy and KEY.json (what it is, and the CRC-32 of the rows). A chunk counts once
its line is written, after the rows themselves are safe; what follows the last good chunk is thrown away.
So a stop, at any moment, loses one chunk at most.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from bitscale.arrays import Float32, Progress
from bitscale.data.labelled import Images
from bitscale.errors import FileError

if TYPE_CHECKING:
    from bitscale.features.base import Features

CHUNK = 512  # images; at least one batch
_BLOCK = 1 << 22


def cached_extract(features: Features, images: Images, cache: Path, progress: Progress | None = None) -> Float32:
    """The features of `images`, mapped from the cache; what is not there yet is computed."""
    from filelock import FileLock

    identity = {
        "features": features.name,
        "settings": features.settings,
        "images": images.fingerprint,
        "n": len(images),
    }
    key = f"{features.name.replace(':', '-')}-{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:24]}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(cache / f"{key}.lock"):  # two processes never compute the same
            rows = _open(cache, key, identity)
            if rows is None:
                _extract(features, images, cache / key, identity, progress)
                rows = _open(cache, key, identity)
    except OSError as error:
        raise FileError(
            f"the feature cache {cache} cannot be used ({error}). Free the disk or choose another."
        ) from error
    if rows is None:
        raise FileError(f"{cache / key}.npy changed while it was read. Is another program writing to {cache}?")
    if progress:
        progress(len(images), len(images))
    return rows


def _open(cache: Path, key: str, identity: dict[str, Any]) -> Float32 | None:
    """The finished rows, or None where there are none that can be trusted."""
    try:
        meta = json.loads((cache / f"{key}.json").read_text())
        rows: Float32 = np.load(cache / f"{key}.npy", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError, RecursionError):
        return None
    if not isinstance(meta, dict) or {name: meta.get(name) for name in identity} != identity:
        return None
    if rows.dtype != np.float32 or rows.shape != (identity["n"], meta.get("dim")):
        return None
    with (cache / f"{key}.npy").open("rb") as file:
        file.seek(-rows.nbytes, os.SEEK_END)
        return rows if _crc(file, rows.nbytes) == meta.get("crc32") else None


def _extract(
    features: Features, images: Images, stem: Path, identity: dict[str, Any], progress: Progress | None
) -> None:
    """Compute what is missing of KEY.part, then give it its final form."""
    part, log = stem.with_name(stem.name + ".part"), stem.with_name(stem.name + ".log")
    done, dim = _resume(part, log)
    waiting: list[Float32] = []
    with part.open("ab") as rows, log.open("ab") as lines:
        for start, block in features.blocks(images, done):
            waiting.append(block)
            dim = block.shape[1]
            after = start + len(block)
            if after - done >= CHUNK or after == len(images):
                data = np.concatenate(waiting).tobytes()
                _append(rows, data)
                _append(lines, f"{after} {dim} {zlib.crc32(data)}\n".encode())
                done = after
                waiting.clear()
            if progress:
                progress(after, len(images))
    _finish(stem, part, dim, identity)
    log.unlink()


def _resume(part: Path, log: Path) -> tuple[int, int]:
    """(rows that are good, their dim), after everything that follows them was cut off."""
    done, dim, good = 0, 0, []
    if part.exists() and log.exists():
        with part.open("rb") as file:
            for line in log.read_bytes().splitlines(keepends=True):
                words = line.split()
                if not line.endswith(b"\n") or len(words) != 3 or not all(word.isdigit() for word in words):
                    break
                rows, width, crc = (int(word) for word in words)
                if rows <= done or (dim and width != dim) or _crc(file, (rows - done) * width * 4) != crc:
                    break
                done, dim = rows, width
                good.append(line)
    part.touch()
    os.truncate(part, done * dim * 4)
    log.write_bytes(b"".join(good))
    return done, dim


def _finish(stem: Path, part: Path, dim: int, identity: dict[str, Any]) -> None:
    """KEY.npy with its header before the rows, then KEY.json, which makes it count; each by a rename."""
    target, size = stem.with_name(stem.name + ".npy"), part.stat().st_size
    partial = stem.with_name(stem.name + ".npy.part")
    crc = 0
    with partial.open("wb") as out, part.open("rb") as rows:
        header = {"descr": "<f4", "fortran_order": False, "shape": (identity["n"], dim)}
        np.lib.format.write_array_header_1_0(out, header)
        while block := rows.read(_BLOCK):
            crc = zlib.crc32(block, crc)
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
    if size != identity["n"] * dim * 4:
        raise FileError(f"{part} holds {size:,} bytes, not {identity['n']} x {dim} float32. Remove it and run again.")
    os.replace(partial, target)
    meta = stem.with_name(stem.name + ".json.part")
    with meta.open("wb") as file:
        _append(file, json.dumps({**identity, "dim": dim, "crc32": crc}, indent=1).encode())
    os.replace(meta, stem.with_name(stem.name + ".json"))
    part.unlink()


def _append(file: IO[bytes], data: bytes) -> None:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _crc(file: IO[bytes], n_bytes: int) -> int | None:
    """The CRC-32 of the next `n_bytes`, None where the file ends before."""
    crc = 0
    while n_bytes:
        block = file.read(min(_BLOCK, n_bytes))
        if not block:
            return None
        crc, n_bytes = zlib.crc32(block, crc), n_bytes - len(block)
    return crc
