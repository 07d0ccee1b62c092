"""The shapes of answers, as OpenAPI tells them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from bitscale.server.schemas.base import (
    Graded,
    Shown,
)


class Item(Shown):
    """An item as it is told."""

    id: int
    name: str | None
    labels: list[str]
    metadata: dict[str, JsonValue]
    size: int
    modified: int
    content: str | None
    has_picture: bool
    uploaded: bool


class Items(Shown):
    """A page of items, and where the next begins."""

    items: list[Item]
    next: int | None


class Match(Shown):
    """An item found; the last five only where `explain` was asked for."""

    id: int
    distance: float
    share: float
    item: Item
    itself: bool | None = None
    verdict: Literal["similar", "not similar", "cannot tell"] | None = None
    grade: Graded | None = None
    differing_bits: int | None = None
    disagree: list[int] | None = None


class Cutoff(Shown):
    """How near counts as similar."""

    distance: float | None
    chance: float | None
    usual: float | None


class Asked(Shown):
    """The query, so that it can be asked again in another way."""

    id: int | None
    code: str
    relaxed: list[float] | None


class Answer(Shown):
    """The answer to a search."""

    collection: str
    model: str
    items: int
    bits: int
    took_ms: float
    query: Asked
    verdict: Literal["similar", "not similar", "cannot tell"] | None = None
    says: str | None = None
    grade: Annotated[Graded | None, Field(description="the best of the matches, besides the item itself")] = None
    finds: Annotated[str | None, Field(description="the grade in words")] = None
    matching: Annotated[int | None, Field(description="how many items pass `where`")] = None
    cutoff: Cutoff | None = None
    matches: list[Match]


class Info(Shown):
    """A collection: its items, codes and model."""

    name: str
    items: int
    n_bits: int
    model: str
    method: str
    features: str
    takes_pictures: bool
    takes_words: bool
    bit_weights: list[float]
    bytes_per_item: int
    writable: bool
    skipped: int
    notices: list[str]
    map_by_bits: Annotated[dict[str, float] | None, Field(description="the model's MAP by length, where measured")]
    map_on: Annotated[str | None, Field(description="what that was measured on")]
    attributes: Annotated[dict[str, list[float]], Field(description="how much each bit counts for each attribute")]
    fine_tunes: Annotated[bool, Field(description="whether `train --from-feedback` learns from marks kept here")]


class Infos(Shown):
    """All collections that may be seen."""

    collections: list[Info]


class Count(Shown):
    """A value and how many items have it."""

    value: str | int | float | bool
    items: int


class FieldTold(Shown):
    """A name in the metadata and its most frequent values."""

    field: str
    items: int
    values: list[Count]


class FacetsTold(Shown):
    """Labels and metadata to filter items by."""

    labels: list[Count]
    fields: list[FieldTold]
    complete: bool


class ReadyOne(Shown):
    """One collection's state."""

    items: int
    notices: list[str]


class Ready(Shown):
    """Whether searches are answered."""

    status: Literal["ready", "degraded", "stopping"]
    collections: dict[str, ReadyOne]


class MemberTold(Shown):
    """A picture of a group."""

    id: int
    name: str | None
    size: int
    width: int | None
    height: int | None
    modified: int
    differs: str = ""  # how it differs from the picture to keep, where that can be named


class GroupTold(Shown):
    """Pictures that belong together: the one to keep, why that one, and the others."""

    keep: MemberTold
    why: str
    others: list[MemberTold]


class GroupsTold(Shown):
    """All groups, and what was left out."""

    items: int
    identical: list[GroupTold]
    near: list[GroupTold]
    related: list[GroupTold]
    crowded: int
    unread: int


class DuplicatesTold(Shown):
    """A search for duplicates: done, or how far it is."""

    status: Literal["done", "running"]
    duplicates: GroupsTold | None = None
    doing: str | None = None
    done: int | None = None
    total: int | None = None


class Session(Shown):
    """Who is signed in."""

    signed_in: bool
    role: Literal["read", "write"]
    collections: list[str]
    keys_required: bool


class Ids(Shown):
    """The ids of new items."""

    ids: list[int]


class Added(Shown):
    """An uploaded picture as an item; `created` is false where it was there already."""

    item: Item
    created: bool


class Problem(Shown):
    """What is wrong, what was given, what to do."""

    status: int
    type: str
    message: str
    fields: list[dict[str, str]] | None = None


class Error(Shown):
    """The one shape of errors."""

    error: Problem
