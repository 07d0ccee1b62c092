"""Bring an engine level with a collection: what is missing there is added, what is gone is removed, batch by batch.

A cursor in the engine says how far it is. Where the collection's log still tells what came since, that is followed;
where sealing has taken lines of it away, or rows were changed that it does not tell of, ids and a digest of what is
beside each code say what differs. So a push that was stopped anywhere is gone on with by the next, and one with
nothing to do changes nothing.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field

import numpy as np

from bitscale.arrays import Progress
from bitscale.collection.engines.beside import beside, row_digests, sights_of
from bitscale.collection.engines.collection import FACETS, NOTES
from bitscale.collection.engines.cursor import Cursor, cursor_of, since
from bitscale.collection.engines.parting import check_field, field_of
from bitscale.collection.engines.pushed import note_pushed
from bitscale.collection.engines.recall import Recall, measured_recall
from bitscale.collection.engines.source import CURSOR, NEXT_ID, RECALL, UNFINISHED, USUAL
from bitscale.collection.engines.texts import Row
from bitscale.collection.opened import Opened
from bitscale.collection.search.explain import NEAREST, SAMPLE, sample, usual_of
from bitscale.errors import EngineError, InputError
from bitscale.index.base import I64
from bitscale.index.engines import connect
from bitscale.index.engines.forms import Beside, Facts, Parted
from bitscale.index.engines.remote import RemoteIndex
from bitscale.views.text import quoted

BATCHES = {"postgresql": 10_000, "milvus": 50_000}  # items a commit
COMPARED = 10_000  # items whose digests are compared at a time
IN_FLIGHT = {"postgresql": 2, "milvus": 1}  # batches on their way to the engine; PostgreSQL's make their rows ready
WITH_LOOKS = "looks"
LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)  # at which a push measures how near items are
MOST_FACETS = 16_000  # characters
APPROXIMATE = {"ivf": "IVF_FLAT", "hnsw": "HNSW"}


@dataclass
class Pushed:
    """What a push did."""

    added: int = 0
    updated: int = 0
    removed: int = 0
    items: int = 0
    recall: Recall | None = field(default=None, compare=False)  # of an approximate engine


@dataclass(frozen=True)
class Difference:
    """What an engine lacks, has too much, or has otherwise; ids, ascending."""

    missing: I64
    gone: I64
    changed: I64


def push(
    collection: Opened,
    address: str,
    *,
    approximate: str | None = None,
    partition_by: str | None = None,
    looks: bool | None = None,
    batch: int | None = None,
    progress: Progress | None = None,
) -> Pushed:
    """Bring the engine at an address level with a collection; made there if it is not.

    approximate   of Milvus, when it is made there: "ivf" or "hnsw", quicker and not exact; its recall is measured
    partition_by  of Milvus, when it is made there: a field of conditions, by whose value items are stored, so that a
                  search for one value looks only where it can be
    looks         also bring small copies of the pictures, by which copies are told, 2 kB each: unless said, as the
                  last push there did, and the first does
    batch         items a commit, of which an engine takes 10,000 (PostgreSQL) or 50,000 (Milvus) unless said

    A collection of another origin or model under that name is refused. Stopped, the same call goes on.
    """
    with target(collection, address, approximate, partition_by) as index:
        note_pushed(collection.path, str(index.address))  # first: what a stopped push leaves is erased, too
        notes, cursor = index.notes(), cursor_of(collection)
        before = notes.get(WITH_LOOKS)
        looks = before != str(False) if looks is None else looks
        recall = Recall.read(notes.get(RECALL))
        kept = Cursor.read(notes.get(CURSOR))
        if kept == cursor and before == str(looks):
            return Pushed(items=len(index), recall=recall)
        apart = since(collection, kept) if before == str(looks) else None
        if apart is None:
            difference = compared(collection, index, looks)
        else:
            difference = Difference(*settled(index, *apart), np.empty(0, np.int64))
        index.note({UNFINISHED: str(True)})
        with ThreadPoolExecutor(1, "bitscale push") as beside_it:  # while the engine is at work
            known = beside_it.submit(about, collection)
            done = levelled(collection, index, difference, looks, batch or BATCHES[index.address.scheme], progress)
        if index.facts.approximate is not None:
            index.settle()
            done.recall = recall = measured_recall(collection.index, index)
        measured = {} if recall is None else {RECALL: json.dumps(asdict(recall))}
        notes_now = {**known.result(), **measured, UNFINISHED: str(False)}
        if cursor_of(collection).same_items(cursor):
            level = done.items == len(collection.index)  # or what an ended push had sent came late: look at all again
            notes_now |= {CURSOR: str(cursor) if level else "", WITH_LOOKS: str(looks), UNFINISHED: str(not level)}
        index.note(notes_now)
    return done


def target(
    collection: Opened, address: str, approximate: str | None = None, partition_by: str | None = None
) -> RemoteIndex:
    """The index of this collection at an address, made where there is none."""
    if approximate is not None and approximate not in APPROXIMATE:
        raise InputError(f"an approximate index is {' or '.join(APPROXIMATE)}. Got {approximate!r}.")
    kind = None if approximate is None else APPROXIMATE[approximate]
    if partition_by is not None:
        check_field(partition_by)
    parted = None if partition_by is None else Parted(partition_by)
    wanted = Facts.of(collection.index, origin_of(collection), kind, parted)
    connect.check_kind(address, wanted)
    for index in connect.existing(address):
        try:
            check_target(index, wanted, collection.model)
        except EngineError:
            index.close()
            raise
        return index
    return connect.create(address, wanted)


def check_target(index: RemoteIndex, wanted: Facts, model: str) -> None:
    """Refuse an index of another collection, another model, or made otherwise than asked for now."""
    there = index.facts
    if there.origin != wanted.origin:
        raise EngineError(
            f"{index.address} holds another collection. Choose another name in the address, or remove that one: "
            f"`bitscale unpush {quoted(str(index.address))}`."
        )
    if (there.bit_weights, there.model) != (wanted.bit_weights, wanted.model):
        raise EngineError(
            f"{index.address} holds codes of another model ({index.model}, and here {model}). "
            "Push under another name, search there once it is complete, and remove the old one: "
            f"`bitscale unpush {quoted(str(index.address))}`."
        )
    if wanted.approximate is not None and there.approximate != wanted.approximate:
        made = there.approximate or "exact"
        raise EngineError(f"{index.address} was made {made}, which no push can change. Push under another name.")
    if wanted.parted is not None and (
        there.parted is None or field_of(there.parted.field) != field_of(wanted.parted.field)
    ):
        made = "without partitions" if there.parted is None else f"in partitions by {there.parted.field}"
        raise EngineError(
            f"{index.address} was made {made}, which no push can change. Push without --partition-by, or under another "
            f"name; or remove that one first: `bitscale unpush {quoted(str(index.address))}`."
        )


def origin_of(collection: Opened) -> str:
    """The random number that a collection carries."""
    with collection._database.reading() as connection:
        return str(connection.execute("SELECT origin FROM state").get)


def compared(collection: Opened, index: RemoteIndex, looks: bool) -> Difference:
    """The difference between both sides, found by comparing ids and digests of all items."""
    there, digests = index.digests()
    here = collection.index.ids()
    both, _, at = np.intersect1d(here, there, assume_unique=True, return_indices=True)
    changed: list[int] = []
    known = dict(zip(both.tolist(), digests[at].tolist(), strict=True))
    for rows in _batches(collection, both, COMPARED):
        digests_here = row_digests(rows, sights_of(collection, [row[0] for row in rows], looks))
        changed += [row[0] for row, digest in zip(rows, digests_here, strict=True) if known[row[0]] != digest]
    missing, gone = np.setdiff1d(here, there, assume_unique=True), np.setdiff1d(there, here, assume_unique=True)
    return Difference(missing, gone, np.array(changed, np.int64))


def settled(index: RemoteIndex, added: I64, removed: I64) -> tuple[I64, I64]:
    """Of what the log tells, what is really missing and still there: a push may have been stopped midway."""
    return np.setdiff1d(added, index.holding(added)), index.holding(removed)


def levelled(
    collection: Opened, index: RemoteIndex, apart: Difference, looks: bool, batch: int, progress: Progress | None
) -> Pushed:
    """Send the engine what it lacks and remove what it has too much of; returns how many."""
    done = Pushed(updated=len(apart.changed))
    for start in range(0, len(apart.gone), batch):
        done.removed += index.remove(apart.gone[start : start + batch])
    if len(apart.gone):
        index.forget_removed()
    done.added = _add(collection, index, apart.missing, looks, batch, progress)
    for rows in _batches(collection, apart.changed, batch):
        index.replace_beside(_ids(rows), _told(collection, rows, looks, index))
    done.items = len(index)
    return done


def _add(collection: Opened, index: RemoteIndex, ids: I64, looks: bool, batch: int, progress: Progress | None) -> int:
    """Add items; the next batches are put together while the engine takes in those before."""
    added = 0
    under_way: deque[tuple[Future[None], int]] = deque()
    if progress:
        progress(0, len(ids))

    def wait() -> int:
        batch, n = under_way.popleft()
        batch.result()
        if progress:
            progress(added + n, len(ids))
        return n

    in_flight = IN_FLIGHT[index.address.scheme]
    with ThreadPoolExecutor(in_flight, "bitscale push") as pool:
        for some in _batches(collection, ids, batch):
            living = set(collection.index.holding(_ids(some)).tolist())  # others may have gone meanwhile
            rows = [row for row in some if row[0] in living]
            if not rows:
                continue
            told, codes = _told(collection, rows, looks, index), collection.index.get(_ids(rows))
            if len(under_way) == in_flight:
                added += wait()
            under_way.append((pool.submit(index.put, codes, _ids(rows), told), len(rows)))
        while under_way:
            added += wait()
    return added


def about(collection: Opened) -> Mapping[str, str]:
    """What a search on the engine needs to know of the whole collection."""
    index = collection.index
    next_id = cursor_of(collection).next_id
    some = index.get(sample(index, next_id, SAMPLE))[:NEAREST]
    lengths = sorted({*(bits for bits in LENGTHS if bits < index.n_bits), index.n_bits})
    usual = {str(bits): usual_of(index, some, bits) for bits in lengths}
    facets, most = json.dumps(asdict(collection.facets())), 50
    while len(facets) > MOST_FACETS and most > 1:
        most //= 2
        facets = json.dumps(asdict(collection.facets(most)))
    return {
        USUAL: json.dumps(usual), NEXT_ID: str(next_id), NOTES: json.dumps(collection.notes()), FACETS: facets,
    }  # fmt: skip


def _told(collection: Opened, rows: list[Row], looks: bool, index: RemoteIndex) -> Beside:
    """What goes beside the codes of some items."""
    return beside(rows, sights_of(collection, [row[0] for row in rows], looks), index)


def _batches(collection: Opened, ids: I64, size: int) -> Iterator[list[Row]]:
    """Rows of some ids as they are now, batch by batch."""
    for start in range(0, len(ids), size):
        yield collection.rows_of(ids[start : start + size].tolist())


def _ids(rows: list[Row]) -> I64:
    return np.array([row[0] for row in rows], np.int64)
