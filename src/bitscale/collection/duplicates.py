"""Duplicates, in three groups kept apart: identical files, near copies, and related pictures. Nothing is ever deleted.

identical  the same bytes (SHA-256), in files that are there and unchanged; two names of one file are no copies
near       codes within NEAR of the largest distance of one another's first, *and* the pictures look alike (`looks`)
related    codes within NEAR, but they do not look alike: bursts, variants, the same thing again

Groups are stars, not chains: every member is near the group's first, so that a row of small steps never joins two
ends. Items without a file are left out. A code shared by more than CROWD pictures says what they show, not that they
are copies: such crowds are compared by their looks as long as that is feasible, and else counted, never listed as
related. Memory grows with the number of items, never with its square.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bitscale.codes import Codes
from bitscale.collection.items import Item
from bitscale.collection.looks import Look, alike, looks
from bitscale.errors import InputError
from bitscale.index.exact import ExactIndex

if TYPE_CHECKING:
    from bitscale.collection.collection import Collection

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Kind = Literal["identical", "near", "related"]
Progress = Callable[[str, int, int], None]

NEAR = 0.1  # of the largest distance
CROWD = 20  # pictures with near codes, more of which are no longer called related
TOO_MANY = 5_000  # pictures with near codes, more of which are not looked at
LOOKUP = 256  # codes looked up at a time
GET = 65_536  # codes fetched at a time


@dataclass(frozen=True)
class Member:
    """A picture of a group."""

    item: Item
    width: int = 0  # 0: not known
    height: int = 0


@dataclass(frozen=True)
class Group:
    """Pictures that belong together, the one to keep first, and why that one."""

    kind: Kind
    members: tuple[Member, ...]
    why: str


@dataclass
class Duplicates:
    """All groups, and what was left out."""

    items: int = 0
    identical: list[Group] = field(default_factory=list)
    near: list[Group] = field(default_factory=list)
    related: list[Group] = field(default_factory=list)
    crowded: int = 0  # pictures in crowds too large to be called related
    unread: int = 0  # pictures that could not be looked at

    @property
    def groups(self) -> list[Group]:
        """Identical, then near, then related."""
        return [*self.identical, *self.near, *self.related]


def find_duplicates(
    collection: Collection,
    *,
    within: float = NEAR,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Duplicates:
    """Look for duplicates in a whole collection.

    within    how far apart codes of near and related pictures may be, as a share of the largest distance
    workers   processes that read pictures, one a core unless said
    """
    if not 0 <= within <= 1:
        raise InputError(f"within is a share of the largest distance, from 0 to 1. Got {within!r}.")
    tell = progress or (lambda what, done, total: None)
    found, ids, packed = codes_by_content(collection)
    crowds = []
    for crowd in code_groups(collection, ids, packed, within, tell):
        if len(crowd) > TOO_MANY:
            found.crowded += len(crowd)
        else:
            crowds.append(crowd)
    wanted = {id for crowd in crowds for id in crowd}
    paths = {id: path for id, path, *_ in collection.listing() if id in wanted}
    todo = [paths[id] for crowd in crowds for id in crowd if id in paths]
    done = 0
    with closing(looks(todo, workers)) as seen:
        for crowd in crowds:
            there = [id for id in crowd if id in paths]
            sort_crowd(collection, dict(zip(there, islice(seen, len(there)), strict=True)), found)
            done += len(there)
            tell("looking at pictures", done, len(todo))
    return found


def codes_by_content(collection: Collection) -> tuple[Duplicates, I64, U8]:
    """Groups of identical files, and one id with its code for each content."""
    for last in (False, False, True):  # again where an item came or went meanwhile
        found = Duplicates(items=len(collection))
        ids = identical(collection, found)
        index = collection.index
        try:
            blocks = [index.get(ids[start : start + GET]).packed for start in range(0, len(ids), GET)]
            return found, ids, np.concatenate([np.empty((0, (collection.n_bits + 7) // 8), np.uint8), *blocks])
        except InputError:
            if last:
                raise
    raise AssertionError


def identical(collection: Collection, found: Duplicates) -> I64:
    """Group by content; the ids that stand for each content, ascending."""
    by_content: dict[bytes, list[int]] = defaultdict(list)
    firsts = []
    for id, _, _, _, content in collection.listing():
        if content is None:
            firsts.append(id)
        else:
            by_content[content].append(id)
    for ids in by_content.values():
        files = as_taken_in(collection.items_of(ids).values(), found) if len(ids) > 1 else []
        if len(files) > 1:
            found.identical.append(kept_first("identical", [Member(item) for item in files]))
            firsts.append(found.identical[-1].members[0].item.id)
        else:
            firsts.append(files[0].id if files else ids[0])
    return np.sort(np.array(firsts, np.int64))


def as_taken_in(items: Iterable[Item], found: Duplicates) -> list[Item]:
    """Items whose files are there and unchanged, one for each file: a plan must never name the last copy to go."""
    files: dict[tuple[int, int], Item] = {}
    for item in sorted(items, key=lambda item: os.path.islink(item.path)):  # of several names a link is the last
        try:
            facts = os.stat(item.path)
        except OSError:
            found.unread += 1
            continue
        if (facts.st_size, max(facts.st_mtime_ns, 0)) != (item.size, item.modified):
            found.unread += 1
        else:
            files.setdefault((facts.st_dev, facts.st_ino), item)
    return sorted(files.values(), key=lambda item: item.id)


def code_groups(collection: Collection, ids: I64, packed: U8, within: float, tell: Progress) -> Iterator[list[int]]:
    """Ids whose codes are near that of the group's first, two or more of them."""
    distinct, which = np.unique(packed, axis=0, return_inverse=True)  # equal codes count once
    order = np.argsort(which.ravel(), kind="stable")
    starts = np.searchsorted(which.ravel()[order], np.arange(len(distinct) + 1))
    codes = Codes(distinct, collection.bit_weights, collection.model)
    engine, limit = ExactIndex(codes), within * float(collection.bit_weights.sum())
    free = np.ones(len(distinct), np.bool_)
    for start in range(0, len(distinct), LOOKUP):
        rows = np.arange(start, min(start + LOOKUP, len(distinct)))
        rows = rows[free[rows]]
        near = engine.lookup(codes[rows], max_distance=limit)
        for place, row in enumerate(rows.tolist()):
            if free[row]:
                some = near.ids[near.offsets[place] : near.offsets[place + 1]]
                some = some[free[some]]
                free[some] = False
                members = np.concatenate([order[starts[code] : starts[code + 1]] for code in some.tolist()])
                if len(members) > 1:
                    yield ids[members].tolist()
        tell("comparing codes", min(start + LOOKUP, len(distinct)), len(distinct))


def sort_crowd(collection: Collection, crowd: dict[int, Look | None], found: Duplicates) -> None:
    """Split pictures with near codes, id -> look, into those that look alike and the rest."""
    items = collection.items_of(list(crowd))  # without those removed meanwhile
    seen = [crowd[id] for id in items]
    found.unread += sum(look is None for look in seen)
    members = [
        Member(item, look.width, look.height) if look else Member(item)
        for item, look in zip(items.values(), seen, strict=True)
    ]
    taken: set[int] = set()
    for places in alike(seen):
        group = kept_first("near", [members[place] for place in places])
        found.near.append(group)
        taken |= {member.item.id for member in group.members[1:]}
    rest = [member for member in members if member.item.id not in taken]
    if len(rest) > CROWD:
        found.crowded += len(rest)
    elif len(rest) > 1:
        found.related.append(kept_first("related", rest))


def kept_first(kind: Kind, members: list[Member]) -> Group:
    """The group with the picture to keep in front: most pixels, then most bytes, then oldest, then shortest path."""
    ranks: list[tuple[str, Callable[[Member], float]]] = [
        ("most pixels", lambda m: -m.width * m.height),
        ("largest file", lambda m: -m.item.size),
        ("oldest", lambda m: m.item.modified or float("inf")),
        ("shortest path", lambda m: len(m.item.path)),
        ("lowest id", lambda m: m.item.id),
    ]
    ordered = sorted(members, key=lambda m: tuple(rank(m) for _, rank in ranks))
    first, second = ordered[0], ordered[1]
    why = next(name for name, rank in ranks if rank(first) != rank(second))
    return Group(kind, tuple(ordered), why)
