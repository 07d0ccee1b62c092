"""Which persons are learned from and which are searched for: splits by person, and those that cannot be used.

No person is in both parts of a split. The test sets of several splits of one seed share no person either, and
`choosing` gives a split of persons that are in none of them: settings are chosen there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bitscale.arrays import Int
from bitscale.data.people import People
from bitscale.data.sets.cuhk03_new import read_parts
from bitscale.data.split import check_seed
from bitscale.errors import DataError, InputError

SPLITS, TESTED = 3, 100


@dataclass(frozen=True)
class PersonSplit:
    """Pictures of persons to learn from, and of others to be told apart."""

    number: int  # of the split; -1: the one that settings are chosen on
    train: People
    test: People
    seed: int
    note: str = ""
    ways: tuple[Int, Int] | None = (
        None  # rows of the test set that ask and that are asked; None: every camera, both ways
    )
    called: str = "split"

    @property
    def name(self) -> str:
        """As files and tables call it."""
        if self.ways is not None:
            return f"{self.train.n_persons}-{self.test.n_persons}"
        return "choosing" if self.number < 0 else f"{self.called}-{self.number}"


@dataclass(frozen=True)
class Dropped:
    """Persons that cannot be learned from."""

    single: int  # with one picture

    def __str__(self) -> str:
        return f"{self.single:,} persons with a single picture were dropped." if self.single else ""


def split(people: People, number: int, *, splits: int = SPLITS, tested: int = TESTED, seed: int = 0) -> PersonSplit:
    """Split `number` of some whose test sets are disjoint; the persons are drawn from the seed."""
    order = _drawn(people, splits, tested, seed)
    if not 0 <= number < splits:
        raise InputError(f"split must be between 0 and {splits - 1}. Got {number}.")
    test = order[number * tested : (number + 1) * tested]
    return parted(people, number, np.setdiff1d(order, test), test, seed)


def published(people: People, file: Path) -> PersonSplit:
    """The split of a published file of CUHK03: 767 persons to learn from and 700 to be found, where all are there."""
    parts = read_parts(file, people)
    test = np.concatenate([parts.queries, parts.gallery])
    ways = np.arange(len(parts.queries)), np.arange(len(parts.queries), len(test))
    return PersonSplit(0, people.take(parts.train), people.take(test), 0, parts.note, ways)


def choosing(people: People, *, splits: int = SPLITS, tested: int = TESTED, seed: int = 0) -> PersonSplit:
    """Persons that no split tests on, parted in the same way: to choose settings by."""
    free = _drawn(people, splits, tested, seed)[splits * tested :]
    if len(free) < tested + 2:
        raise DataError(
            f"choosing settings takes {tested} persons besides those of {splits} test sets of {tested}, and some to "
            f"learn from. Got {people.n_persons} persons."
        )
    return parted(people, -1, free[tested:], free[:tested], seed)


def _drawn(people: People, splits: int, tested: int, seed: int) -> Int:
    """Persons seen by two cameras in a drawn order; those of one camera follow, since they can only be learned from."""
    if splits < 1 or tested < 2:
        raise InputError(f"a split tests on two persons at least. Got {splits} splits of {tested}.")
    crossed, alone = across(people)
    if len(crossed) < splits * tested + 2:
        raise DataError(
            f"{splits} test sets of {tested} persons, each seen by two cameras, and some to learn from: these are more "
            f"than the {len(crossed)} that are there. Use fewer splits or smaller ones."
        )
    rng = np.random.default_rng(check_seed(seed, "the seed of a split"))
    return np.concatenate([rng.permutation(crossed), alone])


def across(people: People) -> tuple[Int, Int]:
    """The persons that two cameras or more have seen, and those that one has."""
    pairs = np.unique(np.stack([people.persons, people.cameras]), axis=1)
    persons, seen_by = np.unique(pairs[0], return_counts=True)
    return persons[seen_by > 1], persons[seen_by == 1]


def parted(people: People, number: int, train: Int, test: Int, seed: int) -> PersonSplit:
    """The pictures of some persons to learn from and of others to be found; who can only be learned from is counted."""
    alone = len(np.intersect1d(across(people)[1], train))
    note = f"{alone:,} persons without a second camera are learned from only." if alone else ""
    return PersonSplit(number, people.of(train), people.of(test), seed, note)


def trainable(people: People) -> tuple[People, Dropped]:
    """Persons with two pictures or more, numbered anew; how many had one only."""
    names, number, counts = np.unique(people.persons, return_inverse=True, return_counts=True)
    single = int((counts < 2).sum())
    if len(names) - single < 2:
        raise DataError(
            f"learning takes two persons with two pictures each. Got {len(names)} persons, {single} of them with one."
        )
    with_two = people.take(np.flatnonzero(counts[number] > 1))
    left, persons = np.unique(with_two.persons, return_inverse=True)
    named = tuple(people.names[int(i)] for i in left)
    return replace(with_two, persons=persons.astype(np.int64), names=named), Dropped(single)
