"""EngineCollection: a collection on an engine, for reading: what a folder offers to searches, services, duplicates."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from bitscale.arrays import Int
from bitscale.collection.engines.source import PAGE, Engine
from bitscale.collection.engines.texts import item_of_text, sight_of_text
from bitscale.collection.items import Item, Skipped
from bitscale.collection.search.answering import Answering
from bitscale.collection.search.searcher import Searcher
from bitscale.collection.store.contents import CODES_ONLY
from bitscale.collection.store.facets import Facets, Field, Value
from bitscale.collection.store.marks import Mark
from bitscale.collection.store.rows import is_below
from bitscale.collection.store.whole import whole
from bitscale.errors import EngineError, InputError, ModelMismatch, UnknownItem
from bitscale.hashers import Hasher
from bitscale.index.base import check_ids
from bitscale.index.engines import connect
from bitscale.index.engines.address import Address
from bitscale.index.engines.remote import RemoteIndex
from bitscale.looks.look import Looks, looks_of

NOTES, FACETS = "notes", "facets"  # what a push keeps of a collection's notes and facets


class EngineCollection(Answering):
    """What `push` brought to an engine. It is read here and changed in the folder it came from, by the next push."""

    read_only = True

    def __init__(self, index: RemoteIndex, hasher: Hasher | None = None) -> None:
        """Serve what is in an index; searching for pictures takes the model its codes were made by."""
        if hasher is not None and hasher.fingerprint != index.model:
            index.close()
            raise ModelMismatch(
                f"{index.address} holds codes of model {index.model}. Got {hasher.fingerprint}: give that model."
            )
        self._engine, self._hasher = Engine(index), hasher
        self._searcher = Searcher(self._engine, lambda: self.hasher)

    @classmethod
    def open(cls, address: str, hasher: Hasher | None = None) -> Self:
        """The collection at an address."""
        return cls(connect.open_index(address), hasher)

    def close(self) -> None:
        """End the connection; what is stored stays."""
        self._searcher.close()
        self.index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return f"EngineCollection({str(self.path)!r}, {len(self)} items, {self.n_bits} bits, model={self.model!r})"

    def _set_right(self) -> None:
        """Nothing to set right: no state is kept between two calls."""
        self._interrupted = False

    # ------------------------------------------------------------------ what it is

    @property
    def path(self) -> Address:
        """The engine's address."""
        return self._engine.place

    @property
    def index(self) -> RemoteIndex:
        """The codes there."""
        return self._engine.index

    @property
    def model(self) -> str:
        """The fingerprint of the model whose codes these are."""
        return self.index.model or ""

    @property
    def hasher(self) -> Hasher:
        """The model, which is not in the engine."""
        if self._hasher is None:
            raise EngineError(
                f"{self.path} holds codes and no model. Give the model they were made by (--model FILE, or the "
                "collection that was pushed), or search for ids and codes."
            )
        return self._hasher

    @property
    def changes(self) -> int:
        """How many changes there were so far: the same number means the same contents."""
        return self._engine.refresh()

    @property
    def idle(self) -> bool:
        """Whether a search is sure to be quick: an engine is elsewhere."""
        return False

    def notices(self) -> list[str]:
        """What the owner should know and do something about, a sentence each; as of the last search."""
        if not self._engine.unfinished():
            return []
        return [
            f"The last push to {self.path} is under way or was stopped: a part of the collection may be missing there. "
            "Run the same `bitscale push` again."
        ]

    def refresh(self) -> None:
        """Searches always see what is there now."""

    # ------------------------------------------------------------------ items

    def item(self, id: int) -> Item:
        """One item."""
        known = self.items_of([id])
        if id not in known:
            raise UnknownItem(f"there is no item {id} in {self.path.name}. It may have been removed.")
        return known[id]

    @whole
    def items_of(self, ids: Sequence[int]) -> dict[int, Item]:
        """Some items by id; those that are not there are left out."""
        return self._engine.items(check_ids(np.array([id for id in ids if id >= 0], np.int64)))

    def items(self) -> Iterator[Item]:
        """All items, by id."""
        return (item_of_text(id, text) for id, text in self._texts())

    @whole
    def page(self, after: int, n: int, where: Any = None) -> list[Item]:
        """The next n items by id for which `where` holds, after an id; -1: from the first."""
        among = None if where is None else self._engine.among(where)
        if among is not None and among.ids is not None:
            some = among.ids[among.ids > after][:n]
            return list(self._engine.items(some).values())
        return [item_of_text(id, text) for id, text in self.index.page(after, n, among)]

    @whole
    def find(self, path: str | os.PathLike[str]) -> int | None:
        """The id of the item at a path, or None."""
        return self._engine.at_path(os.path.abspath(os.fsdecode(path)))

    @whole
    def select(self, where: Any) -> Int:
        """The ids of items for which `where` holds, ascending."""
        among = self._engine.among(where)
        return among.ids if among.ids is not None else self.index.select(among)

    @whole
    def has_field(self, field: str) -> bool:
        """Whether any item has this in its metadata."""
        return self._engine.has_field(field)

    def facets(self, most: int = 50) -> Facets:
        """Labels and metadata with the number of items that have them, as of the last push."""
        known = json.loads(self.index.notes().get(FACETS, '{"labels": [], "fields": [], "complete": true}'))
        fields = [
            Field(one["field"], one["items"], tuple(Value(**value) for value in one["values"][:most]))
            for one in known["fields"][:most]
        ]
        labels = tuple(Value(**value) for value in known["labels"])
        complete = known["complete"] and len(labels) <= most and len(known["fields"]) <= most
        return Facets(labels[:most], tuple(fields), complete)

    def listing(self, root: str = "") -> Iterator[tuple[int, str, int, int, bytes | None]]:
        """Id, path, size, time of change and content of every item whose path is `root` or below it."""
        return (
            (item.id, item.path, item.size, item.modified, item.content)
            for item in self.items()
            if item.path and is_below(item.path, root)
        )

    def looks_of(self, ids: Sequence[int]) -> tuple[list[int], Looks]:
        """The looks of items as far as they are kept, and the ids they are of."""
        seen = self._engine.seen(np.array(ids, np.int64))
        there = list(seen)
        return there, looks_of([seen[id].look for id in there], [(seen[id].width, seen[id].height) for id in there])

    def sizes(self) -> dict[int, tuple[int, int]]:
        """Width and height of every item of which a look is kept."""
        sights = ((id, sight_of_text(id, text)) for id, text in self._texts())
        return {id: sight for id, sight in sights if sight is not None}

    def _texts(self) -> Iterator[tuple[int, str]]:
        after = -1
        while page := self.index.page(after, PAGE):
            yield from page
            after = page[-1][0]

    # ------------------------------------------------------------------ what else a folder knows

    def notes(self) -> dict[str, str]:
        """Small facts kept with the collection, as of the last push."""
        return dict(json.loads(self.index.notes().get(NOTES, "{}")))

    def skipped(self, root: str = "") -> list[Skipped]:
        """Files that could not be taken in are the folder's to know."""
        return []

    def marks(self) -> list[Mark]:
        """Marks are kept in folders."""
        return []

    @property
    def codes_only(self) -> bool:
        """Whether nothing of a picture's file is kept."""
        return CODES_ONLY in self.notes()

    def require_files(self, what: str) -> None:
        """Refuse `what` where no paths are kept by which pictures could be read again."""
        if self.codes_only:
            raise InputError(f"{what} reads the pictures again, and {self.path.name} keeps codes only, no paths.")
