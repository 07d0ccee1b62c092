"""What a collection should hold: a plain dictionary that takes the same operations, and brute force to search it.

An operation is a list that JSON can carry, so that the process that dies and the oracle outside it do the same:

    ["add", seed, n]        n items with their codes, paths and all, drawn from the seed
    ["columns", seed, n]    the same through add_codes
    ["remove", [ids]]       by id
    ["forget", path]        by path, a folder too
    ["change", {...}]       several in one commit: add [seed, n], remove [ids], update [[id, seed]], skip, unskip
    ["note", key, value]
    ["seal"], ["compact"], ["backup", folder], ["stage"], ["switch"], ["reopen"]
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

import bitscale as bs
from bitscale.collection import Collection
from bitscale.collection.items import NewItem, Skipped
from bitscale.collection.segments.seal import PROBLEM
from bitscale.collection.store.rows import TEXTS
from bitscale.data.labelled import Labelled
from tests import oracle

OWN = {PROBLEM, TEXTS}  # notes of the collection's own: that a seal failed, and a count of changes to rows

Operation = list[Any]
N_BITS = 32
N_BYTES = N_BITS // 8


@cache
def hasher(number: int) -> Any:
    """One of two models that a collection goes to and fro between."""
    rng = np.random.default_rng(7)
    train = Labelled(rng.normal(size=(60, 8)).astype(np.float32), np.arange(60) % 3, ("a", "b", "c"))
    return bs.make_hasher("lsh", n_bits=N_BITS, features="none", seed=number).fit(train)


def fingerprint(model: int | str) -> str:
    """Of one of the two, or of a model only known by it."""
    return model if isinstance(model, str) else str(hasher(model).fingerprint)


def code(seed: int, i: int) -> bytes:
    """Codes with ties: few of them are different."""
    return hashlib.sha256(f"code {seed % 5} {i % 7}".encode()).digest()[:N_BYTES]


def recoded(old: bytes) -> bytes:
    """What the other model makes of the picture behind a code."""
    return hashlib.sha256(b"other" + old).digest()[:N_BYTES]


def codes(packed: list[bytes], model: int | str) -> bs.Codes:
    array = np.frombuffer(b"".join(packed), np.uint8).reshape(len(packed), N_BYTES)
    return bs.Codes.from_packed(array, n_bits=N_BITS, model=fingerprint(model))


def new_item(seed: int, i: int) -> NewItem:
    return NewItem(
        path=f"/pictures/{seed}/{i}.jpg",
        content=hashlib.sha256(f"{seed} {i}".encode()).digest() if i % 4 else None,
        size=1000 + i,
        modified=seed,
        labels=("cat",) if i % 2 else (),
        metadata={"camera": i % 3} if i % 5 else {},
    )


def skipped(path: str) -> Skipped:
    return Skipped(path, 1, 2, "broken")


@dataclass
class World:
    """The dictionary."""

    items: dict[int, NewItem] = field(default_factory=dict)
    codes: dict[int, bytes] = field(default_factory=dict)
    next_id: int = 0
    notes: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    model: int | str = 0

    def to_json(self) -> dict[str, Any]:
        """For a process that goes on from here: what it needs to know."""
        held = {str(id): packed.hex() for id, packed in self.codes.items()}
        return {"codes": held, "next_id": self.next_id, "model": self.model}

    @classmethod
    def from_json(cls, known: dict[str, Any]) -> World:
        held = {int(id): bytes.fromhex(text) for id, text in known["codes"].items()}
        items = {id: NewItem() for id in held}  # the process that works does not look at them
        return cls(items, held, known["next_id"], model=known["model"])

    def after(self, *operations: Operation) -> World:
        """The dictionary as it will be."""
        new = World(dict(self.items), dict(self.codes), self.next_id, dict(self.notes), dict(self.skipped), self.model)
        for operation in operations:
            new._do(*operation)
        return new

    def _do(self, what: str, *given: Any) -> None:
        match what:
            case "add" | "columns":
                self._add(*given)
            case "remove":
                self._remove(given[0])
            case "forget":
                root = given[0]
                paths = {id: item.path for id, item in self.items.items()}
                self._remove([id for id, path in paths.items() if path == root or path.startswith(f"{root}/")])
            case "change":
                changes = given[0]
                self._remove(changes.get("remove", []))
                for id, seed in changes.get("update", []):
                    self.items[id] = replace(new_item(seed, id), content=self.items[id].content)
                self._add(*changes.get("add", (0, 0)))
                for path in changes.get("unskip", []):
                    self.skipped.pop(path, None)
                self.skipped |= {path: skipped(path) for path in changes.get("skip", [])}
            case "note":
                self.notes[given[0]] = given[1]
            case "switch":
                assert isinstance(self.model, int)
                self.model = 1 - self.model
                self.codes = {id: recoded(old) for id, old in self.codes.items()}

    def _add(self, seed: int, n: int) -> None:
        for i in range(n):
            self.items[self.next_id], self.codes[self.next_id] = new_item(seed, i), code(seed, i)
            self.next_id += 1

    def _remove(self, ids: list[int]) -> None:
        for id in ids:
            self.items.pop(id, None)
            self.codes.pop(id, None)

    def differs(self, collection: Collection) -> str:
        """How a collection differs from this, in rows, codes and search results; empty: not at all."""
        if collection.model != fingerprint(self.model):
            return "another model"
        rows = {item.id: item for item in collection.items()}
        for id in sorted(rows.keys() | self.items.keys()):
            if id not in rows or id not in self.items:
                return f"item {id} is {'missing' if id in self.items else 'too many'}"
            mine, found = self.items[id], rows[id]
            if any(getattr(mine, name) != getattr(found, name) for name in vars(mine)):
                return f"item {id} is {found}, not {mine}"
        notes = {key: value for key, value in collection.notes().items() if key not in OWN}
        if notes != self.notes or {s.path: s for s in collection.skipped()} != self.skipped:
            return "other notes, or skipped files"
        if len(collection) != len(self.items):
            return f"{len(collection)} codes, not {len(self.items)}"
        return self.searched(collection.index)

    def searched(self, index: Any, bits: int | None = None) -> str:
        """How brute force differs from an index: every stored code as a query, every item as an answer."""
        ids = np.array(sorted(self.codes), np.int64)
        stored = codes([self.codes[id] for id in ids.tolist()], self.model)
        asked = codes(sorted({*self.codes.values(), code(99, 99)}), self.model)
        k = len(ids) + 1
        found = index.search(asked, k, bits=bits)
        wanted, distances = oracle.search(stored, ids, asked, k, bits=bits)
        same = np.array_equal(found.ids, wanted) and np.array_equal(found.distances, distances)
        return "" if same else "search finds something else than brute force"


def perform(collection: Collection, operation: Operation, world: World) -> None:
    """Do to a collection what the dictionary will do too; `world` is how it stands before."""
    what, *given = operation
    match what:
        case "add":
            seed, n = given
            new = codes([code(seed, i) for i in range(n)], world.model)
            ids = collection.apply(codes=new, items=[new_item(seed, i) for i in range(n)])
            assert ids.tolist() == list(range(world.next_id, world.next_id + n))
        case "columns":
            _columns(collection, world, *given)
        case "remove":
            assert collection.remove(given[0]) == len(world.items.keys() & set(given[0]))
        case "forget":
            collection.remove(given[0])
        case "change":
            changes = given[0]
            seed, n = changes.get("add", (0, 0))
            collection.apply(
                codes=codes([code(seed, i) for i in range(n)], world.model) if n else None,
                items=[new_item(seed, i) for i in range(n)],
                remove=changes.get("remove", []),
                update=[
                    (id, replace(new_item(seed, id), content=collection.item(id).content))
                    for id, seed in changes.get("update", [])
                ],
                skip=[skipped(path) for path in changes.get("skip", [])],
                unskip=changes.get("unskip", []),
            )
        case "note":
            collection.note(*given)
        case "seal" | "compact":
            getattr(collection, what)()
        case "backup":
            collection.backup(given[0])
        case "stage":
            _stage(collection, world)
        case "switch":
            collection.switch(hasher(1 - world.model))


def _columns(collection: Collection, world: World, seed: int, n: int) -> None:
    items = [new_item(seed, i) for i in range(n)]
    collection.add_codes(
        codes([code(seed, i) for i in range(n)], world.model),
        paths=[item.path for item in items],
        contents=[item.content for item in items],
        sizes=[item.size for item in items],
        modified=[item.modified for item in items],
        labels=[item.labels for item in items],
        metadata=[item.metadata for item in items],
    )


def _stage(collection: Collection, world: World) -> None:
    """Stage what is not staged yet, in two batches: an interrupted run is taken up again."""
    model = 1 - world.model
    there = set(collection.staged_ids(hasher(model)).tolist())
    missing = [id for id in world.codes if id not in there]
    for part in (missing[::2], missing[1::2]):
        if part:
            collection.stage(part, codes([recoded(world.codes[id]) for id in part], model), hasher(model))
