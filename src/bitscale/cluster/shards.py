"""A folder of codes in Parquet: one shard a block, and `codes.json`, which says what they are and which belong to it.

A shard has one row a picture, in order: its name, content (SHA-256), size, time, width, height, EXIF, look and code; a
picture that could not be read has a reason in the place of a code. Shards are written whole or not at all.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.atomic import write_whole
from bitscale.cluster.blocks import FORMAT, Block
from bitscale.codes import Codes
from bitscale.errors import CorruptFile, DataError, FileError, InputError, NewerFormat
from bitscale.hashers.base import Hasher
from bitscale.pictures.arrays import Picture
from bitscale.pictures.exif import checked_exif
from bitscale.version import __version__

ABOUT = "codes.json"
MODEL = "model.safetensors"  # which made the codes
KIND = "shards of codes"
KEY = b"bitscale"
SHARD = re.compile(r"\d{6,}-[0-9a-f]{16}\.parquet")


@dataclass(frozen=True)
class Row:
    """A picture of a shard: encoded (`picture` tells of its file, without pixels), or broken for a reason."""

    name: str
    picture: Picture | None
    reason: str | None = None


@dataclass(frozen=True)
class Shard:
    """Some consecutive pictures; `codes` are those of the rows that have a picture, in order."""

    rows: list[Row]
    codes: Codes


def shard_bytes(rows: Sequence[Row], codes: Codes) -> bytes:
    """A shard as the bytes of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    packed = iter(codes.packed)
    coded = [None if row.picture is None else next(packed).tobytes() for row in rows]
    pictures = [row.picture for row in rows]
    table = pa.table(
        {
            "name": pa.array([_text(row.name) for row in rows], pa.string()),
            "name_bytes": pa.array([_raw(row.name) for row in rows], pa.binary()),
            "content": pa.array([one and one.content for one in pictures], pa.binary(32)),
            "size": pa.array([one and one.size for one in pictures], pa.int64()),
            "modified": pa.array([one and one.modified for one in pictures], pa.int64()),
            "format": pa.array([one and one.format for one in pictures], pa.string()),
            "width": pa.array([one and one.width for one in pictures], pa.int64()),
            "height": pa.array([one and one.height for one in pictures], pa.int64()),
            "exif": pa.array([one and json.dumps(one.exif) for one in pictures], pa.string()),
            "look": pa.array([one and one.look for one in pictures], pa.binary()),
            "code": pa.array(coded, pa.binary((codes.n_bits + 7) // 8)),
            "reason": pa.array([row.reason for row in rows], pa.string()),
        }
    )
    about = {"kind": KIND, "format": FORMAT, "model": codes.model, "bit_weights": codes.bit_weights.tolist()}
    file = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({KEY: json.dumps(about).encode()}), file, compression="zstd")
    return file.getvalue()


def _text(name: str) -> str:
    return name.encode(errors="backslashreplace").decode()


def _raw(name: str) -> bytes | None:
    """The bytes of a name that is no text."""
    return None if _text(name) == name else os.fsencode(name)


def read_shard(path: Path, model: str | None = None) -> Shard:
    """A shard, if it is one, sound, and of the model."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        # by this thread alone: one of Arrow's that lets go of the bytes while Python ends aborts the process
        table = parquet.ParquetFile(pa.BufferReader(path.read_bytes())).read(use_threads=False)
        about = json.loads((table.schema.metadata or {}).get(KEY, b"null"))
        if about["kind"] != KIND:
            raise ValueError("it is of another kind")
        if int(about["format"]) > FORMAT:
            raise NewerFormat(f"{path} has format {about['format']}; this bitscale reads up to {FORMAT}.")
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        rows = [_row(dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]
        coded = [code for code in columns["code"] if code is not None]
        if len(coded) != sum(row.picture is not None for row in rows):
            raise ValueError("rows and codes do not agree")
        width = (len(about["bit_weights"]) + 7) // 8
        packed: NDArray[np.uint8] = np.frombuffer(b"".join(coded), np.uint8).reshape(len(coded), width)
        codes = Codes(packed, about["bit_weights"], about["model"])
    except FileNotFoundError:
        raise FileError(f"{path} is missing. Run the same `bitscale encode` again; it makes what is missing.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, pa.ArrowException) as error:
        raise CorruptFile(
            f"{path} is damaged or is no shard of codes ({error}). Remove it and run the same `bitscale encode` again."
        ) from error
    if model is not None and codes.model != model:
        raise InputError(f"{path} holds codes of model {codes.model}, and {model} is wanted.")
    return Shard(rows, codes)


def _row(plain: Mapping[str, Any]) -> Row:
    raw = plain["name_bytes"]
    name = os.fsdecode(raw) if raw is not None else str(plain["name"])
    if plain["code"] is None:
        return Row(name, None, str(plain["reason"]))
    picture = Picture(
        pixels=np.zeros((0, 0, 3), np.uint8),
        content=bytes(plain["content"]),
        size=int(plain["size"]),
        modified=int(plain["modified"]),
        format=str(plain["format"]),
        width=int(plain["width"]),
        height=int(plain["height"]),
        look=bytes(plain["look"]),
        exif=dict(checked_exif(json.loads(plain["exif"]))),
    )
    return Row(name, picture)


# ---------------------------------------------------------------------- the folder


def is_shards(folder: str | os.PathLike[str]) -> bool:
    """Whether a path is a folder of codes that `encode --ray` made, finished or not."""
    try:
        return bool(json.loads((Path(folder) / ABOUT).read_bytes())["kind"] == KIND)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def claim(folder: Path, hasher: Hasher, model: bytes) -> None:
    """Make the folder, or see that it is ours, put the model's file there, and say that the codes are not complete."""
    if folder.exists() and not is_shards(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError(f"{folder} is there already and is no folder of codes. Choose a name that is free.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / MODEL, lambda file: file.write(model))
        _write_about(folder, hasher, [], complete=False)
    except OSError as error:
        raise FileError(f"{folder} cannot be written: {error.strerror}. Choose another place.") from error


def finish(folder: Path, hasher: Hasher, blocks: Sequence[Block]) -> dict[str, Any]:
    """Say that the codes are complete, and remove shards of inputs that are no more; what `codes.json` says."""
    names = [block.shard for block in blocks]
    about = _write_about(folder, hasher, [_counted(folder / name) for name in names], complete=True)
    for path in folder.iterdir():
        if SHARD.fullmatch(path.name) and path.name not in set(names):
            path.unlink(missing_ok=True)
    return about


def _counted(path: Path) -> dict[str, Any]:
    shard = read_shard(path)
    return {"name": path.name, "items": len(shard.codes), "skipped": len(shard.rows) - len(shard.codes)}


def _write_about(folder: Path, hasher: Hasher, shards: list[dict[str, Any]], *, complete: bool) -> dict[str, Any]:
    weights = hasher.bit_weights
    about = {
        "kind": KIND,
        "format": FORMAT,
        "complete": complete,
        "items": sum(one["items"] for one in shards),
        "skipped": sum(one["skipped"] for one in shards),
        "n_bits": hasher.n_bits,
        "bit_weights": None if weights is None else np.asarray(weights).tolist(),
        "model": hasher.fingerprint,
        "method": hasher.name,
        "features": hasher.features,
        "written_by": __version__,
        "shards": shards,
    }
    write_whole(folder / ABOUT, lambda file: file.write(json.dumps(about, indent=1).encode() + b"\n"))
    return about


def about(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The content of a folder's `codes.json`; a folder that is not finished is refused."""
    path = Path(folder) / ABOUT
    try:
        contents: dict[str, Any] = json.loads(path.read_bytes())
        if contents["kind"] != KIND:
            raise ValueError("it is of another kind")
        if int(contents["format"]) > FORMAT:
            raise NewerFormat(f"{path} has format {contents['format']}; this bitscale reads up to {FORMAT}.")
        int(contents["items"]), int(contents["n_bits"]), contents["model"], contents["bit_weights"]
        if not contents["complete"]:
            raise DataError(f"{folder} is not complete. Run the same `bitscale encode` again; it goes on.")
        for shard in contents["shards"]:
            if not SHARD.fullmatch(shard["name"]):
                raise ValueError(f"{shard['name']!r} names no shard")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptFile(f"{folder} is no folder of codes, or is damaged ({error}). Encode anew.") from error
    return contents


def read_shards(folder: str | os.PathLike[str]) -> Iterator[Shard]:
    """The shards of a finished folder of codes, in the order of their pictures."""
    contents = about(folder)
    for shard in contents["shards"]:
        yield read_shard(Path(folder) / shard["name"], contents["model"])


def read_codes(folder: str | os.PathLike[str]) -> tuple[Codes, list[str]]:
    """All codes of a finished folder in one piece, and the names of their pictures."""
    shards = list(read_shards(folder))
    if not shards:
        raise DataError(f"{folder} holds no codes.")
    packed = np.concatenate([shard.codes.packed for shard in shards])
    names = [row.name for shard in shards for row in shard.rows if row.picture is not None]
    return Codes(packed, shards[0].codes.bit_weights, shards[0].codes.model), names
