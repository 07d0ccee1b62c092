"""A collection in Milvus apart from its items: made, opened and removed, its row of facts, how rows are read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self, TypeVar

from bitscale.errors import EngineError, NotInEngine
from bitscale.index.engines.address import Address, parse_address
from bitscale.index.engines.forms import FORMAT, PARTED_FORMAT, Among, Facts, Parted, other_format
from bitscale.index.engines.milvus_parted import only
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
from bitscale.index.engines.remote import RemoteIndex

if TYPE_CHECKING:
    from pymilvus import MilvusClient

T = TypeVar("T")

MOST_ROWS = 16_384  # that Milvus gives for one query
PREFIX = "bitscale_"
SETTLE_SECONDS = 600


@dataclass
class Kept:
    """The part of a collection's row that changes: the next id, the next stamp, changes and notes."""

    next_id: int = 0
    next_stamp: int = 0
    changes: int = 0
    notes: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, row: dict[str, Any]) -> Kept:
        """From a row that was read."""
        return cls(row["next_id"], row["next_stamp"], row["changes"], dict(row["notes"]))


class MilvusKept(RemoteIndex):
    """A Milvus collection and its row of facts."""

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
            make_items(client, PREFIX + place.name, facts)
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
            row = again(read_facts, client, place) if again(client.has_collection, COLLECTIONS) else None
        if row is None:
            raise NotInEngine(f"{place} holds no collection of bitscale. Make one with bitscale push.")
        if row["format"] not in (FORMAT, PARTED_FORMAT):
            raise EngineError(f"{place} {other_format(row['format'])}")
        parted = Parted(*row["parted"]) if "parted" in row else None
        facts = Facts(tuple(row["bit_weights"]), row["model"], row["origin"], row["approximate"], parted)
        with telling(place):
            again(client.load_collection, PREFIX + place.name)
        return cls(place, facts, client, Kept.of(row))

    def drop(self) -> None:
        """Remove the collection from the engine, items and all."""
        with telling(self.address):
            self._client.delete(COLLECTIONS, ids=[self.address.name])  # first: stopped here, the rest is nobody's
            self._client.drop_collection(self.collection)

    def close(self) -> None:
        """End the connection; what is stored stays."""
        self._client.close()

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

    def _pages(self, fields: list[str], among: Among | None = None) -> list[dict[str, Any]]:
        """Fields of all items for which a condition holds, each once, by id; page by page."""
        where = "id >= 0" if among is None else among.condition
        by_id: dict[int, dict[str, Any]] = {}
        after, full = -1, True
        while full:
            rows = self._rows(f"id > {after} and ({where})", fields, MOST_ROWS, among)
            by_id |= {row["id"]: row for row in rows}
            after, full = max((row["id"] for row in rows), default=after), len(rows) == MOST_ROWS
        return [by_id[id] for id in sorted(by_id)]

    def _rows(
        self, where: str, fields: list[str], limit: int | None = None, among: Among | None = None
    ) -> list[dict[str, Any]]:
        """Fields of items for which an expression holds, looked for where those can be that a filter lets through."""
        given: dict[str, Any] = {} if limit is None else {"limit": limit}
        how = {"consistency_level": STRONG, "timeout": SECONDS, **given, **only(among, self.facts.parted)}
        return list(self._call(self._client.query, self.collection, where, fields, **how))

    def _write_facts(self) -> None:
        kept = self._kept
        kept.changes += 1
        parted = self.facts.parted
        facts = {
            "format": FORMAT if parted is None else PARTED_FORMAT, "bit_weights": self.facts.bit_weights,
            "model": self.model, "origin": self.facts.origin, "approximate": self.facts.approximate,
            "next_id": kept.next_id, "next_stamp": kept.next_stamp, "changes": kept.changes, "notes": kept.notes,
            **({} if parted is None else {"parted": parted}),
        }  # fmt: skip
        row = {"name": self.address.name, "facts": json.dumps(facts), "nothing": [0.0, 0.0]}
        self._call(self._client.upsert, COLLECTIONS, [row], timeout=SECONDS)

    def _call(self, ask: Callable[..., T], *args: Any, **options: Any) -> T:
        """What a call gives; a server that does not answer for a moment is asked again, longer and longer apart."""
        with telling(self.address):
            return again(ask, *args, **options)
