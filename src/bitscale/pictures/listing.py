"""Which picture files lie below a folder, with their sizes and times of change; nothing is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import NamedTuple

from bitscale.pictures.decode import LEFT_OUT, SUFFIXES

DATABASE, FOLDERS = "items.db", ("segments", "models")  # what the folder of a collection holds


class Found(NamedTuple):
    """A picture file as a scan sees it."""

    path: str
    size: int
    modified: int  # nanoseconds


class Listing(NamedTuple):
    """Picture files in order of their paths; folders or files that cannot be looked at, with the reason; and RAW and
    video files, which are left out."""

    files: list[Found]
    closed: dict[str, str]
    left_out: tuple[str, ...] = ()


def list_pictures(root: str, leave_out: Iterable[str] = ()) -> Listing:
    """The pictures below a folder, or the file itself, hidden ones left out; links to folders are not followed.

    Nor are pictures listed that a collection keeps in its own folder: they come and go with its items.
    """
    leave, folders = frozenset(leave_out), [root]
    files: list[Found] = []
    closed: dict[str, str] = {}
    left_out: list[str] = []
    while folders:
        at = folders.pop()
        try:
            with os.scandir(at) as entries:
                for entry in entries:
                    name = entry.name
                    if name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if entry.path not in leave and not is_collection(entry.path):
                            folders.append(entry.path)
                    elif (suffix := os.path.splitext(name)[1].lower()) in SUFFIXES:
                        _look(entry.path, files, closed)
                    elif suffix in LEFT_OUT:
                        left_out.append(entry.path)
        except NotADirectoryError:
            _look(at, files, closed)
        except OSError as error:
            closed[at] = error.strerror or "cannot be opened"
    files.sort()
    return Listing(files, closed, tuple(sorted(left_out)))


def is_collection(folder: str) -> bool:
    """Whether a folder is that of a collection, which keeps pictures of its own in it."""
    if not os.path.isfile(os.path.join(folder, DATABASE)):
        return False
    return all(os.path.isdir(os.path.join(folder, name)) for name in FOLDERS)


def _look(path: str, files: list[Found], closed: dict[str, str]) -> None:
    """Take a file down; a link that leads nowhere is no file, a device or a pipe neither."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        closed[path] = error.strerror or "cannot be looked at"
        return
    if stat.S_ISREG(status.st_mode):
        files.append(Found(path, status.st_size, max(status.st_mtime_ns, 0)))
