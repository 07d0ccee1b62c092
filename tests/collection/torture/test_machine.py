"""A state machine against a plain dictionary: any order of operations, reopening, backups, kills and searches."""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bitscale.collection import Collection
from bitscale.errors import InputError
from tests import oracle
from tests.collection.torture.world import N_BITS, World, code, codes, hasher, new_item, perform
from tests.conftest import TORTURE

BITS = st.sampled_from([None, 1, 8, 13, N_BITS])
WHERE = st.sampled_from([None, {"camera": 1}, {"label": "cat"}, {"camera": 2, "label": "cat"}])


class Life(RuleBasedStateMachine):
    """One collection, its writer, a reader that stays open, and the dictionary."""

    @initialize()
    def create(self):
        self.folder = Path(tempfile.mkdtemp(prefix="bitscale-machine-"))
        self.path = self.folder / "photos.bsc"
        self.writer = Collection.create(self.path, hasher(0))
        self.reader = Collection.open(self.path, read_only=True)
        self.world, self.seed = World(), 0

    def teardown(self):
        self.reader.close()
        self.writer.close()
        shutil.rmtree(self.folder)

    def do(self, *operation):
        perform(self.writer, list(operation), self.world)
        self.world = self.world.after(list(operation))

    def chosen(self, data, most=4):
        """Some ids, known ones mostly."""
        known = st.sampled_from(sorted(self.world.items)) if self.world.items else st.nothing()
        return sorted(data.draw(st.sets(known | st.integers(0, self.world.next_id + 2), max_size=most)))

    # ------------------------------------------------------------------ changes

    @rule(n=st.integers(0, 12), way=st.sampled_from(["add", "columns"]))
    def add(self, n, way):
        self.seed += 1
        self.do(way, self.seed, n)

    @rule(data=st.data())
    def remove(self, data):
        self.do("remove", self.chosen(data))

    @rule(data=st.data())
    def forget(self, data):
        if self.world.items:
            path = data.draw(st.sampled_from(sorted(item.path for item in self.world.items.values())))
            self.do("forget", data.draw(st.sampled_from([path, os.path.dirname(path)])))

    @rule(data=st.data(), n=st.integers(0, 3))
    def change(self, data, n):
        """Add, remove, update, skip and forget skips in one commit."""
        self.seed += 1
        gone = self.chosen(data)
        kept = [id for id in self.chosen(data) if id in self.world.items and id not in gone]
        update = [[id, 10_000 + self.seed] for id in kept]
        skip, unskip = [f"/skip/{self.seed % 4}"], [f"/skip/{self.seed % 3}"]
        self.do("change", {"add": [self.seed, n], "remove": gone, "update": update, "skip": skip, "unskip": unskip})

    @rule(value=st.text("abc", max_size=3))
    def note(self, value):
        self.do("note", "key", value)

    @precondition(lambda self: self.world.items)
    @rule(data=st.data())
    def refuse_a_known_path(self, data):
        """What is refused changes nothing, not even in part."""
        id = data.draw(st.sampled_from(sorted(self.world.items)))
        items = [new_item(77_777, 0), self.world.items[id]]
        with pytest.raises(InputError, match="already"):
            self.writer.apply(codes=codes([code(0, 0)] * 2, self.world.model), items=items, remove=[])

    # ------------------------------------------------------------------ upkeep

    @rule()
    def seal(self):
        self.do("seal")

    @rule()
    def compact(self):
        self.reader.refresh()  # lets go of an old state
        self.do("compact")

    @rule()
    def reindex(self):
        self.do("stage")
        self.do("switch")

    @rule()
    def reopen(self):
        self.writer.close()
        self.writer = Collection.open(self.path)

    @rule()
    def kill(self):
        """What a kill -9 at rest leaves is a copy of the files as they are."""
        copy = self.folder / "killed"
        shutil.copytree(self.path, copy)
        with Collection.open(copy) as found:
            assert self.world.differs(found) == ""
            assert found.verify().ok
        shutil.rmtree(copy)

    @rule()
    def backup(self):
        self.reader.backup(self.folder / "backup")
        with Collection.open(self.folder / "backup") as found:
            assert self.world.differs(found) == ""
        shutil.rmtree(self.folder / "backup")

    # ------------------------------------------------------------------ looking

    @rule(seed=st.integers(0, 8), k=st.integers(1, 30), bits=BITS, where=WHERE, reader=st.booleans())
    def search(self, seed, k, bits, where, reader):
        ids, stored, query = self.those(where, seed)
        collection = self.reader if reader else self.writer
        found = collection.search(query, k, bits=bits, where=where)
        wanted, distances = oracle.ordered(stored, ids, query, k, bits)
        expected = [(int(i), float(d)) for i, d in zip(wanted[0], distances[0], strict=True) if i >= 0]
        self.same(found, expected)

    @rule(seed=st.integers(0, 8), radius=st.integers(0, N_BITS), bits=BITS, where=WHERE, weighted=st.booleans())
    def near(self, seed, radius, bits, where, weighted):
        ids, stored, query = self.those(where, seed)
        limit = {"max_distance": radius} if weighted else {"radius": radius}  # all bits weigh 1
        found = self.reader.search(query, bits=bits, where=where, **limit)
        wanted, distances = oracle.ordered(stored, ids, query, max(len(ids), 1), bits)
        pairs = zip(wanted[0].tolist(), distances[0].tolist(), strict=True)
        self.same(found, [(i, d) for i, d in pairs if i >= 0 and d <= radius])

    @precondition(lambda self: self.world.items)
    @rule(data=st.data(), k=st.integers(1, 6))
    def search_by_item(self, data, k):
        id = data.draw(st.sampled_from(sorted(self.world.items)))
        ids, stored, _ = self.those(None, 0)
        query = codes([self.world.codes[id]], self.world.model)
        wanted, distances = oracle.ordered(stored, ids, query, len(ids))
        pairs = zip(wanted[0].tolist(), distances[0].tolist(), strict=True)
        others = [(i, d) for i, d in pairs if i not in (-1, id)]
        self.same(self.reader.search(id, k), [(id, 0.0), *others[:k]])  # the item searched for is a row more

    def those(self, where, seed):
        """Ids and codes that a condition leaves, straight from the dictionary, and a query."""
        ids = [id for id in sorted(self.world.items) if where is None or self.passes(self.world.items[id], where)]
        assert where is None or self.reader.select(where).tolist() == ids
        stored = codes([self.world.codes[id] for id in ids], self.world.model)
        return np.array(ids, np.int64), stored, codes([code(seed, seed)], self.world.model)

    def passes(self, item, where):
        return all(
            value in item.labels if key == "label" else item.metadata.get(key) == value for key, value in where.items()
        )

    def same(self, results, expected):
        assert [(match.id, match.distance) for match in results[0]] == expected
        for match in results[0]:
            assert match.item.path == self.world.items[match.id].path

    @invariant()
    def writer_and_reader_agree_with_the_dictionary(self):
        for collection in (self.writer, self.reader):
            assert len(collection) == len(self.world.items)
        assert {row[0]: row[1] for row in self.reader.listing()} == {
            i: item.path for i, item in self.world.items.items()
        }
        for id, item in list(self.world.items.items())[:3]:
            assert self.reader.find(item.path) == id
            assert id in self.reader

    @rule()
    def everything(self):
        for collection in (self.writer, self.reader):
            assert self.world.differs(collection) == ""
        assert self.writer.verify().ok


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=600 if TORTURE else 40,
    stateful_step_count=60 if TORTURE else 30,
    deadline=None,
    derandomize=not TORTURE,
)
