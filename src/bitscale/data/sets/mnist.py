"""MNIST and Fashion-MNIST in the official idx format, plain or gzipped: 60,000 to train, 10,000 queries."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitscale.atomic import write_whole
from bitscale.data.fetch import Source
from bitscale.data.images import Joined, RecordImages
from bitscale.data.info import DatasetInfo, require
from bitscale.data.labelled import Labelled
from bitscale.data.split import PROTOCOLS, Split, check_protocol, split_parts, split_pool
from bitscale.errors import DataError

FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
DIGITS = tuple("0123456789")
CLOTHES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
T = TypeVar("T")
_MAX_BYTES = 1 << 32


def read_header(file: IO[bytes] | gzip.GzipFile, path: Path) -> tuple[int, ...]:
    """The shape an idx file of bytes announces; `file` is left at its first value."""
    magic = file.read(4)
    if len(magic) < 4 or magic[:3] != b"\0\0\x08" or not 1 <= magic[3] <= 3:
        raise DataError(f"{path} is not an idx file of bytes (it begins with {magic!r}). Fetch it again.")
    sizes = file.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise DataError(f"{path} ends within its header. Fetch it again.")
    shape = struct.unpack(f">{magic[3]}I", sizes)
    if int(np.prod(shape, dtype=object)) > _MAX_BYTES:
        raise DataError(f"{path} announces the shape {shape}, more than can be. Fetch it again.")
    return shape


def read_labels(path: Path) -> NDArray[np.int64]:
    """The values of a one-dimensional idx file, plain or gzipped."""
    with _open(path) as file:
        shape = _guard(path, lambda: read_header(file, path))
        values: bytes = _guard(path, lambda: file.read(shape[0] + 1))
    if len(shape) != 1 or len(values) != shape[0]:
        raise DataError(f"{path} announces {shape} labels and holds {len(values):,}: it is damaged. Fetch it again.")
    return np.frombuffer(values, np.uint8).astype(np.int64)


def open_images(path: Path) -> RecordImages:
    """The images of a plain idx3 file, each read when it is asked for."""
    with path.open("rb") as file:
        shape = read_header(file, path)
        offset = file.tell()
    size = path.stat().st_size
    if len(shape) != 3 or size != offset + int(np.prod(shape)):
        raise DataError(
            f"{path} announces {shape} pixels and is {size:,} bytes long: it is cut short or damaged. "
            "Remove it and fetch it again."
        )
    return RecordImages(path, shape[1:], offset=offset)


def unzipped(path: Path) -> Path:
    """The plain file of a gzipped one: written once beside it, or into the user's own cache directory."""
    plain = path.with_suffix("")
    try:
        if not plain.exists() and not os.access(path.parent, os.W_OK):
            plain = _cached_place(path)
        if not plain.exists():
            write_whole(plain, lambda out: _guard(path, lambda: _inflate(path, out)))
    except OSError as error:
        raise DataError(f"{path} cannot be unzipped to {plain}: {error.strerror}. Make room, or unzip it.") from error
    return plain


def _cached_place(path: Path) -> Path:
    """Where no one but the user can write: a shared temporary folder could hold pixels of someone else."""
    from platformdirs import user_cache_path

    status = path.stat()
    about = os.fsencode(path.resolve()) + f" {status.st_size} {status.st_mtime_ns}".encode()
    known = hashlib.sha256(about).hexdigest()[:16]
    folder = user_cache_path("bitscale", appauthor=False) / "unzipped"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{path.stem}-{known}"


def _inflate(path: Path, out: IO[bytes]) -> None:
    with gzip.open(path, "rb") as file:
        shape = read_header(file, path)
        out.write(struct.pack(f">I{len(shape)}I", 0x0800 | len(shape), *shape))
        left = int(np.prod(shape))
        while block := file.read(min(1 << 20, left + 1)):
            if len(block) > left:
                raise DataError(f"{path} holds more than the {shape} values it announces. Fetch it again.")
            out.write(block)
            left -= len(block)
    if left:
        raise DataError(f"{path} holds {left:,} bytes less than it announces: it is cut short. Fetch it again.")


def _open(path: Path) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _guard(path: Path, work: Callable[[], T]) -> T:
    try:
        return work()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be unzipped ({error}): it is cut short or damaged. Fetch it again.") from error


def find(folder: Path, name: str) -> Path | None:
    """The plain file, else the gzipped one, else None."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def read_part(folder: Path, images: str, labels: str, names: tuple[str, ...]) -> Labelled:
    """One of the two parts of a set."""
    image_file, label_file = find(folder, images), find(folder, labels)
    if image_file is None or label_file is None:
        raise DataError(f"{images} and {labels} must both be in {folder}. Fetch them again.")
    plain = unzipped(image_file) if image_file.suffix == ".gz" else image_file
    return Labelled(open_images(plain), read_labels(label_file), names)


def load(info: DatasetInfo, names: tuple[str, ...], root: Path, protocol: str, seed: int) -> Split:
    """P0 and P0-db keep the official parts; C1 and C2 draw from all images."""
    check_protocol(protocol, info.protocols, info.name)
    require(info, root)
    train = read_part(root / info.folder, FILES[0], FILES[1], names)
    test = read_part(root / info.folder, FILES[2], FILES[3], names)
    if protocol in ("P0", "P0-db"):
        return split_parts(info.name, protocol, train, test, seed=seed, drawn=False)
    pool = Labelled(Joined([train.images, test.images]), np.concatenate([train.labels, test.labels]), names)
    return split_pool(info.name, protocol, pool, seed=seed)


def _load_mnist(root: Path, protocol: str, seed: int) -> Split:
    return load(MNIST, DIGITS, root, protocol, seed)


def _load_fashion_mnist(root: Path, protocol: str, seed: int) -> Split:
    return load(FASHION_MNIST, CLOTHES, root, protocol, seed)


def _missing(folder: str, root: Path) -> tuple[str, ...]:
    return tuple(name for name in FILES if find(root / folder, name) is None)


def _sources(folder: str, bases: tuple[str, ...], sums: tuple[tuple[str, int], ...]) -> tuple[Source, ...]:
    return tuple(
        Source(tuple(f"{base}{name}.gz" for base in bases), md5, size, folder)
        for name, (md5, size) in zip(FILES, sums, strict=True)
    )


MNIST = DatasetInfo(
    name="mnist",
    title="MNIST",
    n_images=70_000,
    image_size="28x28 grey",
    n_labels=10,
    multi_label=False,
    licence="CC BY-SA 3.0",
    home="http://yann.lecun.com/exdb/mnist/",
    folder="mnist",
    protocols=PROTOCOLS,
    load=_load_mnist,
    missing=lambda root: _missing("mnist", root),
    sources=_sources(
        "mnist",
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "http://yann.lecun.com/exdb/mnist/",
        ),
        (
            ("f68b3c2dcbeaaa9fbdd348bbdeb94873", 9_912_422),
            ("d53e105ee54ea40749a09fcbcd1e9432", 28_881),
            ("9fb629c4189551a2d022fa330f9573f3", 1_648_877),
            ("ec29112dd5afa0611ce80d1b7f02629c", 4_542),
        ),
    ),
)

FASHION_MNIST = DatasetInfo(
    name="fashion-mnist",
    title="Fashion-MNIST",
    n_images=70_000,
    image_size="28x28 grey",
    n_labels=10,
    multi_label=False,
    licence="MIT",
    home="https://github.com/zalandoresearch/fashion-mnist",
    folder="fashion-mnist",
    protocols=PROTOCOLS,
    load=_load_fashion_mnist,
    missing=lambda root: _missing("fashion-mnist", root),
    sources=_sources(
        "fashion-mnist",
        (
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        ),
        (
            ("8d4fb7e6c68d591d4c3dfef9ec88bf0d", 26_421_880),
            ("25c81989df183df01b3e8a0aad5dffbe", 29_515),
            ("bef4ecab320f06d8554ea6380940ec79", 4_422_102),
            ("bb300cfdad3c16e7a12a480ee83cd310", 5_148),
        ),
    ),
)
