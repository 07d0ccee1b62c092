"""The retrieval picture: ten CIFAR-10 queries, a fixed 32-bit code beside 64 bits cut to 32, mistakes framed in red."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitscale.data import Split, read
from bitscale.hashers import Hasher
from bitscale.index.exact import ExactIndex
from bitscale.paper.figures import DIGEST
from bitscale.paper.record import save

BITS, SHOWN = 32, 10
EDGE, GAP, ZOOM = 2, 8, 2  # pixels
RED, WHITE = (220, 30, 30), (255, 255, 255)
DRAWN_AS = 1  # counted up where the drawing itself changes


def digest_of(fixed: str, scalable: str) -> str:
    """The digest of what a picture of two models is drawn from; they are named by their fingerprints."""
    return hashlib.sha256(json.dumps([DRAWN_AS, BITS, fixed, scalable]).encode()).hexdigest()[:16]


def queries_of(split: Split) -> NDArray[np.int64]:
    """The first query of each of ten classes: nothing is chosen by how it comes out."""
    first = [int(np.flatnonzero(split.query.labels == label)[0]) for label in range(len(split.query.label_names))]
    return np.array(first[:SHOWN])


def nearest(hasher: Hasher, split: Split, queries: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The nearest database rows of each query but itself, by its first `bits` bits: (m, 10)."""
    codes = hasher.encode(split.database.images)
    asked = codes if split.database.images is split.query.images else hasher.encode(split.query.images)
    nearest_ids = ExactIndex(codes).search(asked[queries], SHOWN + 1, bits=bits).ids
    rows = []
    for query, ids in zip(queries, nearest_ids, strict=True):
        away = split.left_out(int(query))
        rows.append(ids[~np.isin(ids, away)][:SHOWN])
    return np.array(rows)


def picture(fixed: Hasher, scalable: Hasher, split: Split, path: Path) -> tuple[int, int]:
    """Draw the picture into `path`; returns how many mistakes the fixed and the cut code make."""
    from PIL import Image, PngImagePlugin

    queries = queries_of(split)
    found_rows = [nearest(fixed, split, queries, BITS), nearest(scalable, split, queries, BITS)]
    wrong = [split.database.labels[rows] != split.query.labels[queries][:, None] for rows in found_rows]
    lines = []
    for i, query in enumerate(queries):
        first = tile(read(split.query.images, np.array([query]))[0], False)
        parts = [first, space(first)]
        for rows, bad in zip(found_rows, wrong, strict=True):
            shown = read(split.database.images, rows[i])
            parts += [tile(image, bool(flag)) for image, flag in zip(shown, bad[i], strict=True)]
            parts.append(space(first))
        lines.append(np.concatenate(parts[:-1], axis=1))
    whole, drawn = np.concatenate(lines), io.BytesIO()
    about = PngImagePlugin.PngInfo()
    about.add_text(DIGEST, digest_of(fixed.fingerprint, scalable.fingerprint))
    Image.fromarray(np.repeat(np.repeat(whole, ZOOM, 0), ZOOM, 1)).save(drawn, "PNG", optimize=True, pnginfo=about)
    save(path, drawn.getvalue())
    return int(wrong[0].sum()), int(wrong[1].sum())


def tile(image: Any, wrong: bool) -> NDArray[np.uint8]:
    """One image (H, W, C) in a frame."""
    pixels = np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image
    height, width = pixels.shape[:2]
    framed = np.empty((height + 2 * EDGE, width + 2 * EDGE, 3), np.uint8)
    framed[:] = RED if wrong else WHITE
    framed[EDGE:-EDGE, EDGE:-EDGE] = pixels
    return framed


def space(beside: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The white space between the parts of a line."""
    return np.full((len(beside), GAP, 3), 255, np.uint8)
