"""Splits of CUHK03 that others measured on: the paper's, and the test sets that the official file brings.

paper      1,360 persons, those of camera pairs 1 to 3: 100 to be found, 100 kept aside, 1,160 to learn from; ten times
testsets   the file's own 20 lists of 100 persons; all others are learned from
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from bitscale.data.people import People
from bitscale.data.sets.cuhk03 import IN_THE_PAPER
from bitscale.data.sets.cuhk03_mat import MAT, read_testsets
from bitscale.data.split import check_seed
from bitscale.errors import DataError, InputError
from bitscale.reid.persons import SPLITS, PersonSplit, across, parted, published, split

PAPER, TESTSETS = "paper", "testsets"
PAPER_SPLITS, TESTED, VALIDATED = 10, 100, 100  # 1,160 are left
PAIRS = ("1-", "2-", "3-")  # persons are called by their camera pair


def splits_of(people: People, source: Path, protocol: str | None, splits: int | None, tested: int) -> list[PersonSplit]:
    """The splits to measure on: ours, those of a protocol, or the one of a published file."""
    if protocol is None:
        n = splits or SPLITS
        return [split(people, i, splits=n, tested=tested) for i in range(n)]
    if protocol == PAPER:
        return [paper_split(people, i, tested=tested) for i in range(splits or PAPER_SPLITS)]
    if protocol == TESTSETS:
        return [listed_split(people, source, i) for i in range(splits or listed_count(source))]
    return [published(people, Path(protocol))]


def in_the_paper(people: People) -> People:
    """The persons of camera pairs 1 to 3."""
    named = [i for i, name in enumerate(people.names) if name.startswith(PAIRS)]
    return people.of(np.array(named, np.int64))


def is_whole(people: People) -> bool:
    """Whether all persons of the paper are there, and go by their camera pairs."""
    return in_the_paper(people).n_persons >= IN_THE_PAPER


def paper_split(
    people: People, number: int, *, tested: int = TESTED, validated: int = VALIDATED, seed: int = 0
) -> PersonSplit:
    """One of the paper's random splits; the persons kept aside are neither learned from nor found."""
    if not 0 <= number < PAPER_SPLITS:
        raise InputError(f"the paper has {PAPER_SPLITS} splits, from 0 on. Got {number}.")
    persons = in_the_paper(people)
    crossed, alone = across(persons)
    if len(crossed) < tested + validated + 2:
        raise DataError(
            f"the paper's protocol finds {tested} persons, keeps {validated} aside and learns from others, of camera "
            f"pairs 1 to 3. Got {len(crossed)}: they go by names such as 1-0012, from {MAT} or pictures named "
            "1_012_2_07.png. Without --protocol other persons will do."
        )
    order = np.random.default_rng([check_seed(seed, "the seed of a split"), number]).permutation(crossed)
    test, train = order[:tested], np.concatenate([order[tested + validated :], alone])
    return replace(parted(persons, number, train, test, seed), called=PAPER)


def listed_count(source: Path) -> int:
    """How many test sets the split file lists."""
    return len(_testsets(source))


def listed_split(people: People, source: Path, number: int) -> PersonSplit:
    """One of the test sets of cuhk-03.mat, by the names of its persons."""
    sets = _testsets(source)
    if not 0 <= number < len(sets):
        raise InputError(f"{MAT} has {len(sets)} test sets, from 0 on. Got {number}.")
    rows = {name: i for i, name in enumerate(people.names)}
    test = np.array([rows[name] for name in sets[number] if name in rows], np.int64)
    train = np.setdiff1d(np.unique(people.persons), test)
    return replace(parted(people, number, train, test, 0), called="testset")


def _testsets(source: Path) -> list[tuple[str, ...]]:
    file = source if source.suffix == ".mat" else source / MAT
    if not file.is_file():
        raise DataError(f"test sets are in {MAT}, which is not at {source}. Give it as the source.")
    return read_testsets(file)
