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

A match is "similar" within both. Measured with the bundled Fashion-MNIST model, 20,000 training images as the
collection and 64 bits: of other Fashion images (training or test) 94.8 % find something similar; of noise 3 %, of
MNIST digits 19 %, of CIFAR-10 in grey 37 %. At 32 bits 97 %, 14 %, 29 % and 57 %; at 16 it cannot tell.

With `unsupervised` codes of MobileNetV2's features and 1,200 photographs, 78 % of edited copies (cropped, brighter,
recompressed) and 34 % of other photographs find something similar at 64 bits (`benchmarks/unsupervised.py`).

Limits: bits of real codes are not independent, so that `chance` is generous. A collection of near-equal pictures
gives "cannot tell" for a query of their kind, since nearly everything is that near. A query that its model takes for
one of its classes is near that class, and nothing in codes can tell. Where a search is narrowed by `where`, the
standard is still that of the whole collection.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bitscale import hamming
from bitscale.codes import Codes
from bitscale.errors import InputError

if TYPE_CHECKING:
    from bitscale.collection.collection import Collection

Float = NDArray[np.float64]
Verdict = Literal["similar", "not similar", "cannot tell"]

SAMPLE = 1_024  # items that stand for the collection
NEAREST = 512  # of them, whose nearest other item is looked for
EXPECTED = 0.05  # items by chance within the cut-off, of the whole collection
USUAL = 0.95  # of the items are as near to another as `usual`
GRID = 32  # steps of the distance distribution for each bit
DRIFT = 0.1  # a collection that grew or shrank by more is sampled anew
HEAVY = 8  # bits whose disagreement is told one by one
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
        """What a distance between two codes comes to."""
        limit = self.distance
        if limit is None:
            return "cannot tell"
        return "similar" if distance <= limit else "not similar"


@dataclass(frozen=True, eq=False)
class Standard:
    """What a collection's own codes look like at one length: a sample of them, and how near its items are."""

    n_items: int
    weights: Float  # (bits,)
    sample: NDArray[np.bool_]  # (m, bits)
    usual: float | None

    def cutoff(self, query: NDArray[np.bool_]) -> Cutoff:
        """The cut-off for one query, (bits,)."""
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


_KEPT: WeakKeyDictionary[Collection, dict[tuple[str, int], Standard]] = WeakKeyDictionary()
_KEEPING = threading.Lock()


def standard(collection: Collection, bits: int) -> Standard:
    """The standard of a collection at a length, kept while it neither changes its model nor much of its size."""
    key = collection.model, bits
    with _KEEPING:
        kept = _KEPT.setdefault(collection, {}).get(key)
    if kept is not None and abs(len(collection) - kept.n_items) <= DRIFT * kept.n_items:
        return kept
    made = measure(collection, bits)
    with _KEEPING:
        _KEPT[collection][key] = made
    return made


def measure(collection: Collection, bits: int) -> Standard:
    """Sample a collection; a search for the nearest other item of some hundred of its items."""
    codes = sampled(collection)
    n, weights = len(collection), np.asarray(collection.bit_weights[:bits])
    weights = weights if weights.any() else np.ones(bits)
    signs = np.unpackbits(codes.packed, axis=1, count=codes.n_bits)[:, :bits].astype(np.bool_)
    some = codes[:NEAREST]
    nearest = collection.index.search(some, 2, bits=bits).distances[:, 1] if len(some) and n > 1 else np.empty(0)
    return Standard(n, weights, signs, usual_distance(nearest[np.isfinite(nearest)]))


def sampled(collection: Collection) -> Codes:
    """The codes of up to SAMPLE items, in random order, the same for the same contents."""
    for last in (False, False, True):  # again where an item went away meanwhile
        ids = collection.sample(SAMPLE, SEED)
        try:
            return collection.index.get(ids)
        except InputError:
            if last:
                raise
    raise AssertionError


def differing(query: Codes, items: Codes) -> NDArray[np.bool_]:
    """Which bits of each item differ from the one query, (n, n_bits)."""
    return np.unpackbits(query.packed ^ items.packed, axis=1, count=items.n_bits).astype(np.bool_)


def code_distances(differ: NDArray[np.bool_], weights: Float, bits: int) -> Float:
    """Weighted distances over the first bits, exactly as the index counts them."""
    snapped, unit = hamming.snap(weights)
    return np.asarray((differ[:, :bits] @ snapped[:bits].astype(np.int64)) * unit)
