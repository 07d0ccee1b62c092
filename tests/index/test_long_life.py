"""Long lives: hundreds of thousands of random operations on an index against a plain dictionary, in exact order."""

import random

import numpy as np
import pytest

import bitscale as bs
from tests import oracle
from tests.conftest import TORTURE

LIVES = 50 if TORTURE else 2
LENGTH = 7_000 if TORTURE else 1_000  # 350,000 in all under `make torture`
MOST = 150  # items, about


class Life:
    """An index, the dictionary beside it, and the selections made of it."""

    def __init__(self, seed: int) -> None:
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.n_bits = self.rng.choice([1, 7, 8, 24, 33, 64, 100, 200])
        self.weights = np.sort(self.numbers.choice([1.0, 2.0, 5.0], self.n_bits))[::-1]  # many equal sums
        self.index = bs.ExactIndex(self.codes(0), tables=self.rng.random() < 0.5)
        self.items: dict[int, np.ndarray] = {}
        self.next_id = 0
        self.selections: list[tuple[object, set[int]]] = []

    def codes(self, n: int) -> bs.Codes:
        bits = self.numbers.random((n, self.n_bits)) < 0.1  # many equal codes
        return bs.Codes.from_packed(np.packbits(bits, axis=1), self.weights)

    def step(self, place) -> None:
        full = len(self.items) > MOST
        kinds = {self.add: 1 if full else 6, self.add_under_own_ids: 1 if full else 3, self.remove: 6 if full else 2,
                 self.prepare: 2, self.merge: 0.3, self.get: 2}  # fmt: skip
        self.rng.choices(list(kinds), list(kinds.values()))[0]()
        if self.rng.random() < 0.01:
            self.reopen(place)
        assert len(self.index) == len(self.items)

    def add(self) -> None:
        codes = self.codes(self.rng.choice([0, 1, 1, 2, 5, 40]))
        ids = self.index.add(codes)
        assert ids.tolist() == list(range(self.next_id, self.next_id + len(codes)))
        self.keep(ids.tolist(), codes)

    def add_under_own_ids(self) -> None:
        free = [i for i in self.rng.sample(range(self.next_id + 50), 20) if i not in self.items]
        free = free[: self.rng.randint(1, 6)]
        codes = self.codes(len(free))
        assert self.index.add(codes, free).tolist() == free
        self.keep(free, codes)

    def keep(self, ids: list[int], codes: bs.Codes) -> None:
        self.items.update(zip(ids, codes.packed, strict=True))
        self.next_id = max([self.next_id, *(i + 1 for i in ids)])

    def remove(self) -> None:
        known = sorted(self.items)
        gone = known if self.rng.random() < 0.01 else self.rng.sample(known, min(len(known), self.rng.randint(0, 20)))
        assert self.index.remove([*gone, self.next_id + 3]) == len(gone)
        for i in gone:
            del self.items[i]
        self.selections = [(selection, ids.difference(gone)) for selection, ids in self.selections]

    def prepare(self) -> None:
        ids = {i for i in self.items if self.rng.random() < 0.3}
        self.selections = [*self.selections[-3:], (self.index.prepare([*ids, self.next_id + 1]), ids)]

    def merge(self) -> None:
        self.index, self.selections = self.index.merged(), []

    def get(self) -> None:
        ids = self.rng.sample(sorted(self.items), min(len(self.items), 5))
        assert [row.tobytes() for row in self.index.get(ids).packed] == [self.items[i].tobytes() for i in ids]
        assert self.index.ids().tolist() == sorted(self.items)

    def reopen(self, place) -> None:
        self.index.save(place / "index.bsi")
        self.index.close()
        self.index, self.selections = bs.ExactIndex.open(place / "index.bsi"), []

    def search(self) -> None:
        """One search of a random kind, against brute force over the dictionary: the same ids in the same order."""
        selection, ids = self.rng.choice([(None, set(self.items)), *self.selections])
        chosen = sorted(ids)
        stored = self.codes(0).packed if not chosen else np.stack([self.items[i] for i in chosen])
        queries, k = self.codes(1), self.rng.choice([1, 3, 20, 500])
        bits = self.rng.choice([None, 1, self.n_bits // 2 + 1])
        strategy = self.rng.choice(["auto", "auto", "flat", "prefix", "multi"])
        codes = bs.Codes(stored, queries.bit_weights)
        wanted, distances = oracle.search(codes, np.array(chosen, np.int64), queries, k, bits=bits)
        hits = self.index.search(queries, k, bits=bits, where=selection, strategy=strategy)
        assert np.array_equal(hits.ids, wanted), (bits, k, strategy)
        assert np.array_equal(hits.distances, distances), (bits, k, strategy)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("life", range(LIVES))
def test_a_long_life(tmp_path, life):
    lived = Life(life)
    for _ in range(LENGTH):
        lived.step(tmp_path)
        lived.search()
