"""Images with labels: what every dataset becomes before it is split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Bool, Float32, Int
from bitscale.data.origin import Origin
from bitscale.errors import DataError, InputError

Labels = NDArray[Any]  # int64 (n,), one class each; or bool (n, n_labels), any number of labels each


class Images(Protocol):
    """Images in order, read when asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> NDArray[np.uint8]:
        """Image `i` as (H, W, C), C in {1, 3}."""
        ...

    def take(self, rows: Int, /) -> Images:
        """A lazy view of some rows, in the order given."""
        ...

    @property
    def fingerprint(self) -> str:
        """Identifies the content and its order, for caches."""
        ...


@dataclass(frozen=True)
class Attribute:
    """A further set of labels of the same images, such as their colour beside their kind; in the form of `Labelled`."""

    name: str
    labels: Labels
    label_names: tuple[str, ...]


@dataclass(frozen=True)
class Labelled:
    """Images and what they show: `labels` int64 (n,) one class each, or bool (n, n_labels).

    Where more than one thing is known of them, `attributes` holds each; the first is what `labels` says.
    """

    images: Images
    labels: Labels
    label_names: tuple[str, ...]
    origin: Origin | None = None  # where they came from; None where nobody said
    attributes: tuple[Attribute, ...] = ()
    cameras: Int | None = None  # which camera took each image, (n,), where that is known
    taught: Float32 | None = None  # the relaxed values that a teacher gives each image, (n, q), where there is one

    def __post_init__(self) -> None:
        labels = check_labels(self.labels, len(self.label_names))
        if len(labels) != len(self.images):
            raise DataError(f"every image needs its labels. Got {len(self.images)} images and {len(labels)} labels.")
        object.__setattr__(self, "labels", labels)
        for each in self.attributes:
            if len(check_labels(each.labels, len(each.label_names))) != len(labels):
                raise DataError(
                    f"every image needs its {each.name}. Got {len(labels)} images, {len(each.labels)} labels."
                )
        if self.cameras is not None and self.cameras.shape != (len(labels),):
            raise DataError(
                f"every image needs its camera. Got {len(labels)} images and cameras of shape {self.cameras.shape}."
            )
        if self.taught is not None and (self.taught.ndim != 2 or len(self.taught) != len(labels)):
            raise DataError(
                f"a teacher gives every image its values. Got {len(labels)} images and values of {self.taught.shape}."
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def multi_label(self) -> bool:
        """Whether an image may carry several labels."""
        return self.labels.ndim == 2

    def take(self, rows: Int) -> Labelled:
        """Some rows, lazily."""
        images: Any = self.images  # the user's own may be a plain array, whose `take` is another
        taken: Any = images[rows] if isinstance(images, np.ndarray) else images.take(rows)
        attributes = tuple(Attribute(each.name, each.labels[rows], each.label_names) for each in self.attributes)
        cameras = None if self.cameras is None else self.cameras[rows]
        taught = None if self.taught is None else self.taught[rows]
        origin = None if self.origin is None else self.origin.of_some()
        return Labelled(taken, self.labels[rows], self.label_names, origin, attributes, cameras, taught)

    def attribute(self, name: str) -> Attribute:
        """One attribute by name."""
        for each in self.attributes:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.attributes) or "none, only labels"
        raise InputError(f"these images have no attribute {name!r}. They have: {known}.")

    def seen_as(self, name: str) -> Labelled:
        """The same images, labelled by one of their attributes."""
        chosen = self.attribute(name)
        return replace(self, labels=chosen.labels, label_names=chosen.label_names)


def check_labels(labels: Labels, n_labels: int) -> Labels:
    """`labels` as int64 (n,) within 0 .. n_labels - 1 or as bool (n, n_labels), or say what is wrong."""
    array = np.asarray(labels)
    if array.ndim == 2 and array.dtype == np.bool_:
        if array.shape[1] != n_labels:
            raise DataError(f"multi-labels must have one column a name ({n_labels}). Got {array.shape[1]} columns.")
        return array
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise DataError(
            "labels must be whole numbers of shape (n,), or bool of shape (n, n_labels). "
            f"Got {array.dtype} of shape {array.shape}."
        )
    classes = array.astype(np.int64)
    outside = np.flatnonzero((classes < 0) | (classes >= n_labels))
    if outside.size:
        raise DataError(
            f"labels must lie between 0 and {n_labels - 1} ({n_labels} classes are named). "
            f"Item {outside[0]} has {classes[outside[0]]}; the file is damaged or not of this dataset."
        )
    return classes


def relevance(query_labels: Labels, database_labels: Labels) -> Callable[[int | Int], Bool]:
    """A function from one query, or an array of queries, to which database rows are relevant to it.

    Same class, or at least one label shared. Gives bool (n_db,) for an int, (m, n_db) for an array of m;
    nothing of size n_queries x n_db is ever held.
    """
    if query_labels.ndim != database_labels.ndim or query_labels.shape[1:] != database_labels.shape[1:]:
        raise InputError(
            "queries and database must be labelled the same way. "
            f"Got labels of shapes {query_labels.shape} and {database_labels.shape}."
        )
    if query_labels.ndim == 1:
        return lambda which: query_labels[which, ..., None] == database_labels
    columns = np.ascontiguousarray(database_labels.T, np.float32)  # (n_labels, n_db)
    return lambda which: (query_labels[which].astype(np.float32) @ columns) > 0
