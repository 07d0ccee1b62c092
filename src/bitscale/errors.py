"""Every error a user can meet, in one tree.

    BitscaleError
    ├── InputError        an argument cannot be used            (also a ValueError)
    │   ├── ModelMismatch codes of one model met those of another
    │   └── UnknownItem   a collection holds no item of this id
    ├── NotFitted         a hasher was asked to encode before fit
    ├── TrainingStopped   a training cannot go on, its loss being infinite or NaN
    ├── EngineError       an engine elsewhere cannot be reached, refuses, or holds something else
    │   └── NotInEngine   there is no such collection at that address
    ├── ClusterError      a Ray cluster cannot be reached, lost what it was given, or answers in part
    ├── DataError         a dataset is missing, incomplete or not what it claims
    │   ├── UnreadablePicture  one picture file cannot be decoded
    │   └── VanishedFiles      pictures that were there are not: asks before anything is removed
    ├── ServiceError      a service refused a request, or does not answer
    └── FileError         a file of ours cannot be trusted or read
        ├── CorruptFile   damaged, truncated or not ours
        ├── NewerFormat   written by a later bitscale
        ├── CollectionBusy another process is writing to the collection
        └── MustReopen    an open collection cannot go on: open it again, nothing is lost

A message says what is wrong, what was given and what to do about it.
"""

import difflib
import errno
import os
from collections.abc import Iterable, Sequence


class BitscaleError(Exception):
    """Root of everything bitscale raises on purpose."""


class InputError(BitscaleError, ValueError):
    """An argument cannot be used as given."""


class ModelMismatch(InputError):
    """Codes of one model were offered to an index, or a query, of another."""


class UnknownItem(InputError):
    """A collection holds no item of this id; it may have been removed."""


class NotFitted(BitscaleError):
    """A hasher was used before `fit`."""


class TrainingStopped(BitscaleError):
    """A training cannot go on: its loss or a weight became infinite or NaN."""


class EngineError(BitscaleError):
    """An engine elsewhere cannot be reached, refuses, or holds something else; the message names its address."""


class NotInEngine(EngineError):
    """An engine was reached, and holds no collection of ours under that name."""


class ClusterError(BitscaleError):
    """A Ray cluster cannot be reached, lost what it was given more often than it may, or can answer in part only."""


class DataError(BitscaleError):
    """A dataset is missing, incomplete, or not what it claims to be."""


class UnreadablePicture(DataError):
    """One picture cannot be decoded: `reason` says why, `lasting` whether it stays so while the file does."""

    def __init__(self, path: str, reason: str, lasting: bool = True) -> None:
        super().__init__(f"{path} {reason}")
        self.path, self.reason, self.lasting = path, reason, lasting


class VanishedFiles(DataError):
    """Many pictures that were there are not; nothing was changed. `paths` are those missing."""

    def __init__(self, message: str, paths: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.paths = tuple(paths)


class ServiceError(BitscaleError):
    """A service refused: `status` is HTTP's (0: no answer), `type` its name for it, `retry_after` seconds to wait."""

    def __init__(self, message: str, status: int = 0, type: str = "", retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.type, self.retry_after = status, type, retry_after


class FileError(BitscaleError):
    """A bitscale file cannot be used."""


class CorruptFile(FileError):
    """A file is damaged, truncated, or was not written by bitscale."""


class NewerFormat(FileError):
    """A file was written by a later version of bitscale."""


class CollectionBusy(FileError):
    """Another process is writing to the collection; the message says which."""


class MustReopen(FileError):
    """An open collection cannot go on: what is on disk is sound, but the object must be closed and opened again."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a name that is not known: `; did you mean 'mnist'?`, or a full stop."""
    near = difflib.get_close_matches(name.lower().replace("_", "-"), [*known], 1, 0.6)
    return f"; did you mean {near[0]!r}?" if near else "."


def cannot_read(path: str | os.PathLike[str], error: OSError) -> FileError:
    """The error for a file of ours that the system would not let us read, with what cures it."""
    cure = "Check the disk, and try again."
    if error.errno in (errno.EMFILE, errno.ENFILE):
        cure = "Close some (collections, index files), or allow more (ulimit -n), and try again."
    return FileError(f"{os.fspath(path)} cannot be read: {error.strerror}. {cure}")
