"""Pairs of pictures that may be the same: near by their perceptual hashes in any of eight ways, or near by their codes.

Codes find what was cropped, framed or turned a little, hashes what was mirrored or turned by a quarter, and what a
network sees otherwise. What a pair really is, `likeness` tells.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Int
from bitscale.codes import Codes
from bitscale.collection.duplicates.sights import Progress, Sights
from bitscale.index.base import Index
from bitscale.index.exact import ExactIndex
from bitscale.looks.look import FORMS, HASH_BITS, laid, perceptual_hashes

U8 = NDArray[np.uint8]
HASH_RADIUS = 10  # bits of 64
MOST = 24  # candidates a picture has by its hash, and
NEAREST = 8  # by its code
KIN = 0.01  # share of random pairs of items whose codes are as near as those of candidates,
LEAST = 2_000  # or so many pairs: of few pictures, copies would be most of that share and keep others out
PAIRS = 20_000  # random pairs measured
LOOKUP = 512  # queries at a time
FLAT = 2.0  # levels: a picture with less contrast has nothing on it to compare
SEED = 0


def candidates(index: Index, ids: Int, packed: U8, sights: Sights, within: float | None, tell: Progress) -> Int:
    """Pairs of ids (n, 2), the smaller first, each once.

    within   share of the largest distance up to which codes are near; None: as near as few random pairs are
    """
    blocks = [np.empty((0, 2), np.int64), *by_code(index, ids, packed, within, tell), *by_hash(ids, sights, tell)]
    pairs = np.sort(np.concatenate(blocks), axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)


def by_code(index: Index, ids: Int, packed: U8, within: float | None, tell: Progress) -> Iterator[Int]:
    """Each item with the few nearest others, as far as they are near."""
    if len(ids) < 2:
        return
    codes = Codes(packed, index.bit_weights, index.model)
    limit = near_distance(codes) if within is None else within * float(index.bit_weights.sum())
    engine = ExactIndex(codes)
    for start in range(0, len(ids), LOOKUP):
        hits = engine.search(codes[np.arange(start, min(start + LOOKUP, len(ids)))], min(NEAREST + 1, len(ids)))
        near = (hits.ids >= 0) & (hits.distances <= limit)
        rows, places = np.nonzero(near)
        yield np.stack([ids[start + rows], ids[hits.ids[rows, places]]], axis=1)
        tell("comparing codes", min(start + LOOKUP, len(ids)), len(ids))


def near_distance(codes: Codes) -> float:
    """The distance below which a share KIN of random pairs of different items lies; at least LEAST of them."""
    share = min(max(KIN, 2 * LEAST / (len(codes) * (len(codes) - 1))), 1.0)
    rng = np.random.default_rng(SEED)
    first, second = rng.integers(0, len(codes), (2, PAIRS))
    other = first != second
    differ = np.unpackbits(codes.packed[first[other]] ^ codes.packed[second[other]], axis=1, count=codes.n_bits)
    return float(np.quantile(differ @ codes.bit_weights, share))


def by_hash(ids: Int, sights: Sights, tell: Progress) -> Iterator[Int]:
    """Pairs whose hashes are near, one side laid down in each of the eight ways."""
    there, hashes = [], []  # of all pictures with something on them
    for ids_here, looks in sights.chunks(ids):
        grey = looks.grey
        full = grey.std(axis=(1, 2)) > FLAT
        there.append(ids_here[full])
        ways = [perceptual_hashes(np.ascontiguousarray(laid(grey[full], form))) for form in range(len(FORMS))]
        hashes.append(np.stack(ways, axis=1))  # (n, 8, 8)
    if not there or sum(map(len, there)) < 2:
        return
    known, every = np.concatenate(there), np.concatenate(hashes)
    weights = np.ones(HASH_BITS)
    engine = ExactIndex(Codes(np.ascontiguousarray(every[:, 0]), weights))
    for start in range(0, len(known), LOOKUP):
        rows = slice(start, start + LOOKUP)
        for form in range(len(FORMS)):
            near = engine.lookup(Codes(np.ascontiguousarray(every[rows, form]), weights), HASH_RADIUS)
            many = np.diff(near.offsets)
            place = np.arange(len(near.ids)) - np.repeat(near.offsets[:-1], many)  # nearest first
            row = np.repeat(np.arange(len(many)), many)[place < MOST]
            yield np.stack([known[start + row], known[near.ids[place < MOST]]], axis=1)
        tell("comparing hashes", min(start + LOOKUP, len(known)), len(known))
