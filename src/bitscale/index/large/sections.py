"""An index file written part by part: sections grow one behind another, the header goes last into room left for it."""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bitscale.index.file import ALIGN, CHUNK, HEAD, MAGIC, VERSION
from bitscale.index.large.spool import read_at, write_at


class Section:
    """An array in the file that grows at its end, with the checksums of what was written."""

    def __init__(self, handle: int, number: int, begin: int, dtype: DTypeLike, inner: tuple[int, ...], promised: int):
        self.number, self.begin, self.dtype, self.inner = number, begin, np.dtype(dtype), inner
        self.row_bytes = self.dtype.itemsize * int(np.prod(inner, dtype=np.int64))
        self.rows, self._promised, self._handle = 0, promised, handle
        self._sums: list[int] = []
        self._in_chunk = 0

    @property
    def end(self) -> int:
        """The first place in the file behind this section."""
        return self.begin + max(self.rows, self._promised) * self.row_bytes

    def append(self, array: NDArray[Any]) -> None:
        """Write rows behind those that are there."""
        array = np.ascontiguousarray(array, self.dtype)
        write_at(self._handle, array, self.begin + self.rows * self.row_bytes)
        self.rows += len(array)
        data = array.reshape(-1).view(np.uint8).data
        while data:
            part = data[: CHUNK - self._in_chunk]
            if not self._in_chunk:
                self._sums.append(0)
            self._sums[-1] = zlib.crc32(part, self._sums[-1])
            self._in_chunk = (self._in_chunk + len(part)) % CHUNK
            data = data[len(part) :]

    def read(self, begin: int, end: int) -> NDArray[Any]:
        """The rows [begin, end) as they were written."""
        rows = np.empty((end - begin, *self.inner), self.dtype)
        read_at(self._handle, rows, self.begin + begin * self.row_bytes)
        return rows

    def described(self) -> dict[str, Any]:
        """The header's description of this section."""
        if self.rows < self._promised:
            raise AssertionError("a section is shorter than promised")
        return {"type": self.dtype.name, "shape": [self.rows, *self.inner], "sums": self._sums}


class SectionFile:
    """The file while it is being made. A section whose length is known may be filled beside those behind it."""

    def __init__(self, path: Path, header_bytes: int) -> None:
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        self._room = header_bytes
        self._sections: list[Section] = []

    def begin(self, dtype: DTypeLike, inner: tuple[int, ...] = (), rows: int = 0) -> Section:
        """A new section, of so many rows where that is known; else it must be full before the next one begins."""
        at = self._sections[-1].end if self._sections else HEAD.size + self._room
        section = Section(self._handle, len(self._sections), at + -at % ALIGN, dtype, inner, rows)
        self._sections.append(section)
        return section

    def finish(self, header: dict[str, Any]) -> None:
        """Write the header, and all of it to the disk."""
        header = {**header, "sections": [section.described() for section in self._sections]}
        body = json.dumps(header, separators=(",", ":"), allow_nan=False).encode().ljust(self._room)
        if len(body) > self._room:
            raise AssertionError("the header outgrew the room left for it")
        checksum = zlib.crc32(struct.pack("<II", VERSION, len(body)) + body)
        write_at(self._handle, np.frombuffer(HEAD.pack(MAGIC, VERSION, len(body), checksum) + body, np.uint8), 0)
        end = self._sections[-1].end if self._sections else HEAD.size + self._room
        os.truncate(self._handle, end)
        os.fsync(self._handle)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._handle)
