"""Proof by sample that an engine answers as the collection does that was pushed there."""

from __future__ import annotations

import numpy as np

from bitscale.collection.engines.collection import EngineCollection
from bitscale.collection.engines.parting import condition_like
from bitscale.collection.engines.push import target
from bitscale.collection.engines.source import Engine
from bitscale.collection.opened import Opened
from bitscale.index.base import Hits

SEARCHED = 10  # items compared a query


def differences(collection: Opened, address: str, queries: int = 100, seed: int = 0) -> list[str]:
    """What a sample of searches tells apart on both sides; nothing where all answers are alike.

    Every third search is at half of the bits, every third at an eighth; items found are compared with all that is
    known of them. Where items are parted, each search is also made among those that share the item's value. An
    approximate engine is not expected to answer alike: its recall was measured by the push.
    """
    differing = []
    with target(collection, address) as index:
        here, there = collection.index, index
        if len(here) != len(there):
            differing.append(f"{len(here):,} items here, {len(there):,} there")
        ids = here.ids()
        asked = np.sort(np.random.default_rng(seed).permutation(len(ids))[:queries])
        items, parted = EngineCollection(index), index.facts.parted
        for n, row in enumerate(asked.tolist()):
            query = here.get(ids[row : row + 1])
            bits = (here.n_bits, max(1, here.n_bits // 2), max(1, here.n_bits // 8))[n % 3]
            ours, theirs = (index.search(query, SEARCHED, bits=bits) for index in (here, there))
            if not alike(ours, theirs) and index.facts.approximate is None:
                differing.append(f"the neighbours of item {ids[row]} at {bits} bits differ")
            if parted is not None and (like := condition_like(collection.item(int(ids[row])), parted.field)):
                ours = here.search(query, SEARCHED, bits=bits, where=collection.select([like]))
                found = there.search(query, SEARCHED, bits=bits, where=Engine(there).among([like]))
                if not alike(ours, found) and index.facts.approximate is None:
                    differing.append(f"the neighbours of item {ids[row]} with its {parted.field} differ")
            some = theirs.ids[theirs.ids >= 0].tolist()
            if collection.items_of(some) != items.items_of(some):
                differing.append(f"what is known of the neighbours of item {ids[row]} differs")
    return differing


def alike(here: Hits, there: Hits) -> bool:
    """Whether two answers are the same; of a tie longer than the engine lists, any items may stand at the end."""
    certain = np.ones(here.ids.shape, np.bool_)
    if there.tied_beyond is not None and here.ids.size:
        certain[there.tied_beyond] = (here.distances < here.distances[:, -1:])[there.tied_beyond]
    same = np.array_equal(here.distances, there.distances)
    return same and np.array_equal(here.ids[certain], there.ids[certain])
