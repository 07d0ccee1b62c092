"""What Milvus stores of an index: codes as vectors of signs, texts and looks beside them, facts in a row apart."""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import Codes
from bitscale.errors import EngineError, NotInEngine
from bitscale.index.base import I64, check_ids
from bitscale.index.engines.address import Address, parse_address
from bitscale.index.engines.forms import FORMAT, Among, Beside, Condition, Facts, Stored, other_format
from bitscale.index.engines.milvus_server import (
    COLLECTIONS,
    SECONDS,
    STRONG,
    again,
    connect,
    make_collections,
    make_items,
    read_facts,
    telling,
)
from bitscale.index.engines.remote import RemoteIndex, refuse_known

if TYPE_CHECKING:
    from pymilvus import MilvusClient

T = TypeVar("T")

MOST_ROWS = 16_384  # that Milvus gives for one query
BATCH = 5_000  # items in one insert
IDS_AT_ONCE = 8_192  # in one condition
PREFIX = "bitscale_"
LONGEST_TEXT = 65_536
SETTLE_SECONDS = 600.0
COLUMNS = ("id", "stamp", "signs", "digest", "item", "facts", "look")


@dataclass
class Kept:
    """What changes of the row of a collection."""

    next_id: int = 0
    next_stamp: int = 0
    changes: int = 0
    notes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, row: dict[str, Any]) -> Kept:
        """Of a row that was read."""
        return cls(row["next_id"], row["next_stamp"], row["changes"], dict(row["notes"]))


class MilvusItems(RemoteIndex):
    """What is stored in a Milvus collection: sign vectors, and what is beside them."""

    def __init__(self, address: Address, facts: Facts, client: MilvusClient, kept: Kept) -> None:
        super().__init__(address, facts)
        self._client, self.collection, self._kept = client, PREFIX + address.name, kept
        self._made_here = False  # by this object: nobody else has sent anything there that may still arrive

    @classmethod
    def create(cls, address: str, facts: Facts) -> Self:
        """Make an empty index at an address; one that is there already is refused."""
        place = parse_address(address)
        client = connect(place)
        with telling(place):
            make_collections(client)
            if read_facts(client, place):
                raise EngineError(f"{place} holds a collection already. Open it, or choose another name.")
            if client.has_collection(PREFIX + place.name):  # without facts: its maker was stopped midway
                client.drop_collection(PREFIX + place.name)
            make_items(client, PREFIX + place.name, len(facts.bit_weights), facts.approximate)
            index = cls(place, facts, client, Kept())
            index._write_facts()
            index._made_here = True
        return index

    @classmethod
    def open(cls, address: str) -> Self:
        """Connect to an index that is there."""
        place = parse_address(address)
        client = connect(place)
        with telling(place):
            row = read_facts(client, place) if client.has_collection(COLLECTIONS) else None
        if row is None:
            raise NotInEngine(f"{place} holds no collection of bitscale. Make one with bitscale push.")
        if row["format"] != FORMAT:
            raise EngineError(f"{place} {other_format(row['format'])}")
        facts = Facts(tuple(row["bit_weights"]), row["model"], row["origin"], row["approximate"])
        with telling(place):
            client.load_collection(PREFIX + place.name)
        return cls(place, facts, client, Kept.of(row))

    def drop(self) -> None:
        """Remove the collection from the engine, items and all."""
        with telling(self.address):
            self._client.delete(COLLECTIONS, ids=[self.address.name])  # first: stopped here, the rest is nobody's
            self._client.drop_collection(self.collection)

    def close(self) -> None:
        """End the connection; what is stored stays."""
        self._client.close()

    # ------------------------------------------------------------------ contents

    def __len__(self) -> int:
        return int(self._rows("", ["count(*)"])[0]["count(*)"])

    def ids(self) -> I64:
        """The ids of all items, ascending."""
        return np.array([row["id"] for row in self._pages(["id"])], np.int64)

    def _pages(self, fields: list[str], where: str = "id >= 0") -> list[dict[str, Any]]:
        """Fields of all items for which an expression holds, each once, by id; page by page."""
        found: dict[int, dict[str, Any]] = {}
        after, full = -1, True
        while full:
            rows = self._rows(f"id > {after} and ({where})", fields, MOST_ROWS)
            found |= {row["id"]: row for row in rows}
            after, full = max((row["id"] for row in rows), default=after), len(rows) == MOST_ROWS
        return [found[id] for id in sorted(found)]

    def counted(self) -> tuple[int, int]:
        """The next id, and how many changes there were."""
        self._stamp()
        return self._kept.next_id, self._kept.changes

    def _stamp(self) -> int:
        row = self._call(read_facts, self._client, self.address)
        if row is None:
            raise EngineError(f"{self.address} was removed while it was open. Push the collection again.")
        before, self._kept = self._kept, Kept.of(row)
        self._kept.next_id = max(before.next_id, self._kept.next_id)
        self._kept.next_stamp = max(before.next_stamp, self._kept.next_stamp)
        return self._kept.next_stamp

    def _known(self, ids: I64) -> I64:
        found = [row["id"] for some in parts(ids) for row in self._rows(f"id in {some}", ["id"])]
        return np.unique(np.array(found, np.int64))

    def _packed(self, ids: I64) -> tuple[I64, NDArray[np.uint8]]:
        rows = [row for some in parts(ids) for row in self._rows(f"id in {some}", ["id", "signs"])]
        signs = np.array([row["signs"] for row in rows], np.float32).reshape(len(rows), self.n_bits)
        return np.array([row["id"] for row in rows], np.int64), np.packbits(signs > 0, axis=1)

    def _insert(self, packed: NDArray[np.uint8], ids: I64 | None) -> I64:
        stamp = self._stamp()
        kept = self._kept
        new = np.arange(kept.next_id, kept.next_id + len(packed), dtype=np.int64) if ids is None else ids
        if ids is not None:
            refuse_known(self._known(np.unique(ids)))
        self._store(packed, new, stamp, None)
        return new

    def put(self, codes: Codes, ids: I64, beside: Beside) -> None:
        """Add codes under their ids, each with a text beside it; what is there under them already is replaced."""
        self.check_codes(codes)
        with self._adding:
            self._store(codes.packed, check_ids(ids, len(codes)), self._stamp(), beside)

    def _store(self, packed: NDArray[np.uint8], ids: I64, stamp: int, beside: Beside | None) -> None:
        kept = self._kept
        kept.next_id, kept.next_stamp = max(kept.next_id, int(ids.max(initial=-1)) + 1), stamp + 1
        self._write_facts()  # first: ids given out are never given out again
        for start in range(0, len(ids), BATCH):
            some = slice(start, start + BATCH)
            self._upsert(ids[some], stamp, signs_of(packed[some], self.n_bits), _part(beside, some), self._made_here)

    def _upsert(
        self, ids: I64, stamps: int | list[int], signs: NDArray[np.float32], beside: Beside | None, new: bool = False
    ) -> None:
        """Store items in the place of those that have their ids; `new`: nobody can have sent them before."""
        n = len(ids)
        beside = beside or Beside(np.zeros(n, np.int64), ["{}"] * n, ["{}"] * n, [None] * n)
        texts = [checked_text(text) for text in beside.texts]
        looks = ["" if look is None else b64encode(look).decode() for look in beside.looks]
        added = [stamps] * n if isinstance(stamps, int) else stamps
        rows = zip(ids.tolist(), added, signs, beside.digests.tolist(), texts, beside.facts, looks, strict=True)
        data = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        if new:
            try:
                with telling(self.address):
                    self._client.insert(self.collection, data, timeout=SECONDS)
                return
            except EngineError:  # it may have arrived all the same: from now on, replace
                self._made_here = False
        self._call(self._client.upsert, self.collection, data, timeout=SECONDS)

    def _delete(self, ids: I64) -> int:
        known = self._known(ids)
        for some in parts(known):
            self._call(self._client.delete, self.collection, filter=f"id in {some}", timeout=SECONDS)
        self._stamp()
        self._write_facts()
        return len(known)

    # ------------------------------------------------------------------ what is beside the codes

    def replace_beside(self, ids: I64, beside: Beside) -> None:
        """Keep other texts beside items that are there."""
        fields = ["id", "stamp", "signs"]
        for start in range(0, len(ids), IDS_AT_ONCE):
            some = ids[start : start + IDS_AT_ONCE]
            rows = {row["id"]: row for row in self._rows(f"id in {some.tolist()}", fields)}
            there = np.array([id in rows for id in some.tolist()], np.bool_)
            kept = some[there]
            signs = np.array([rows[id]["signs"] for id in kept.tolist()], np.float32)
            stamps = [int(rows[id]["stamp"]) for id in kept.tolist()]
            if len(kept):
                self._upsert(kept, stamps, signs, beside.some(start + np.flatnonzero(there)))
        self._stamp()
        self._write_facts()

    def texts(self, ids: I64) -> dict[int, str]:
        """The texts beside some items, by id."""
        rows = [row for some in parts(ids) for row in self._rows(f"id in {some}", ["id", "item"])]
        return {row["id"]: json.dumps(row["item"]) for row in rows}

    def rows(self, ids: I64) -> dict[int, Stored]:
        """All that is stored of some items that are there, by id."""
        fields = ["id", "signs", "item", "look"]
        rows = [row for some in parts(ids) for row in self._rows(f"id in {some}", fields)]
        signs = np.array([row["signs"] for row in rows], np.float32).reshape(len(rows), self.n_bits)
        return {
            row["id"]: Stored(code, json.dumps(row["item"]), b64decode(row["look"]) if row["look"] else None)
            for row, code in zip(rows, np.packbits(signs > 0, axis=1), strict=True)
        }

    def looks(self, ids: I64) -> dict[int, bytes]:
        """The looks beside some items that have one, by id."""
        rows = [row for some in parts(ids) for row in self._rows(f"id in {some}", ["id", "look"])]
        return {row["id"]: b64decode(row["look"]) for row in rows if row["look"]}

    def page(self, after: int, n: int, among: Among | None = None) -> list[tuple[int, str]]:
        """The ids and texts of the next n items after an id."""
        where = "" if among is None else f" and ({among.condition})"
        rows = self._rows(f"id > {after}{where}", ["id", "item"], min(n, MOST_ROWS))
        return [(row["id"], json.dumps(row["item"])) for row in sorted(rows, key=lambda row: int(row["id"]))]

    def select(self, condition: Condition) -> I64:
        """The ids of items for which an expression holds, ascending."""
        return np.array([row["id"] for row in self._pages(["id"], condition)], np.int64)

    def count(self, condition: Condition) -> int:
        """How many items there are for which an expression holds."""
        return int(self._rows(condition, ["count(*)"])[0]["count(*)"])

    def digests(self) -> tuple[I64, I64]:
        """The ids of all items, ascending, and the digest of what is beside each one."""
        rows = self._pages(["id", "digest"])
        return np.array([row["id"] for row in rows], np.int64), np.array([row["digest"] for row in rows], np.int64)

    def note(self, notes: Mapping[str, str]) -> None:
        """Keep some words with the collection, besides those it has."""
        self._stamp()
        self._kept.notes |= notes
        self._write_facts()

    def notes(self) -> dict[str, str]:
        """The words kept with the collection."""
        self._stamp()
        return dict(self._kept.notes)

    def settle(self) -> None:
        """Wait until the index is built over all items, as far as that takes minutes."""
        self._call(self._client.flush, self.collection, timeout=SETTLE_SECONDS)
        end = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < end:
            built = self._call(self._client.describe_index, self.collection, "signs", timeout=SECONDS)
            if built["pending_index_rows"] == 0 and built["indexed_rows"] >= built["total_rows"]:
                return
            time.sleep(0.5)

    def forget_removed(self) -> None:
        """Compact, and wait for it; Milvus drops the old files in its own time."""
        self._call(self._client.flush, self.collection, timeout=SECONDS)
        job = self._call(self._client.compact, self.collection, timeout=SECONDS)
        end = time.monotonic() + SECONDS
        while job > 0 and time.monotonic() < end:
            if self._call(self._client.get_compaction_state, job, timeout=SECONDS) != "Executing":
                return
            time.sleep(0.2)

    # ------------------------------------------------------------------ the connection

    def _rows(self, where: str, fields: list[str], limit: int | None = None) -> list[dict[str, Any]]:
        given: dict[str, Any] = {} if limit is None else {"limit": limit}
        how = {"consistency_level": STRONG, "timeout": SECONDS, **given}
        return list(self._call(self._client.query, self.collection, where, fields, **how))

    def _write_facts(self) -> None:
        kept = self._kept
        kept.changes += 1
        facts = {
            "format": FORMAT, "bit_weights": self.facts.bit_weights, "model": self.model, "origin": self.facts.origin,
            "approximate": self.facts.approximate, "next_id": kept.next_id, "next_stamp": kept.next_stamp,
            "changes": kept.changes, "notes": kept.notes,
        }  # fmt: skip
        row = {"name": self.address.name, "facts": json.dumps(facts), "nothing": [0.0, 0.0]}
        self._call(self._client.upsert, COLLECTIONS, [row], timeout=SECONDS)

    def _call(self, ask: Callable[..., T], *args: Any, **options: Any) -> T:
        """What a call gives; a server that does not answer for a moment is asked again, longer and longer apart."""
        with telling(self.address):
            return again(ask, *args, **options)


def signs_of(packed: NDArray[np.uint8], n_bits: int) -> NDArray[np.float32]:
    """Packed bits as +1 and -1: (n, n_bits)."""
    return np.unpackbits(packed, axis=1)[:, :n_bits].astype(np.float32) * 2 - 1


def checked_text(text: str) -> str:
    """A text of JSON that Milvus can keep."""
    if len(text) > LONGEST_TEXT:
        raise EngineError(
            f"Milvus keeps up to {LONGEST_TEXT:,} bytes beside an item. Got {len(text):,}: {text[:80]}..."
        )
    return text


def _part(beside: Beside | None, some: slice) -> Beside | None:
    return None if beside is None else beside.some(np.arange(len(beside.digests))[some])


def parts(ids: I64) -> list[list[int]]:
    """Ids as lists that fit into a condition."""
    return [ids[start : start + IDS_AT_ONCE].tolist() for start in range(0, len(ids), IDS_AT_ONCE)]
