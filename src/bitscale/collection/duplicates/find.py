"""Duplicates, in three groups kept apart: identical files, near copies, and related pictures. Nothing is ever deleted.

identical  the same bytes (SHA-256), in files that are there and unchanged; two names of one file are no copies
near       the same picture, seen by laying small copies of both over each other: recompressed, smaller, cropped a
           little, mirrored or turned; colours count
related    the same picture with something done to it: grey or in other colours, with words or a frame, a part of it

Candidates come from codes and from perceptual hashes (`candidates`); what a pair is, `looks.likeness` tells. Groups are
stars, not chains: every member belongs to the group's first, so that a row of small steps never joins two ends. Items
without a file are left out. Memory grows with the number of items, never with its square.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bitscale.arrays import Int
from bitscale.collection.duplicates.candidates import candidates
from bitscale.collection.duplicates.keep import Group, Kind, Member, kept_first, rank_of
from bitscale.collection.duplicates.sights import Pictures, Progress, Sights
from bitscale.collection.items import Item, in_range
from bitscale.collection.store.again import again
from bitscale.errors import InputError
from bitscale.looks.likeness import COPY, PERHAPS, VARIANT, Likeness, compare, framed, in_colour
from bitscale.looks.look import Looks, each_laid, perceptual_hashes

U8 = NDArray[np.uint8]
HASH_NEAR = 8  # bits of 64: pictures much alike whose hashes are so near are related
GET = 65_536  # codes fetched at a time
CENTRES = 2  # pictures that all those linked with them are compared with
SOME = 2_000  # pairs compared at a time


@dataclass
class Duplicates:
    """All groups, and what was left out."""

    items: int = 0
    identical: list[Group] = field(default_factory=list)
    near: list[Group] = field(default_factory=list)
    related: list[Group] = field(default_factory=list)
    crowded: int = 0  # of earlier versions, which left out crowds of pictures that share a code
    unread: int = 0  # pictures that could not be looked at
    folder: str = ""  # of the collection, where it is in one

    @property
    def groups(self) -> list[Group]:
        """Identical, then near, then related."""
        return [*self.identical, *self.near, *self.related]


@dataclass
class Links:
    """Pairs of items that are copies or variants, each with how the second differs from the first."""

    near: dict[int, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    related: dict[int, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    likes: dict[int, float] = field(default_factory=lambda: defaultdict(float))  # how much each is like all its links
    compared: set[tuple[int, int]] = field(default_factory=set)

    def add(self, pairs: Int, likeness: Likeness, close: NDArray[np.bool_]) -> None:
        """Add pairs of ids (n, 2) with what was found of them; `close`: their hashes are near, too."""
        perhaps = (likeness.kind == PERHAPS) & close  # whatever their colours: light that is clipped changes them
        for row in np.flatnonzero((likeness.kind >= VARIANT) | perhaps).tolist():
            first, second = pairs[row].tolist()
            kind = self.near if likeness.kind[row] == COPY else self.related
            kind[first][second], kind[second][first] = likeness.says(row), likeness.says(row, back=True)
            for id in (first, second):
                self.likes[id] += float(likeness.same[row])

    def to_centres(self) -> Int:
        """Pairs not compared yet: of each set of linked pictures all with those two that are most like the others."""
        every = {id: {**self.near.get(id, {}), **self.related.get(id, {})} for id in {*self.near, *self.related}}
        pairs = set()
        for part in components(set(every), every):
            for centre in sorted(part, key=lambda id: (-self.likes[id], id))[:CENTRES]:
                pairs |= {(min(centre, id), max(centre, id)) for id in part if id != centre}
        return np.array(sorted(pairs - self.compared), np.int64).reshape(-1, 2)


def find_duplicates(
    collection: Pictures,
    *,
    within: float | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Duplicates:
    """Look for duplicates in a whole collection.

    within    how far apart codes of candidates may be, as a share of the largest distance; unless said, as near as
              one in a hundred random pairs of items are, in small collections any distance
    workers   processes that read pictures whose looks are not kept, one a core unless said
    """
    if within is not None and not 0 <= within <= 1:
        raise InputError(f"within is a share of the largest distance, from 0 to 1. Got {within!r}.")
    collection.require_files("duplicates")
    tell = progress or (lambda what, done, total: None)
    # items may come and go meanwhile
    duplicates, ids, packed = again(lambda: codes_by_content(collection), InputError)
    sights = Sights(collection, ids, workers, tell)
    duplicates.unread += sights.unread
    pairs = candidates(collection.index, ids, packed, sights, within, tell)
    pairs = pairs[[a in sights.sizes and b in sights.sizes for a, b in pairs.tolist()]] if len(pairs) else pairs
    links = Links()
    link(links, pairs, sights, tell)
    link(links, links.to_centres(), sights, tell)
    sort_links(collection, links, sights, duplicates)
    return duplicates


def codes_by_content(collection: Pictures) -> tuple[Duplicates, Int, U8]:
    """Groups of identical files, and one id with its code for each content."""
    duplicates = Duplicates(items=len(collection), folder=str(collection.path))
    ids = identical(collection, duplicates)
    index = collection.index
    blocks = [index.get(ids[start : start + GET]).packed for start in range(0, len(ids), GET)]
    return duplicates, ids, np.concatenate([np.empty((0, (index.n_bits + 7) // 8), np.uint8), *blocks])


def identical(collection: Pictures, duplicates: Duplicates) -> Int:
    """Group by content; the ids that stand for each content, ascending."""
    by_content: dict[bytes, list[int]] = defaultdict(list)
    firsts = []
    for id, _, _, _, content in collection.listing():
        if content is None:
            firsts.append(id)
        else:
            by_content[content].append(id)
    for ids in by_content.values():
        files = as_taken_in(collection.items_of(ids).values(), duplicates) if len(ids) > 1 else []
        if len(files) > 1:
            duplicates.identical.append(kept_first("identical", [Member(item) for item in files]))
            firsts.append(duplicates.identical[-1].members[0].item.id)
        else:
            firsts.append(files[0].id if files else ids[0])
    return np.sort(np.array(firsts, np.int64))


def as_taken_in(items: Iterable[Item], duplicates: Duplicates) -> list[Item]:
    """Items whose files are there and unchanged, one for each file: a plan must never name the last copy to go."""
    files: dict[tuple[int, int], Item] = {}
    for item in sorted(items, key=lambda item: os.path.islink(item.path)):  # of several names a link is the last
        try:
            status = os.stat(item.path)
        except OSError:
            duplicates.unread += 1
            continue
        if (in_range(status.st_size), in_range(status.st_mtime_ns)) != (item.size, item.modified):
            duplicates.unread += 1
        else:
            files.setdefault((status.st_dev, status.st_ino), item)
    return sorted(files.values(), key=lambda item: item.id)


def link(links: Links, pairs: Int, sights: Sights, tell: Progress) -> None:
    """Compare the pictures of candidate pairs, and join those that are copies or related."""
    links.compared |= {(first, second) for first, second in pairs.tolist()}
    for start in range(0, len(pairs), SOME):
        block = pairs[start : start + SOME]
        first, second = sights.of(block[:, 0]), sights.of(block[:, 1])
        likeness = compare(first, second)
        links.add(block, likeness, close_by_hash(first, second, likeness))
        tell("comparing pictures", start + len(block), len(pairs))


def close_by_hash(first: Looks, second: Looks, likeness: Likeness) -> NDArray[np.bool_]:
    """Whether hashes are near, the second laid down as it fits best."""
    ours, theirs = (perceptual_hashes(grey) for grey in (first.grey, each_laid(second.grey, likeness.form)))
    return np.asarray(np.bitwise_count(ours ^ theirs).sum(axis=1) <= HASH_NEAR)


def sort_links(collection: Pictures, links: Links, sights: Sights, duplicates: Duplicates) -> None:
    """Make groups of links: near ones first, then what is related to the pictures kept of them."""
    wanted = sorted({*links.near, *links.related})
    items = collection.items_of(wanted)  # without those removed meanwhile
    members = {id: replace(one, likes=links.likes[id]) for id, one in members_of(items, sights).items()}
    stands: dict[int, int] = {id: id for id in members}  # the picture that is kept for each
    for group in stars("near", members, links.near):
        duplicates.near.append(group)
        stands |= {member.item.id: group.members[0].item.id for member in group.members}
    between: dict[int, dict[int, str]] = defaultdict(dict)
    for first, others in links.related.items():
        for second, says in others.items():
            if first in members and second in members and stands[first] != stands[second]:
                if (stands[first], stands[second]) == (first, second):
                    between[first][second] = says
                else:  # how copies of them differ says nothing of how these do
                    between[stands[first]].setdefault(stands[second], "")
    duplicates.related += stars("related", members, between)


def members_of(items: dict[int, Item], sights: Sights) -> dict[int, Member]:
    """The `Member` of each item, with what its look tells."""
    members = {}
    for ids_here, looks in sights.chunks(np.array(list(items), np.int64)):
        rows = zip(ids_here.tolist(), in_colour(looks).tolist(), framed(looks).tolist(), strict=True)
        for id, colour, frame in rows:
            members[id] = Member(items[id], *sights.sizes[id], colour=colour, frame=frame)
    return members


def stars(kind: Kind, members: dict[int, Member], links: dict[int, dict[int, str]]) -> list[Group]:
    """Groups around the picture to keep: each member is linked to that one."""
    groups, free = [], {id for id in links if id in members}
    for whole in components(free, links):
        there = [members[id] for id in whole]
        for centre in sorted(there, key=rank_of(there)):
            others = [id for id in links[centre.item.id] if id in free] if centre.item.id in free else []
            if others:
                free -= {centre.item.id, *others}
                around = [replace(m, differs=links[centre.item.id][m.item.id]) for m in there if m.item.id in others]
                group = kept_first(kind, [centre, *around])
                ordered = tuple(sorted(around, key=rank_of([centre, *around])))
                groups.append(Group(kind, (centre, *ordered), group.why))
    return groups


def components(ids: set[int], links: dict[int, dict[int, str]]) -> list[list[int]]:
    """Ids that are linked to one another over any number of steps."""
    left, parts = set(ids), []
    for start in sorted(ids):
        if start not in left:
            continue
        left.discard(start)
        part = [start]
        for id in part:  # grows meanwhile
            reached = [other for other in links[id] if other in left]
            left.difference_update(reached)
            part += reached
        parts.append(part)
    return parts
