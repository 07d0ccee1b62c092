"""Which picture of a group to keep: the original, by rules that are told with it.

    what the camera wrote   a picture that still has it was not through a programme that drops it
    in colour               before a grey one
    without a frame         before one with an edge of one colour all around
    most like the others    edits differ from the original in one thing, from one another in two
    most pixels, oldest (the file), largest file, shortest path, lowest id

The first rule by which the first two pictures differ is the reason given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from bitscale.collection.items import Item

Kind = Literal["identical", "near", "related"]
CENTRAL = 0.9  # of the most that a picture of the group is like the others: as good as the most


@dataclass(frozen=True)
class Member:
    """A picture of a group, with what its look tells."""

    item: Item
    width: int = 0  # 0: not known
    height: int = 0
    differs: str = ""  # how it differs from the group's first, where that can be named
    colour: bool = True
    frame: bool = False
    likes: float = 0.0  # how much it is like others, summed up


@dataclass(frozen=True)
class Group:
    """Pictures that belong together, the one to keep first, and why that one."""

    kind: Kind
    members: tuple[Member, ...]
    why: str


def kept_first(kind: Kind, members: list[Member]) -> Group:
    """The group with the picture to keep in front."""
    ordered = sorted(members, key=rank_of(members))
    why = next((name for name, rank in rules(members) if rank(ordered[0]) != rank(ordered[1])), "lowest id")
    return Group(kind, tuple(ordered), why)


def rank_of(members: list[Member]) -> Callable[[Member], tuple[float, ...]]:
    """A key to sort a group's pictures by, so that the one to keep comes first."""
    every = rules(members)
    return lambda member: tuple(rank(member) for _, rank in every)


def rules(members: list[Member]) -> list[tuple[str, Callable[[Member], float]]]:
    """The rules by name, each a number of which the lowest is best."""
    most = max((member.likes for member in members), default=0.0)
    return [
        ("what the camera wrote", lambda m: not {"taken", "camera"} & set(m.item.exif)),
        ("in colour", lambda m: not m.colour),
        ("without a frame", lambda m: m.frame),
        ("most like the others", lambda m: m.likes < CENTRAL * most),
        ("most pixels", lambda m: -m.width * m.height),
        ("oldest", lambda m: m.item.modified or float("inf")),
        ("largest file", lambda m: -m.item.size),
        ("shortest path", lambda m: len(m.item.path)),
        ("lowest id", lambda m: m.item.id),
    ]
