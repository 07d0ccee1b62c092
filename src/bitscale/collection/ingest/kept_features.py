"""Pictures that a model was fitted on, with their features: kept until their codes are committed, so that no picture is
decoded or sent through the network twice; in a file when that is interrupted, so that the same command goes on.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.arrays import Float32
from bitscale.atomic import write_whole
from bitscale.errors import FileError
from bitscale.hashers import Hasher
from bitscale.hashers.classical import ClassicalHasher
from bitscale.hashers.picture_codes import BATCH, Batch, encode_files
from bitscale.pictures.arrays import Picture
from bitscale.pictures.listing import Found


@dataclass(frozen=True)
class Looked:
    """A picture that was looked at: what is known of its file, without the pixels, and its features."""

    picture: Picture
    values: Float32

    @classmethod
    def at(cls, picture: Picture, values: Float32) -> Looked:
        """A picture that was looked at, with its features; its pixels are not kept."""
        return cls(replace(picture, pixels=np.zeros((0, 0, 0), np.uint8)), values)


Sample = dict[Found, Looked]  # a file that has changed since is another key


def left_at(home: Path) -> Path:
    """Where a run that was stopped leaves them: beside its collection."""
    return home.with_name(f".{home.name}.fitting")


def forget_left(home: Path) -> bool:
    """Remove what a stopped run left beside a collection; whether there was anything."""
    left = left_at(home)
    there = left.is_file()
    try:
        left.unlink(missing_ok=True)
    except OSError as error:
        raise FileError(f"{left} cannot be removed: {error.strerror}. Remove it yourself, and run again.") from error
    return there


@contextmanager
def kept_features(path: Path | None, features: str) -> Iterator[Sample]:
    """The features that an interrupted run left, to be added to: written if the block is interrupted, else removed."""
    known: Sample = {} if path is None else _read(path, features)
    before = len(known)
    try:
        yield known
    except BaseException:
        if path is not None and len(known) > before:
            with suppress(OSError):  # the error that led here is the one to tell
                _write(path, features, known)
        raise
    if path is not None:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def encode_or_take(
    hasher: Hasher, files: Sequence[Found], known: Mapping[Found, Looked], **how: Any
) -> Generator[Batch, None, None]:
    """As `encode_files`, but for files that are known: those come first, and are not opened again."""
    there = [i for i, file in enumerate(files) if file in known] if isinstance(hasher, ClassicalHasher) else []
    for start in range(0, len(there), BATCH):
        places = there[start : start + BATCH]
        looked = [known[files[i]] for i in places]
        assert isinstance(hasher, ClassicalHasher)
        codes = hasher.encode_vectors(np.stack([one.values for one in looked]))
        yield Batch(places, [one.picture for one in looked], codes, [])
    taken = set(there)
    left = [i for i in range(len(files)) if i not in taken]
    if not left:
        return
    with closing(encode_files(hasher, [files[i].path for i in left], **how)) as batches:
        for batch in batches:
            broken = [(left[i], error) for i, error in batch.broken]
            yield replace(batch, places=[left[i] for i in batch.places], broken=broken)


def _write(path: Path, features: str, known: Sample) -> None:
    pictures = [_plain(one.picture) for one in known.values()]
    about = json.dumps({"features": features, "files": list(known), "pictures": pictures}).encode()
    values = np.stack([one.values for one in known.values()])
    write_whole(path, lambda file: np.savez(file, told=np.frombuffer(about, np.uint8), values=values))


def _plain(picture: Picture) -> dict[str, Any]:
    """All of it but the pixels as plain data, bytes as hexadecimal digits."""
    values = {each.name: getattr(picture, each.name) for each in fields(picture) if each.name != "pixels"}
    return {name: {"hex": value.hex()} if isinstance(value, bytes) else value for name, value in values.items()}


def _picture(plain: dict[str, Any]) -> Picture:
    values: dict[str, Any] = {
        name: bytes.fromhex(value["hex"]) if _is_bytes(value) else value for name, value in plain.items()
    }
    return Picture(pixels=np.zeros((0, 0, 0), np.uint8), **values)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"hex"}


def _read(path: Path, features: str) -> Sample:
    """The pictures in the file, if they are of these features; a file that cannot be read counts as empty."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            about, values = json.loads(arrays["told"].tobytes()), np.asarray(arrays["values"], np.float32)
        files = [Found(*file) for file in about["files"]]
        pictures = [_picture(one) for one in about["pictures"]]
        usable = about["features"] == features and values.ndim == 2 and len(files) == len(values) == len(pictures)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError, zipfile.BadZipFile):
        return {}
    return dict(zip(files, map(Looked, pictures, values), strict=True)) if usable else {}
