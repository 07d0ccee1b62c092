"""Bring an engine level with a collection: what is missing there is added, what is gone is removed, batch by batch.

Ids and a digest of each item's text say what differs, so a push that was stopped anywhere is gone on with by the next,
and one with nothing to do changes nothing. A cursor in the engine tells whether anything has changed since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bitscale.arrays import Progress
from bitscale.collection.engines.texts import beside, digest_of, text_of
from bitscale.collection.items import Item
from bitscale.collection.opened import Opened
from bitscale.collection.store.rows import read_state
from bitscale.errors import EngineError
from bitscale.index.base import I64
from bitscale.index.engines import connect
from bitscale.index.engines.remote import Facts, RemoteIndex

BATCH = 10_000  # items a commit
SEARCHED = 10  # items compared a query


@dataclass
class Pushed:
    """What a push did."""

    added: int = 0
    updated: int = 0
    removed: int = 0
    items: int = 0


def push(collection: Opened, address: str, *, batch: int = BATCH, progress: Progress | None = None) -> Pushed:
    """Bring the engine at an address level with a collection; made there if it is not.

    A collection of another origin or model under that name is refused. Stopped, the same call goes on.
    """
    with target(collection, address) as index:
        cursor = cursor_of(collection)
        if index.cursor() == cursor:
            return Pushed(items=len(index))
        here, texts = _digests_here(collection)
        there, digests = index.digests()
        done = Pushed(items=len(here))
        gone = np.setdiff1d(there, here, assume_unique=True)
        for start in range(0, len(gone), batch):
            done.removed += index.remove(gone[start : start + batch])
        if len(gone):
            index.forget_removed()
        done.added = _add(collection, index, np.setdiff1d(here, there, assume_unique=True), batch, progress)
        both, at_here, at_there = np.intersect1d(here, there, assume_unique=True, return_indices=True)
        changed = both[texts[at_here] != digests[at_there]]
        for some in _batches(collection, changed, batch):
            index.replace_texts(_ids(some), beside(some))
        done.updated = len(changed)
        if cursor_of(collection) == cursor:
            index.note(cursor)
    return done


def target(collection: Opened, address: str) -> RemoteIndex:
    """The index of this collection at an address, made where there is none."""
    facts = Facts.of(collection.index, origin_of(collection))
    for index in connect.existing(address):
        if index.facts.origin != facts.origin:
            index.close()
            raise EngineError(
                f"{index.address} holds another collection. Choose another name in the address, or remove that one."
            )
        if index.facts != facts:
            index.close()
            raise EngineError(
                f"{index.address} holds codes of another model ({index.model}, and here {collection.model}). "
                "Push under another name, search there once it is complete, and remove the old one."
            )
        return index
    return connect.create(address, facts)


def differences(collection: Opened, address: str, queries: int = 100, seed: int = 0) -> list[str]:
    """What a sample of searches tells apart on both sides; nothing where all answers are alike."""
    found = []
    with target(collection, address) as index:
        here, there = collection.index, index
        if len(here) != len(there):
            found.append(f"{len(here):,} items here, {len(there):,} there")
        ids = here.ids()
        asked = np.sort(np.random.default_rng(seed).permutation(len(ids))[:queries])
        for n, row in enumerate(asked.tolist()):
            query = here.get(ids[row : row + 1])
            bits = (here.n_bits, max(1, here.n_bits // 2), max(1, here.n_bits // 8))[n % 3]
            ours, theirs = (index.search(query, SEARCHED, bits=bits) for index in (here, there))
            if not np.array_equal(ours.distances, theirs.distances) or not np.array_equal(ours.ids, theirs.ids):
                found.append(f"the neighbours of item {ids[row]} at {bits} bits differ")
    return found


def origin_of(collection: Opened) -> str:
    """The random number that a collection carries."""
    with collection._database.reading() as connection:
        return str(connection.execute("SELECT origin FROM state").get)


def cursor_of(collection: Opened) -> str:
    """A word that changes with every commit."""
    with collection._database.reading() as connection:
        state = read_state(connection)
    return f"{state.generation}.{state.seq}.{state.changes}"


def _digests_here(collection: Opened) -> tuple[I64, I64]:
    """The ids of all items, ascending, and the digest of each one's text."""
    pairs = (number for item in collection.items() for number in (item.id, digest_of(text_of(item))))
    numbers: I64 = np.fromiter(pairs, np.int64)
    return numbers[::2].copy(), numbers[1::2].copy()


def _add(collection: Opened, index: RemoteIndex, ids: I64, batch: int, progress: Progress | None) -> int:
    added = 0
    if progress:
        progress(0, len(ids))
    for some in _batches(collection, ids, batch):
        living = set(collection.index.holding(_ids(some)).tolist())  # others may have gone meanwhile
        kept = [item for item in some if item.id in living]
        index.put(collection.index.get(_ids(kept)), _ids(kept), beside(kept))
        added += len(kept)
        if progress:
            progress(added, len(ids))
    return added


def _batches(collection: Opened, ids: I64, size: int) -> Iterator[list[Item]]:
    """Items of some ids as they are now, batch by batch."""
    for start in range(0, len(ids), size):
        yield list(collection.items_of(ids[start : start + size].tolist()).values())


def _ids(items: list[Item]) -> I64:
    return np.array([item.id for item in items], np.int64)
