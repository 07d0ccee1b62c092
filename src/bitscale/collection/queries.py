"""Queries of any kind as codes: a picture's path, an item's id, an image, or codes that are there already."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bitscale.codes import Codes, Relaxed
from bitscale.collection.pictures import encode_images, encode_pictures
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.collection.collection import Collection


def encode_queries(collection: Collection, query: Any) -> tuple[Codes | Relaxed, list[str]]:
    """Codes of the queries, and a name for each."""
    if isinstance(query, Codes | Relaxed):
        return query, []
    if isinstance(query, np.ndarray) and query.dtype == np.uint8:
        images = query if query.ndim == 4 else query[None]
        return encode_images(collection.hasher, list(images)), [f"image {i}" for i in range(len(images))]
    many: list[Any] = [query] if isinstance(query, str | os.PathLike | int | np.integer) else list(query)
    if not many:
        raise InputError("there is nothing to search for. Give a picture's path, an item's id, or codes.")
    if all(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in many):
        ids = [int(one) for one in many]
        return collection.index.get(ids), [f"item {id}" for id in ids]
    if not all(isinstance(one, str | os.PathLike) for one in many):
        raise InputError(f"search for paths, ids, uint8 images or Codes. Got {type(many[0]).__name__}.")
    names = [str(Path(one)) for one in many]
    return encode_pictures(collection.hasher, [os.path.abspath(name) for name in names]), names
