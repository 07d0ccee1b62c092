"""Looks that a stop does not lose, of pictures whose looks a collection does not keep: on disk until all are seen.

A folder holds `000000.npz`, `000001.npz`, ...: consecutive pictures, a look each, their sizes in full, and whether they
could be read. The folder's name comes from the files' names, sizes, times of change and contents.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bitscale.collection.store.seen import UNFINISHED_LOOKS, Seen
from bitscale.data.unfinished import file_identity, finished, keep_arrays, kept_arrays, unfinished
from bitscale.pictures.arrays import Picture
from bitscale.pictures.form import Form
from bitscale.pictures.look import LOOK_BYTES
from bitscale.pictures.workers import decode_files

STRETCH = 2_000  # pictures in one file
FORM = Form((64, 64))  # enough for a look


@dataclass
class Shelf:
    """Where pictures seen are kept: whole stretches on disk, the last ones here until they are a stretch."""

    folder: Path
    stretches: int = 0
    waiting: list[Seen | None] = field(default_factory=list)

    def put(self, seen: Seen | None) -> None:
        """Take one more; None: it cannot be read."""
        self.waiting.append(seen)
        if len(self.waiting) == STRETCH:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if not self.waiting:
            return
        rows = [one or Seen(0, 0, bytes(LOOK_BYTES), {}) for one in self.waiting]
        arrays: dict[str, Any] = {"looks": np.stack([np.frombuffer(one.look, np.uint8) for one in rows])}
        arrays["sizes"] = np.array([(one.width, one.height) for one in rows], np.int64)
        arrays["read"] = np.array([one is not None for one in self.waiting])
        keep_arrays(self.folder, self.stretches, arrays)
        self.stretches += 1
        self.waiting = []

    def take(self) -> Generator[Seen | None, None, None]:
        """The looks that earlier calls put here, in order, up to the first file that is missing or damaged."""
        while (arrays := kept_arrays(self.folder, self.stretches)) is not None and "looks" in arrays:
            self.stretches += 1
            sizes, read_at_all = arrays["sizes"].tolist(), arrays["read"].tolist()
            for look, (width, height), read in zip(arrays["looks"], sizes, read_at_all, strict=True):
                yield Seen(width, height, look.tobytes(), {}) if read else None


def kept_looks(
    files: Sequence[tuple[str, bytes | None]], workers: int | None = None
) -> Generator[Seen | None, None, None]:
    """The looks of pictures, given by path and content, in order; those that a stopped call kept are not read anew.

    None stands for a picture that cannot be read, or whose file holds another content.
    """
    identity = [[*file_identity(path), content and content.hex()] for path, content in files]
    shelf = Shelf(unfinished(UNFINISHED_LOOKS, identity))
    done = 0
    for seen in shelf.take():
        yield seen
        done += 1
    try:
        with closing(decode_files([path for path, _ in files[done:]], FORM, workers=workers)) as pictures:
            for (_, content), picture in zip(files[done:], pictures, strict=True):
                seen = None
                if isinstance(picture, Picture) and content in (None, picture.content):
                    seen = Seen(picture.width, picture.height, picture.look, picture.exif)
                shelf.put(seen)
                done += 1
                yield seen
    finally:
        if done < len(files):
            shelf.flush()
    finished(shelf.folder)
