"""Every error a user can meet, in one tree.

    BitscaleError
    ├── InputError        an argument cannot be used            (also a ValueError)
    │   └── ModelMismatch codes of one model met those of another
    ├── NotFitted         a hasher was asked to encode before fit
    ├── TrainingStopped   a training cannot go on, its loss being infinite or NaN
    ├── DataError         a dataset is missing, incomplete or not what it claims
    └── FileError         a file of ours cannot be trusted or read
        ├── CorruptFile   damaged, truncated or not ours
        ├── NewerFormat   written by a later bitscale
        └── CollectionBusy another process is writing to the collection

A message says what is wrong, what was given and what to do about it.
"""


class BitscaleError(Exception):
    """Root of everything bitscale raises on purpose."""


class InputError(BitscaleError, ValueError):
    """An argument cannot be used as given."""


class ModelMismatch(InputError):
    """Codes of one model were offered to an index, or a query, of another."""


class NotFitted(BitscaleError):
    """A hasher was used before `fit`."""


class TrainingStopped(BitscaleError):
    """A training cannot go on: its loss or a weight became infinite or NaN."""


class DataError(BitscaleError):
    """A dataset is missing, incomplete, or not what it claims to be."""


class FileError(BitscaleError):
    """A bitscale file cannot be used."""


class CorruptFile(FileError):
    """A file is damaged, truncated, or was not written by bitscale."""


class NewerFormat(FileError):
    """A file was written by a later version of bitscale."""


class CollectionBusy(FileError):
    """Another process is writing to the collection; the message says which."""
