"""Why a match is one: which bits disagree, and whether it is nearer than chance and than the collection's own standard.

A nearest item always exists; whether it is *similar* is another question. Two cut-offs answer it, for each query:

chance  The query's own distance distribution. Bit i differs from the query in a share p_i of the collection. Were
        bits independent, the distance of an item would be the sum of w_i over bits that differ with these odds; its
        distribution is worked out exactly (on a fine grid). The cut-off is the distance within which fewer than
        `EXPECTED` items of all n are to be expected. Where even distance 0 is to be expected, codes of this length
        cannot tell similar from chance among so many items: the verdict is "cannot tell", not a guess.
usual   The collection's own standard: as near as all but one in twenty of its items are to their nearest other item
        (the conformal quantile of a sample). A query drawn like the items is wrongly refused at most that often,
        whatever the distribution. Below 19 items it is not asked for.

A match is "similar" within both.

Limits: bits of real codes are not independent, so that `chance` is generous, and pictures of quite another kind do find
something "similar" now and then. A collection of near-equal pictures gives "cannot tell" for a query of their kind,
since nearly everything is that near. A query that its model takes for one of its classes is near that class, and
nothing in codes can tell. Where a search is narrowed by `where`, the standard is still that of the whole collection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bitscale import hamming
from bitscale.arrays import Float, Int
from bitscale.codes import Codes
from bitscale.collection.search.grades import LEAST_ITEMS, kind_distance
from bitscale.index.base import Index

Verdict = Literal["similar", "not similar", "cannot tell"]

SAMPLE = 1_024  # items that stand for the collection
NEAREST = 512  # of them, whose nearest other item is looked for
EXPECTED = 0.05  # items by chance within the cut-off, of the whole collection
USUAL = 0.95  # of the items are as near to another as `usual`
GRID = 32  # steps of the distance distribution for each bit
DRIFT = 0.1  # a collection that grew or shrank by more is sampled anew
HEAVY = 8  # bits whose disagreement is told one by one
PAIRS = 20_000  # random pairs whose distances are measured
SEED = 0


@dataclass(frozen=True)
class Cutoff:
    """How near counts as similar for one query."""

    chance: float | None  # None: even distance 0 is to be expected by chance
    usual: float | None  # None: too few items to have a standard

    @property
    def distance(self) -> float | None:
        """The largest distance still similar; None where the codes cannot tell."""
        return self.chance if self.chance is None or self.usual is None else min(self.chance, self.usual)

    def verdict(self, distance: float) -> Verdict:
        """Whether two codes so far apart count as similar."""
        limit = self.distance
        if limit is None:
            return "cannot tell"
        return "similar" if distance <= limit else "not similar"


@dataclass(frozen=True, eq=False)
class Standard:
    """Statistics of a collection's own codes at one length: a sample of them, and how near items are to one another."""

    n_items: int
    weights: Float  # (bits,)
    sample: NDArray[np.bool_]  # (m, bits)
    usual: float | None
    kind: float | None = None  # within which items are of the same kind: see `grades`

    def cutoff(self, query: NDArray[np.bool_]) -> Cutoff:
        """The distance up to which an item counts as similar to this query, whose bits are (q,)."""
        if not self.n_items:
            return Cutoff(None, None)
        odds = (np.count_nonzero(self.sample != query, axis=0) + 0.5) / (len(self.sample) + 1)
        return Cutoff(chance_distance(odds, self.weights, self.n_items), self.usual)


def chance_distance(odds: Float, weights: Float, n_items: int) -> float | None:
    """The largest distance within which fewer than EXPECTED of n items fall, bit i differing with odds[i]; or None."""
    step_size = float(weights.sum()) / (GRID * len(weights))
    steps = np.rint(weights / step_size).astype(np.int64)
    mass = np.zeros(int(steps.sum()) + 1)  # of each distance, in steps
    mass[0], reached = 1.0, 0
    for step, odd in zip(steps.tolist(), odds.tolist(), strict=True):
        moved = mass[: reached + 1] * odd
        mass[: reached + 1] -= moved
        mass[step : reached + step + 1] += moved
        reached += step
    within = np.flatnonzero(np.cumsum(mass) * n_items < EXPECTED)
    return float(within[-1] * step_size) if len(within) else None


def usual_distance(nearest: Float) -> float | None:
    """The conformal quantile of distances to the nearest other item; None where there are too few."""
    rank = math.ceil(USUAL * (len(nearest) + 1))
    return float(np.sort(nearest)[rank - 1]) if rank <= len(nearest) else None


class Standards:
    """The standards of one collection, kept by model and length while its size changes little."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str | None, int], Standard] = {}

    def of(self, index: Index, next_id: int, bits: int) -> Standard:
        """The standard at a length; measured where none is kept. All ids are below `next_id`."""
        key = index.model, bits
        standard = self._kept.get(key)
        if standard is None or abs(len(index) - standard.n_items) > DRIFT * standard.n_items:
            standard = measure(index, next_id, bits)
            self._kept[key] = standard
        return standard


def measure(index: Index, next_id: int, bits: int) -> Standard:
    """Sample an index; a search for the nearest other item of some hundred of its items."""
    codes = index.get(sample(index, next_id, SAMPLE))
    return standard_of(codes, len(index), bits, usual_of(index, codes[:NEAREST], bits))


def usual_of(index: Index, some: Codes, bits: int) -> float | None:
    """How near some items of an index are to their nearest other item."""
    nearest = index.search(some, 2, bits=bits).distances[:, 1] if len(some) and len(index) > 1 else np.empty(0)
    return usual_distance(nearest[np.isfinite(nearest)])


def standard_of(codes: Codes, n_items: int, bits: int, usual: float | None) -> Standard:
    """The standard of a collection of which these codes are a sample."""
    weights = np.asarray(codes.bit_weights[:bits])
    weights = weights if weights.any() else np.ones(bits)
    signs = np.unpackbits(codes.packed, axis=1, count=codes.n_bits)[:, :bits].astype(np.bool_)
    kind = kind_distance(random_pairs(signs, weights)) if n_items >= LEAST_ITEMS else None
    return Standard(n_items, weights, signs, usual, kind)


def random_pairs(signs: NDArray[np.bool_], weights: Float) -> Float:
    """Distances between PAIRS random pairs of different items of a sample."""
    first, second = np.random.default_rng(SEED).integers(0, len(signs), (2, PAIRS))
    first, second = (rows[first != second] for rows in (first, second))
    if (weights != weights[0]).any():
        return np.asarray((signs[first] != signs[second]) @ weights)
    packed = np.packbits(signs, axis=1)
    words = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)
    counts = np.bitwise_count(words[first] ^ words[second]).sum(axis=1, dtype=np.int64)
    return np.asarray(counts * weights[0])


def sample(index: Index, next_id: int, n: int) -> Int:
    """The ids of up to n items in random order, the same for the same contents."""
    rng = np.random.default_rng(SEED)
    drawn = np.unique(rng.integers(0, next_id, 4 * n)) if next_id > 4 * n else np.empty(0, np.int64)
    ids = index.holding(rng.permutation(drawn))
    if len(ids) < n:  # few items, or wide gaps between their ids
        ids = rng.permutation(index.ids())
    return ids[:n]


def differing(query: Codes, items: Codes) -> NDArray[np.bool_]:
    """Which bits of each item differ from the one query, (n, n_bits)."""
    return np.unpackbits(query.packed ^ items.packed, axis=1, count=items.n_bits).astype(np.bool_)


def code_distances(differ: NDArray[np.bool_], weights: Float, bits: int) -> Float:
    """Weighted distances over the first bits, exactly as the index counts them."""
    snapped, unit = hamming.snap(weights)
    return np.asarray((differ[:, :bits] @ snapped[:bits].astype(np.int64)) * unit)
