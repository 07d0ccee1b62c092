"""An engine as a source of searches: codes, conditions and rows all asked of it."""

from __future__ import annotations

import contextlib
import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitscale.arrays import Int
from bitscale.codes import Codes
from bitscale.collection.engines import where_milvus, where_postgres
from bitscale.collection.engines.parting import field_of, keys_of
from bitscale.collection.engines.texts import item_of_text, sight_of_text
from bitscale.collection.items import Item
from bitscale.collection.search.explain import DRIFT, SAMPLE, Standard, Standards, sample, standard_of, usual_of
from bitscale.collection.search.order import Overtaken
from bitscale.collection.search.source import Told
from bitscale.collection.search.version import Version
from bitscale.collection.store.seen import Seen
from bitscale.collection.store.text_search import TEXT_SEARCH
from bitscale.collection.where import Condition, conditions_of
from bitscale.index.base import Index
from bitscale.index.engines.address import Address
from bitscale.index.engines.forms import Among
from bitscale.index.engines.remote import RemoteIndex
from bitscale.index.exact import ExactIndex
from bitscale.pictures.pool import Pool

PAGE = 5_000  # items read at a time; for each page Milvus waits 0.2 s or more
USUAL, NEXT_ID, RECALL = "usual", "next_id", "recall"  # notes that a push leaves
CURSOR, UNFINISHED = "cursor", "unfinished"  # how far it came, and whether it is under way
NEAREST = 64  # items whose nearest other is looked for where a push has not measured it


@dataclass(frozen=True)
class Whole:
    """What is known of a collection as a whole, at a time."""

    state: int
    n_items: int
    notes: dict[str, str]


class Engine:
    """A collection on an engine."""

    def __init__(self, index: RemoteIndex) -> None:
        self._index = index
        self._known: Whole | None = None
        self._sample: tuple[int, Codes] | None = None  # of how many items, and their codes
        self._standards: dict[int, Standard] = {}  # by length, of the sample

    @property
    def place(self) -> Address:
        """Where it is."""
        return self._index.address

    @property
    def index(self) -> RemoteIndex:
        """The index there."""
        return self._index

    @property
    def known(self) -> None:
        """Nothing: an engine is changed by others."""

    def refresh(self) -> int:
        """How many changes there were: what is searched is always the last."""
        return self._index.counted()[1]

    def snapshot(self) -> Index:
        """The index itself."""
        return self._index

    def held(self) -> AbstractContextManager[object]:
        """Nothing: an engine is asked anew until nothing has changed meanwhile."""
        return contextlib.nullcontext()

    def narrowed(self, where: Any) -> tuple[object, int]:
        """A filter that the engine works out, and how many items it lets through."""
        among = self.among(where)
        return among, len(among.ids) if among.ids is not None else self._index.count(among)

    def among(self, where: Any) -> Among:
        """A condition as a filter; what Milvus cannot look into is looked at here."""
        if self.place.scheme == "postgresql":
            return self._index.where(where_postgres.condition(where))
        conditions = conditions_of(where)
        here = [one for one in conditions if where_milvus.looks_inside(one)]
        there = where_milvus.expression([one for one in conditions if not where_milvus.looks_inside(one)])
        parted = self._index.facts.parted
        keys = None if parted is None else keys_of(conditions, field_of(parted.field))
        if not here:
            return self._index.where(there, keys)
        where_postgres.condition(here)  # refuses what can be no condition
        among, after, matching = self._index.where(there, keys), -1, []
        while page := self._index.page(after, PAGE, among):
            items = [item_of_text(id, text) for id, text in page]
            matching += [item.id for item in items if all(contains(item, one) for one in here)]
            after = page[-1][0]
        return self._index.prepare(np.array(matching, np.int64), keys)

    def has_field(self, field: str) -> bool:
        """Whether any item has this in its metadata."""
        here = self.place.scheme == "postgresql"
        condition = where_postgres.has_field(field) if here else where_milvus.has_field(field)
        return bool(self._index.page(-1, 1, self._index.where(condition)))

    def at_path(self, path: str) -> int | None:
        """The item of a picture file."""
        page = self._index.page(-1, 1, self.among([Condition("path", "=", path)]))
        return page[0][0] if page else None

    def items(self, ids: Int) -> dict[int, Item]:
        """Some items by id."""
        texts = self._index.texts(ids)
        return {id: item_of_text(id, texts[id]) for id in ids.tolist() if id in texts}

    def seen(self, ids: Int) -> dict[int, Seen]:
        """What was seen of items of which a look is kept."""
        rows = self._index.rows(ids)
        return {id: seen_of(id, row.text, row.look) for id, row in rows.items() if row.look is not None}

    def told(self, ids: list[int], standards: Standards, pool: Pool) -> Told:
        """Rows, looks and codes of items; their codes are fetched now, since they may be gone later."""
        index, rows = self._index, self._index.rows(np.array(ids, np.int64))
        if len(rows) < len(ids):
            raise Overtaken
        packed = np.array([rows[id].packed for id in ids], np.uint8).reshape(len(ids), (index.n_bits + 7) // 8)
        fetched = ExactIndex(Codes(packed, index.bit_weights, index.model), np.array(ids, np.int64))
        items = {id: item_of_text(id, row.text) for id, row in rows.items() if row.text is not None}
        seen = {id: seen_of(id, row.text, row.look) for id, row in rows.items() if row.look is not None}
        whole = self._whole()
        recall = whole.notes.get(RECALL) if index.facts.approximate else None
        share = None if recall is None else float(json.loads(recall)["recall"])
        version = Version(self.place, fetched, whole.n_items, self.standard, pool, share)
        return Told(items, seen, version, whole.state)

    def unfinished(self) -> bool:
        """Whether the last push is under way or was stopped, as far as is known."""
        notes = (self._known or self._whole()).notes
        begun = self._index.facts.origin is not None and CURSOR not in notes
        return notes.get(UNFINISHED, str(begun)) == str(True)

    def _whole(self) -> Whole:
        """What is known of the collection as a whole, asked for again where something has changed."""
        state = self.refresh()
        if self._known is None or self._known.state != state:
            self._known = Whole(state, len(self._index), self._index.notes())
        return self._known

    def standard(self, bits: int) -> Standard:
        """How near the items are to one another at a length, as the push measured it; or measured on some."""
        whole = self._known or self._whole()
        if self._sample is None or abs(whole.n_items - self._sample[0]) > DRIFT * self._sample[0]:
            next_id = int(whole.notes.get(NEXT_ID, self._index.counted()[0]))
            drawn = sample(self._index, next_id, SAMPLE)
            self._sample, self._standards = (whole.n_items, self._index.get(drawn)), {}
        if bits not in self._standards:
            codes = self._sample[1]
            known = json.loads(whole.notes.get(USUAL, "{}"))
            usual = known[str(bits)] if str(bits) in known else usual_of(self._index, codes[:NEAREST], bits)
            self._standards[bits] = standard_of(codes, whole.n_items, bits, usual)
        return self._standards[bits]


def seen_of(id: int, text: str | None, look: bytes) -> Seen:
    """What was seen of a picture whose look is kept."""
    return Seen(*sight_of_text(id, text) or (0, 0), look, {})


def contains(item: Item, one: Condition) -> bool:
    """Whether a `~` holds of an item, exactly as in a folder."""
    wanted = where_postgres.as_bytes(one.value)
    if one.field == "path":
        return bool(item.path) and TEXT_SEARCH["contains"][0](item.path.encode(errors="surrogateescape"), wanted)
    if one.field == "label":
        return TEXT_SEARCH["one_contains"][0](json.dumps(item.labels), wanted)
    table, name = (item.exif, one.field[5:]) if one.field.startswith("exif.") else (item.metadata, one.field)
    return TEXT_SEARCH["value_contains"][0](json.dumps(dict(table)), name.removeprefix("metadata."), wanted)
