"""Queries of any kind as codes: a picture's path, an item's id, an image, or codes that are there already."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from bitscale.codes import Codes, Relaxed
from bitscale.collection.pictures import encode_files
from bitscale.data.decode import read_picture
from bitscale.data.images import uniform
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.collection.collection import Collection

WORTH_WORKERS = 32  # pictures: fewer are decoded before workers have started


def encode_queries(collection: Collection, query: Any) -> tuple[Codes | Relaxed, list[str]]:
    """Codes of the queries, and a name for each."""
    if isinstance(query, Codes | Relaxed):
        return query, []
    if isinstance(query, np.ndarray) and query.dtype == np.uint8:
        images = query if query.ndim == 4 else query[None]
        return collection.hasher.encode(images), [f"image {i}" for i in range(len(images))]
    many: list[Any] = [query] if isinstance(query, str | os.PathLike | int | np.integer) else list(query)
    if not many:
        raise InputError("there is nothing to search for. Give a picture's path, an item's id, or codes.")
    if all(isinstance(one, int | np.integer) and not isinstance(one, bool) for one in many):
        ids = [int(one) for one in many]
        return collection.index.get(ids), [f"item {id}" for id in ids]
    if not all(isinstance(one, str | os.PathLike) for one in many):
        raise InputError(f"search for paths, ids, uint8 images or Codes. Got {type(many[0]).__name__}.")
    return encode_pictures(collection, [os.path.abspath(one) for one in many]), [os.fspath(one) for one in many]


def encode_pictures(collection: Collection, paths: list[str]) -> Codes:
    """Codes of picture files, decoded as those of the items were; the first broken one raises."""
    hasher = collection.hasher
    if len(paths) < WORTH_WORKERS:
        form = hasher.picture_form
        return hasher.encode(uniform([read_picture(path, form).pixels for path in paths]))
    blocks = []
    with closing(encode_files(hasher, paths)) as batches:
        for batch in batches:
            if batch.broken:
                raise batch.broken[0][1]
            blocks.append(batch.codes.packed)
    return Codes(np.concatenate(blocks), collection.bit_weights, collection.model)
