"""Adding, removing and filtering: a state machine against a plain dict, and searches amid changes."""

import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import bitscale as bs
from tests import oracle
from tests.conftest import endurance


class IndexMachine(RuleBasedStateMachine):
    """ExactIndex must behave as a dict from id to code with brute-force search."""

    @initialize(seed=st.integers(0, 2**32), n=st.integers(0, 300), n_bits=st.integers(1, 40), tables=st.booleans())
    def start(self, seed, n, n_bits, tables):
        self.rng = np.random.default_rng(seed)
        self.n_bits = n_bits
        codes = self.codes(n)
        self.index = bs.ExactIndex(codes, tables=tables)
        self.items = dict(enumerate(codes.packed))
        self.highest = n
        self.selections = []

    def codes(self, n):
        signs = self.rng.choice([-1, 1], (n, self.n_bits), p=[0.9, 0.1])  # many duplicates
        return bs.Codes.from_signs(signs, np.arange(self.n_bits, 0, -1))

    @rule(n=st.integers(0, 200))
    def add(self, n):
        codes = self.codes(n)
        ids = self.index.add(codes)
        assert ids.tolist() == list(range(self.highest, self.highest + n))
        self.items.update(zip(ids.tolist(), codes.packed, strict=True))
        self.highest += n

    @rule(n=st.integers(1, 30), spread=st.integers(1, 1000))
    def add_under_own_ids(self, n, spread):
        free = [i for i in self.rng.permutation(self.highest + spread).tolist() if i not in self.items][:n]
        codes = self.codes(len(free))
        assert self.index.add(codes, free).tolist() == free
        self.items.update(zip(free, codes.packed, strict=True))
        self.highest = max([self.highest, *(i + 1 for i in free)])

    @rule(share=st.floats(0, 1))
    def remove(self, share):
        gone = [i for i in self.items if self.rng.random() < share]
        assert self.index.remove([*gone, self.highest + 7]) == len(gone)
        for i in gone:
            del self.items[i]
        self.selections = [(s, ids - set(gone)) for s, ids in self.selections]

    @rule(share=st.floats(0, 1))
    def prepare(self, share):
        ids = {i for i in self.items if self.rng.random() < share}
        self.selections.append((self.index.prepare([*ids, self.highest + 3]), ids))

    @rule()
    def reopen(self):
        with tempfile.TemporaryDirectory() as folder:
            self.index.save(Path(folder) / "i.bsi")
            self.index = bs.ExactIndex.open(Path(folder) / "i.bsi")
        self.selections = []

    @rule(k=st.integers(1, 50), bits=st.integers(1, 40))
    def search(self, k, bits):
        self.check(k, min(bits, self.n_bits), None, self.items)

    @precondition(lambda self: self.selections)
    @rule(k=st.integers(1, 50))
    def search_prepared(self, k):
        selection, ids = self.selections[self.rng.integers(len(self.selections))]
        self.check(k, self.n_bits, selection, {i: self.items[i] for i in ids})

    def check(self, k, bits, where, items):
        queries = self.codes(2)
        packed = np.array(list(items.values()), np.uint8).reshape(len(items), (self.n_bits + 7) // 8)
        stored = bs.Codes(packed, queries.bit_weights)
        want = oracle.search(stored, np.array(list(items), np.int64), queries, k, bits=bits)
        hits = self.index.search(queries, k, bits=bits, where=where)
        assert np.array_equal(hits.ids, want[0])
        assert np.array_equal(hits.distances, want[1])

    @invariant()
    def length(self):
        if hasattr(self, "index"):
            assert len(self.index) == len(self.items)


IndexMachine.TestCase.settings = settings(max_examples=endurance(1000), stateful_step_count=20, deadline=None)
TestIndexMachine = pytest.mark.slow(IndexMachine.TestCase)


def test_automatic_ids_are_never_reused_but_own_ones_may_be():
    codes = bs.Codes.from_packed(np.zeros((3, 1), np.uint8))
    index = bs.ExactIndex(codes)
    index.remove([2])
    assert index.add(codes[:1]).tolist() == [3]
    assert index.add(codes[:1], [2]).tolist() == [2]


def test_automatic_ids_go_on_after_a_merge():
    codes = bs.Codes.from_packed(np.zeros((3, 1), np.uint8), model="m")
    for gone, left in (([2], 2), ([0, 1, 2], 0), ([], 3)):
        index = bs.ExactIndex(codes, tables=False)
        index.remove(gone)
        merged = index.merged()
        assert (len(merged), merged.model) == (left, "m")
        assert merged.describe()["kernel"] == index.describe()["kernel"]
        assert merged.add(codes[:1]).tolist() == [3]


@pytest.mark.parametrize("name", ["_state", "_next_id"])
def test_an_interrupted_addition_gives_no_id_twice(name):
    """Ctrl-C between any two things that adding changes."""

    def some(n):
        return bs.Codes.from_signs(np.random.default_rng(n).normal(size=(n, 16)))

    class Interrupted(bs.ExactIndex):
        armed = False

        def __setattr__(self, attribute, value):
            if self.armed and attribute == name:
                raise KeyboardInterrupt
            super().__setattr__(attribute, value)

    index = Interrupted(some(5))
    Interrupted.armed = True
    with pytest.raises(KeyboardInterrupt):
        index.add(some(3))
    Interrupted.armed = False
    index.add(some(4))
    ids = index.ids()
    assert len(np.unique(ids)) == len(ids) == 9


def test_an_id_added_again_is_outside_an_older_selection():
    codes = bs.Codes.from_packed(np.arange(5, dtype=np.uint8)[:, None])
    index = bs.ExactIndex(codes)
    selection = index.prepare([1, 2])
    index.remove([1])
    index.add(codes[1], [1])
    assert index.search(codes[1], 3, where=selection).ids[0].tolist() == [2, -1, -1]
    assert index.search(codes[1], 3, where=index.prepare([1, 2])).ids[0].tolist() == [1, 2, -1]
    assert len(selection) == 2


def test_a_selection_of_another_index_is_refused():
    codes = bs.Codes.from_packed(np.zeros((1, 1), np.uint8))
    with pytest.raises(bs.BitscaleError, match="another index"):
        bs.ExactIndex(codes).search(codes, 1, where=bs.ExactIndex(codes).prepare([0]))


def test_many_small_adds_stay_few_segments():
    codes = bs.Codes.from_packed(np.random.default_rng(0).integers(0, 256, (700, 8), dtype=np.uint8))
    index = bs.ExactIndex(codes[:0])
    for i in range(700):
        index.add(codes[i])
    assert index.describe()["segments"] <= 12
    assert np.array_equal(index.search(codes[:20], 5).ids, bs.ExactIndex(codes).search(codes[:20], 5).ids)


def test_searches_amid_changes_see_one_consistent_state():
    """A writer moves one group of equal codes in and another out; a search sees exactly one of them, whole."""
    near, far = (
        bs.Codes.from_packed(np.zeros((200, 8), np.uint8)),
        bs.Codes.from_packed(np.full((5000, 8), 255, np.uint8)),
    )
    index = bs.ExactIndex(far)
    selection = index.prepare(np.arange(5000))
    wrong, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            hits = index.search(near[:1], 201)
            count = int((hits.distances[0] == 0).sum())
            if count not in (0, 200) or (index.search(near[:1], 1, where=selection).ids[0] != 0).any():
                wrong.append(count)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(endurance(600)):
        ids = index.add(near)
        assert index.remove(ids) == 200
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert len(index) == 5000
