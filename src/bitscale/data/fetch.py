"""Bring files from their official addresses: resumed where they broke off, checked, unpacked without trust.

A download lives in `NAME.part` until its size and checksum are right; only then does it get its name.
An archive is unpacked into a hidden folder first; a file that would land outside, a link or a device
stops everything before one byte is in place. Nor is a file written over that was there before and is another.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from bitscale.errors import DataError

Progress = Callable[[str, int, int], None]  # what, done so far, total

MAX_FILES = 200_000
_BLOCK = 1 << 18
_TIMEOUT = 60.0
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, OSError, NotImplementedError)


@dataclass(frozen=True)
class Source:
    """One file to bring: where from, what it must be, and where its content goes under the data root."""

    urls: tuple[str, ...]  # tried in order
    md5: str  # as the owners publish it
    size: int  # bytes
    folder: str  # under the data root: where the file, or what it unpacks to, goes
    unpack: bool = False
    max_unpacked: int = 1 << 30  # bytes

    @property
    def file_name(self) -> str:
        """The file's name: the last part of its address."""
        return self.urls[0].rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Fetched:
    """The outcome of `fetch_source` for one source."""

    path: Path
    downloaded: int  # bytes over the network in this call
    resumed_at: int  # bytes that were there already
    unpacked: tuple[Path, ...]


def fetch_source(source: Source, root: Path, progress: Progress | None = None) -> Fetched:
    """Download one source to its place under `root`, check it, and unpack it where it is an archive."""
    target = root / source.folder
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{target} cannot be made: {error.strerror}. Choose another root= (--root).") from error
    place = target / source.file_name
    resumed, downloaded = 0, 0
    if not os.path.lexists(place):
        resumed, downloaded = download(source, place, progress)
    elif not (place.is_file() and place.stat().st_size == source.size and md5_of(place) == source.md5):
        raise _taken(place)
    unpacked = tuple(unpack(place, target, source.max_unpacked, progress)) if source.unpack else ()
    if unpacked:
        place.unlink()  # its content is in place; the archive only takes space
    return Fetched(place, downloaded, resumed, unpacked)


def download(source: Source, place: Path, progress: Progress | None = None) -> tuple[int, int]:
    """Download to `place`, going on from `place.part`; returns (bytes that were there, bytes brought)."""
    part = place.with_name(place.name + ".part")
    start = part.stat().st_size if part.exists() else 0
    if start > source.size:
        part.unlink()
        start = 0
    from http.client import HTTPException

    brought, problems = 0, []
    for url in source.urls:
        try:
            brought += _append(url, part, source, progress)
        except (OSError, HTTPException) as error:
            problems.append(f"{url}: {error}")
        if part.exists() and part.stat().st_size >= source.size:
            break
    _check(source, part, start, problems)
    os.replace(part, place)
    return start, brought


def _append(url: str, part: Path, source: Source, progress: Progress | None) -> int:
    """Ask for what is missing of `part`; a server that cannot resume sends, and gets, the whole anew."""
    start = part.stat().st_size if part.exists() else 0
    if start == source.size:
        return 0
    if not url.startswith(("https://", "http://")):
        raise DataError(f"only http and https addresses are fetched. Got {url}.")
    import urllib.request

    request = urllib.request.Request(url, headers={"User-Agent": "bitscale"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
        resumed = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        done = start if resumed else 0
        _check_length(answer.headers.get("Content-Length"), source.size - done)
        brought = 0
        with part.open("ab" if resumed else "wb") as file:
            while block := answer.read(_BLOCK):
                file.write(block)
                done, brought = done + len(block), brought + len(block)
                if done > source.size:
                    break  # not the file we know; the check will say so
                if progress:
                    progress(source.file_name, done, source.size)
            file.flush()
            os.fsync(file.fileno())
    return brought


def _check_length(announced: str | None, expected: int) -> None:
    """Refuse, before a byte is kept, a page in the place of the file: the next address would be appended to it."""
    from http.client import HTTPException

    if announced is not None and announced.isdecimal() and int(announced) != expected:
        raise HTTPException(f"it offers {int(announced):,} bytes where {expected:,} are expected.")


def _check(source: Source, part: Path, start: int, problems: list[str]) -> None:
    size = part.stat().st_size if part.exists() else 0
    if size < source.size:
        why = " ".join(problems) or "The connection closed early."
        raise DataError(
            f"{source.file_name} is not complete: {size:,} of {source.size:,} bytes. {why} "
            f"{'What came is kept; run' if size else 'Run'} the same command again to go on."
        )
    md5 = md5_of(part)
    if size != source.size or md5 != source.md5:
        part.unlink()
        raise DataError(
            f"{source.file_name} is not the published file: {size:,} bytes with md5 {md5}, expected "
            f"{source.size:,} with {source.md5}. It was removed{' (it was begun earlier)' if start else ''}; "
            "run again, or bring it yourself from the dataset's home page."
        )


def md5_of(path: Path) -> str:
    """The md5 of a file: what the datasets' owners publish; it guards against damage, not against malice."""
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def unpack(archive: Path, target: Path, max_bytes: int, progress: Progress | None = None) -> list[Path]:
    """Unpack a tar or zip into `target`, or refuse it whole; returns the files written."""
    with tempfile.TemporaryDirectory(prefix=".unpack-", dir=target) as hidden:
        try:
            names = _unpack_hidden(archive, Path(hidden), max_bytes, progress)
        except _BROKEN as error:
            raise DataError(
                f"{archive.name} cannot be unpacked ({error}): damaged, cut short, or the disk is full. "
                "Remove it and fetch again."
            ) from error
        for name in names:
            if os.path.lexists(target / name) and not _same(Path(hidden, name), target / name):
                raise _taken(target / name)
        for name in names:
            try:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                os.replace(Path(hidden, name), target / name)
            except OSError as error:
                raise DataError(f"{target / name} cannot be put in place: {error.strerror}. Move it away.") from error
    return [target / name for name in names]


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _taken(place: Path) -> DataError:
    return DataError(f"{place} is there already, and is not the published file. Move it away, and run again.")


def _unpack_hidden(archive: Path, hidden: Path, max_bytes: int, progress: Progress | None) -> list[str]:
    names: list[str] = []
    total = 0
    with _opened(archive, hidden) as members:
        for name, size, content in members:
            total += size
            if len(names) >= MAX_FILES or total > max_bytes:
                raise DataError(
                    f"{archive.name} unpacks to more than {MAX_FILES:,} files or {max_bytes:,} bytes. "
                    "It is not the published archive; remove it and fetch again."
                )
            _write(hidden / name, content, size, archive)
            names.append(name)
            if progress:
                progress(f"unpack {archive.name}", total, max_bytes)
    return names


Member = tuple[str, int, IO[bytes]]  # safe relative name, size, content


@contextmanager
def _opened(archive: Path, hidden: Path) -> Iterator[Iterator[Member]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            yield _zip_members(zipped)
    else:
        with tarfile.open(archive, "r:*") as tar:
            yield _tar_members(tar, hidden)


def _tar_members(tar: tarfile.TarFile, hidden: Path) -> Iterator[Member]:
    for member in tar:
        try:
            untouched = tarfile.data_filter(member, str(hidden)).name == member.name
        except tarfile.FilterError as error:
            raise _refused(str(tar.name), member.name, f"may not be unpacked ({error})") from error
        if not untouched:
            raise _refused(str(tar.name), member.name, "would be written outside the data folder")
        if member.isdir():
            continue
        content = tar.extractfile(member) if member.isreg() else None
        if content is None:
            raise _refused(str(tar.name), member.name, "is a link or a device, not a file")
        yield os.path.normpath(member.name), member.size, content


def _zip_members(zipped: zipfile.ZipFile) -> Iterator[Member]:
    for member in zipped.infolist():
        name = _safe(member.filename, str(zipped.filename))
        mode = member.external_attr >> 16
        if member.is_dir():
            continue
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise _refused(str(zipped.filename), member.filename, "is a link or a device, not a file")
        if member.flag_bits & 1:
            raise _refused(str(zipped.filename), member.filename, "is encrypted")
        with zipped.open(member) as content:
            yield name, member.file_size, content


def _safe(name: str, archive: str) -> str:
    """The name, where it stays below the folder it is unpacked into on any system."""
    path = PurePosixPath(name)
    if (
        not name
        or path.is_absolute()
        or ".." in path.parts
        or any(character in name for character in "\\:\0")
        or len(name) > 1024
    ):
        raise _refused(archive, name, "would be written outside the data folder")
    return str(path)


def _refused(archive: str, name: str, why: str) -> DataError:
    return DataError(f"{Path(archive).name} was refused: {name!r} {why}. Nothing was unpacked; remove the archive.")


def _write(path: Path, content: IO[bytes], size: int, archive: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        left = size
        while left and (block := content.read(min(_BLOCK, left))):
            file.write(block)
            left -= len(block)
    if left or content.read(1):
        raise DataError(f"{path.name} in {archive.name} is not as long as the archive says. Fetch it again.")


def free_space(root: Path) -> int:
    """Bytes free where `root` is or would be."""
    while not root.exists():
        root = root.parent
    return shutil.disk_usage(root).free
