"""Arrays of one's own as a dataset: embeddings (n, d) or uint8 images in a .npy file, mapped, with labels beside them.

Nothing is ever unpickled, and vectors are read when used: a file larger than memory can be learned from.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Int
from bitscale.data.images import ArrayImages
from bitscale.data.labelled import Labelled, Labels
from bitscale.data.origin import content_of, whole
from bitscale.data.split import SEED, Split, check_protocol, check_share, draw_share, others, split_parts
from bitscale.errors import DataError, InputError

PROTOCOLS = ("P0", "P0-db")
LARGEST = 1e12  # sums of squares then stay within float32
ROWS = 16_384  # looked at a time
FEW = 16  # rows by which a file is told from others of its name


class Vectors:
    """Vectors in the place of images: some rows of a mapped (n, d) array of real numbers, read as float32."""

    are_vectors = True

    def __init__(self, base: NDArray[Any], rows: Int | None = None) -> None:
        if base.ndim != 2 or base.dtype.kind != "f" or not base.shape[1]:
            raise InputError(
                "embeddings must be an array of real numbers of shape (n, d), one row an item. "
                f"Got {base.dtype} of shape {base.shape}; bring them to it with .reshape(n, -1).astype(np.float32)."
            )
        self.base, self.rows = base, rows
        self.shape = (len(base) if rows is None else len(rows), base.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> NDArray[np.float32]:
        rows = self.base[which if self.rows is None else self.rows[which]]
        return np.ascontiguousarray(rows, np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = np.asarray(self.base if self.rows is None else self.base[self.rows])
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def take(self, rows: Int) -> Vectors:
        """A lazy view of some rows."""
        rows = np.asarray(rows, np.int64)
        return Vectors(self.base, rows if self.rows is None else self.rows[rows])

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of all values."""
        digest = hashlib.sha256(repr(self.shape).encode())
        for start in range(0, len(self), ROWS):
            digest.update(self[start : start + ROWS].data)
        return digest.hexdigest()

    def check(self) -> Vectors:
        """Refuse NaN, infinity and what is too large to be compared; a part at a time."""
        for start in range(0, len(self), ROWS):
            block = self[start : start + ROWS]
            bad = ~(np.abs(block) <= LARGEST).all(axis=1)  # NaN is not <= anything
            if bad.any():
                row = start + int(np.flatnonzero(bad)[0])
                raise InputError(
                    f"row {row} of the embeddings holds NaN, infinity or a number above {LARGEST:.0e}. Repair or leave "
                    "out such rows, or scale them."
                )
        return self


def load_array(
    path: str | Path,
    protocol: str = "P0",
    *,
    labels: str | Path | None = None,
    query_share: float = 0.1,
    seed: int = SEED,
) -> Split:
    """A .npy file under P0 or P0-db, split as a folder is: of every class `query_share` are drawn as queries."""
    check_protocol(protocol, PROTOCOLS, str(path))
    check_share(query_share)
    if labels is None:
        raise DataError(f"{path} has no labels to tell what is relevant by. Give labels= a .npy with one for each row.")
    pool = read_array(path, labels)
    query = draw_share(pool, query_share, np.random.default_rng(seed))
    rest = others(query, len(pool))
    name, content = Path(path).stem, content_of(pool.origin, [query.tobytes()])
    return split_parts(name, protocol, pool.take(rest), pool.take(query), seed=seed, content=content)


def read_array(path: str | Path, labels: str | Path | None = None) -> Labelled:
    """All rows of a .npy file with their labels, not split; without labels all are of one class, "unlabelled"."""
    array = map_array(Path(path), "save embeddings with np.save(path, vectors.astype(np.float32))")
    items: Any = ArrayImages(array) if array.dtype == np.uint8 else Vectors(array).check()
    if not len(items):
        raise DataError(f"{path} holds no rows. Save at least two.")
    some = np.linspace(0, len(array) - 1, min(FEW, len(array))).astype(np.int64)
    origin = whole(Path(path).stem, [repr(array.shape).encode(), *(array[row].tobytes() for row in some)])
    if labels is None:
        return Labelled(items, np.zeros(len(items), np.int64), ("unlabelled",), origin)
    classes, names = read_labels(Path(labels))
    if len(classes) != len(items):
        raise DataError(f"every row needs its label. {path} has {len(items):,} rows, {labels} {len(classes):,} labels.")
    return Labelled(items, classes, names, origin)


def read_labels(path: Path) -> tuple[Labels, tuple[str, ...]]:
    """Labels from a .npy file, and their names: whole numbers or text (n,), or bool (n, n_labels)."""
    array = map_array(path, "save labels with np.save(path, labels), as whole numbers or as text (dtype '<U')")
    if array.ndim == 2 and array.dtype == np.bool_:
        return np.array(array), tuple(str(i) for i in range(array.shape[1]))
    if array.ndim != 1 or array.dtype.kind not in "iuU":
        raise DataError(
            f"{path} must hold whole numbers or text of shape (n,), or bool of shape (n, n_labels). Got {array.dtype} "
            f"of shape {array.shape}; bring them to it with .astype(np.int64), or .astype(bool) for sets of labels."
        )
    names, classes = np.unique(np.array(array), return_inverse=True)
    return classes.reshape(-1).astype(np.int64), tuple(str(name) for name in names)


def map_array(path: Path, cure: str = "save it with np.save") -> NDArray[Any]:
    """The array in a .npy file, mapped; nothing in the file is run, and no damage to it ends in another error."""
    if not path.is_file():
        raise DataError(f"there is no file {path}. Check the path.")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a broken header breaks NumPy's reader in many ways
        raise DataError(
            f"{path} cannot be read as an array ({error}). Objects and pickles are not read: {cure}."
        ) from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path} is an archive, not one array: {cure}.")
    return array
