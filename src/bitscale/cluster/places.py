"""Where pictures to encode lie: folders, tar files, object stores; what is there, and how a node fetches it.

A folder's pictures are read where they lie. Pictures of a tar file or of an object store are copied to a temporary
folder of the node, some at a time and under names of our own, so that the decoder and its limits are the same for all.
A tar is read as a stream of bytes; nothing it says is run, unpickled or used as a path.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

from bitscale.errors import DataError, InputError
from bitscale.pictures.decode import LIMITS, SUFFIXES
from bitscale.pictures.listing import list_pictures

TAR = ".tar"
URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.I)
INSIDE = "::"  # between the name of a tar file and that of a picture in it
_BLOCK = 1 << 20


class Found(NamedTuple):
    """A picture or a tar file at some place: its name, its size, and a word that changes when it does."""

    name: str
    size: int
    version: str


class Fetched(NamedTuple):
    """A picture on this node's disk: the file, and the name it has where it came from."""

    path: str
    name: str


def find(inputs: Iterable[str]) -> list[Found]:
    """The pictures and tar files at or below each of the inputs, in order; nothing is opened."""
    files: list[Found] = []
    for place in inputs:
        there = _in_store(place) if URL.match(place) else _on_disk(place)
        if not there:
            raise DataError(
                f"no picture and no {TAR} file is at {place}. Known endings: {', '.join(sorted(SUFFIXES))}."
            )
        files += there
    return files


def is_tar(name: str) -> bool:
    """Whether a name is that of a tar file."""
    return name.lower().endswith(TAR)


def _on_disk(place: str) -> list[Found]:
    path = os.path.abspath(place)
    if not os.path.exists(path):
        raise DataError(f"there is nothing at {place}.")
    if not os.path.isdir(path):
        return [_file(path)]
    tars = sorted(str(tar) for tar in Path(path).rglob(f"*{TAR}") if tar.is_file() and not tar.name.startswith("."))
    pictures = [Found(file.path, file.size, str(file.modified)) for file in list_pictures(path).files]
    return [*pictures, *map(_file, tars)]


def _file(path: str) -> Found:
    status = os.stat(path)
    return Found(path, status.st_size, str(max(status.st_mtime_ns, 0)))


def _in_store(address: str) -> list[Found]:
    store, path = open_store(address)
    scheme = address.split("://", 1)[0]
    try:
        there: Mapping[str, Mapping[str, Any]] = store.find(path, detail=True)
    except (OSError, ValueError, PermissionError) as error:
        raise DataError(f"{address} cannot be listed ({error}). Are address, keys and region right?") from error
    pictures = [name for name in sorted(there) if is_tar(name) or os.path.splitext(name)[1].lower() in SUFFIXES]
    return [
        Found(f"{scheme}://{name.lstrip('/')}", int(there[name].get("size") or 0), _version(there[name]))
        for name in pictures
        if not os.path.basename(name).startswith(".")
    ]


def _version(about: Mapping[str, Any]) -> str:
    for key in ("ETag", "mtime", "LastModified", "last_modified", "created"):
        if about.get(key):
            return str(about[key])
    return ""


def open_store(url: str) -> tuple[Any, str]:
    """The file system that a URL speaks of, as fsspec has them, and the path in it; S3 by pyarrow's client."""
    import fsspec

    scheme, path = url.split("://", 1)
    try:
        if scheme.lower() != "s3":
            store, path = fsspec.core.url_to_fs(url)
            return store, path
        return _s3(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")), path
    except (ImportError, ValueError) as error:
        raise InputError(f"{url} cannot be opened ({error}). Install what reads {scheme}://.") from None


@cache
def _s3(endpoint: str | None) -> Any:
    """The S3 that the environment speaks of, connected to once a process."""
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import S3FileSystem

    return ArrowFSWrapper(S3FileSystem(endpoint_override=endpoint) if endpoint else S3FileSystem())


def fetch(names: list[str], folder: Path, most: int) -> Iterator[list[Fetched]]:
    """The pictures of a block on this node's disk, at most so many at a time; what was copied goes with the next."""
    for group in _groups(_each(names, folder), most):
        yield group
        for one in group:
            if one.path != one.name:
                Path(one.path).unlink(missing_ok=True)


def _groups(pictures: Iterator[Fetched], most: int) -> Iterator[list[Fetched]]:
    group: list[Fetched] = []
    for one in pictures:
        group.append(one)
        if len(group) == most:
            yield group
            group = []
    if group:
        yield group


def _each(names: list[str], folder: Path) -> Iterator[Fetched]:
    count = 0
    for name in names:
        if is_tar(name):
            with _opened(name) as file:
                for picture in _members(name, file, folder, count):
                    count += 1
                    yield picture
        elif URL.match(name):
            count += 1
            yield _copied(name, folder / f"{count:08}{os.path.splitext(name)[1].lower()}")
        else:
            yield Fetched(name, name)


def _opened(name: str) -> IO[bytes]:
    try:
        if not URL.match(name):
            return open(name, "rb")
        store, path = open_store(name)
        opened: IO[bytes] = store.open(path, "rb")
        return opened
    except OSError as error:
        raise DataError(f"{name} cannot be opened ({error.strerror or error}). Is it there for every node?") from error


def _members(name: str, file: IO[bytes], folder: Path, count: int) -> Iterator[Fetched]:
    """The pictures in a tar, in its order."""
    try:
        with tarfile.open(fileobj=file, mode="r|") as tar:
            for member in tar:
                base, suffix = os.path.basename(member.name), os.path.splitext(member.name)[1].lower()
                if not member.isfile() or suffix not in SUFFIXES or base.startswith("."):
                    continue
                count += 1
                path, content = folder / f"{count:08}{suffix}", tar.extractfile(member)
                assert content is not None
                _write(content, path, member.size, int(member.mtime * 1e9))
                yield Fetched(str(path), f"{name}{INSIDE}{member.name}")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{name} cannot be read as a tar file ({error}). Make it anew, uncompressed.") from error


def _copied(name: str, path: Path) -> Fetched:
    """One object on this node's disk; one that is not there any more leaves an empty place, which no picture is."""
    try:
        store, inside = open_store(name)
        about = store.info(inside)
        with store.open(inside, "rb") as file:
            _write(file, path, int(about.get("size") or 0), _nanoseconds(about))
    except FileNotFoundError:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{name} cannot be fetched ({error}). The same command goes on from here.") from error
    return Fetched(str(path), name)


def _nanoseconds(about: Mapping[str, Any]) -> int:
    """When an object was changed, where its store tells."""
    changed = next((about[key] for key in ("mtime", "LastModified", "last_modified") if about.get(key)), 0)
    seconds = changed.timestamp() if isinstance(changed, datetime) else changed
    return int(seconds * 1e9) if isinstance(seconds, int | float) else 0


def _write(content: IO[bytes], path: Path, size: int, modified: int) -> None:
    """A copy, with the time of the original; one larger than a picture may be is left as a hole, which is refused."""
    with path.open("wb") as file:
        if size > LIMITS.file:
            file.truncate(size)
        else:
            shutil.copyfileobj(content, file, _BLOCK)
    os.utime(path, ns=(max(modified, 0), max(modified, 0)))
