"""Encoding that loses nothing to a stop: every batch is kept on disk until all is written, and the same call goes on.

A folder holds `000000.npz`, `000001.npz`, ...: consecutive stretches of the input, each with the codes of what could
be read, their places and what is wrong with the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import Codes
from bitscale.data.unfinished import file_identity, keep_arrays, kept_arrays, unfinished
from bitscale.embeddings import Embeddings
from bitscale.hashers.base import ENCODE_ROWS, Hasher
from bitscale.hashers.picture_codes import encode_files

Progress = Callable[[int, int], None]  # done so far, total


@dataclass(frozen=True)
class EncodedInputs:
    """The codes of all inputs that could be read, their places among the inputs, and (place, reason) of the others.

    What they are made of stays in `folder` until that is `finished`: whoever writes them may fail.
    """

    codes: Codes | Embeddings
    places: list[int]
    broken: list[tuple[int, str]]
    folder: Path


@dataclass(frozen=True)
class Stretch:
    """Consecutive inputs: packed codes or real values of those read, the places of these, and the broken ones."""

    rows: NDArray[Any]
    places: list[int]
    broken: list[tuple[int, str]]

    def __len__(self) -> int:
        return len(self.places) + len(self.broken)


def encode_paths(
    hasher: Hasher, paths: Sequence[str], *, workers: int | None = None, progress: Progress | None = None
) -> EncodedInputs:
    """Encode picture files in order."""
    folder = unfinished("encode", [hasher.fingerprint, [file_identity(path) for path in paths]])

    def rest(start: int) -> Iterator[Stretch]:
        with closing(encode_files(hasher, paths[start:], workers=workers)) as batches:
            for batch in batches:
                broken = [(start + place, error.reason) for place, error in batch.broken]
                yield Stretch(_rows(batch.codes), [start + place for place in batch.places], broken)

    return _collected(hasher, folder, len(paths), rest, progress)


def encode_array(hasher: Hasher, array: NDArray[Any], path: Path, progress: Progress | None = None) -> EncodedInputs:
    """Encode the rows of an array that lies in the file `path`."""
    folder = unfinished("encode", [hasher.fingerprint, file_identity(path)])
    if hasher.extractor.cacheable and hasher.extractor.cache is None:
        hasher.extractor.cache = folder / "features"

    def rest(start: int) -> Iterator[Stretch]:
        for first in range(start, len(array), ENCODE_ROWS):
            codes = hasher.encode(array[first : first + ENCODE_ROWS])
            yield Stretch(_rows(codes), list(range(first, first + len(codes))), [])

    return _collected(hasher, folder, len(array), rest, progress)


def _collected(
    hasher: Hasher, folder: Path, total: int, rest: Callable[[int], Iterator[Stretch]], progress: Progress | None
) -> EncodedInputs:
    """What was kept, then the rest, each stretch kept as it comes."""
    stretches = _kept(folder)
    done = sum(map(len, stretches))
    if done < total:
        for stretch in rest(done):
            _keep(stretch, folder, len(stretches))
            stretches.append(stretch)
            done += len(stretch)
            if progress:
                progress(done, total)
    rows = [stretch.rows for stretch in stretches if len(stretch.rows)]
    places = [place for stretch in stretches for place in stretch.places]
    broken = [one for stretch in stretches for one in stretch.broken]
    return EncodedInputs(_codes(hasher, rows), places, broken, folder)


def _codes(hasher: Hasher, rows: list[NDArray[Any]]) -> Codes | Embeddings:
    if not hasher.binary:
        whole = np.concatenate(rows) if rows else np.zeros((0, hasher.n_bits), np.float32)
        return Embeddings(whole, model=hasher.fingerprint)
    packed = np.concatenate(rows) if rows else np.zeros((0, (hasher.n_bits + 7) // 8), np.uint8)
    return Codes.from_packed(packed, hasher.bit_weights, n_bits=hasher.n_bits, model=hasher.fingerprint)


def _rows(codes: Codes | Embeddings) -> NDArray[Any]:
    return codes.values if isinstance(codes, Embeddings) else codes.packed


def _keep(stretch: Stretch, folder: Path, number: int) -> None:
    broken = np.frombuffer(json.dumps(stretch.broken).encode(), np.uint8)
    keep_arrays(folder, number, {"rows": stretch.rows, "places": np.array(stretch.places, np.int64), "broken": broken})


def _kept(folder: Path) -> list[Stretch]:
    """The stretches kept, up to the first that is missing or damaged."""
    stretches: list[Stretch] = []
    while (arrays := kept_arrays(folder, len(stretches))) is not None:
        broken = [(int(place), str(reason)) for place, reason in json.loads(bytes(arrays["broken"]))]
        stretches.append(Stretch(arrays["rows"], arrays["places"].tolist(), broken))
    return stretches
