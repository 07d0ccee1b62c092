"""The shapes of requests and answers: what OpenAPI tells, and what is refused with 422 before anything is done."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, Json, JsonValue, model_validator

from bitscale.codes import MAX_BITS
from bitscale.collection.where import LONGEST, MOST_CONDITIONS

LARGEST_ID = (1 << 63) - 1
MOST_CODES = 10_000  # in one request
MOST_LABELS = 100

ItemId = Annotated[int, Field(ge=0, le=LARGEST_ID)]
Weight = Annotated[FiniteFloat, Field(ge=0)]
Bits = Annotated[int, Field(ge=1, le=MAX_BITS)]
Base64 = Annotated[str, Field(max_length=256, pattern=r"^[A-Za-z0-9+/]+={0,2}$")]
Fingerprint = Annotated[str, Field(min_length=1, max_length=200)]
Condition = Annotated[str, Field(max_length=LONGEST)]
Graded = Literal["copy", "same kind", "unlike", "cannot tell"]
Label = Annotated[str, Field(min_length=1, max_length=1_000)]


class Strict(BaseModel):
    """A request's body: what is not known is refused, and a text is no number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Shown(BaseModel):
    """Part of an answer."""


class How(BaseModel):
    """How to search: the k nearest, or all within a radius or a distance."""

    k: Annotated[int | None, Field(ge=1, le=100_000, description="how many matches; 10 unless said")] = None
    radius: Annotated[int | None, Field(ge=0, le=MAX_BITS, description="all within so many differing bits")] = None
    max_distance: Annotated[FiniteFloat | None, Field(ge=0, description="all within a weighted distance")] = None
    bits: Annotated[Bits | None, Field(description="compare the first so many bits; all unless said")] = None
    where: Annotated[
        list[Condition] | dict[str, str | int | float | bool | None] | None,
        Field(description='["label=cat", "camera=2", "year>=2020"], or {"camera": 2}'),
    ] = None
    weights: Annotated[
        list[Weight] | None, Field(max_length=MAX_BITS, description="other weights of the bits, one each")
    ] = None
    emphasis: Annotated[dict[str, Weight] | None, Field(description="how much each attribute of the model matters")] = (
        None
    )
    explain: Annotated[bool, Field(description="tell verdicts, and which bits disagree")] = False

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if sum(one is not None for one in (self.k, self.radius, self.max_distance)) > 1:
            raise ValueError("give one of k, radius and max_distance.")
        if self.weights is not None and self.emphasis is not None:
            raise ValueError("give weights or emphasis, not both.")
        if isinstance(self.where, list | dict) and len(self.where) > MOST_CONDITIONS:
            raise ValueError(f"at most {MOST_CONDITIONS} conditions can be given at once.")
        return self


class HowInQuery(How):
    """The same as parameters of an address: conditions and weights repeat, emphasis is JSON."""

    model_config = ConfigDict(extra="forbid")

    where: Annotated[
        list[Condition] | None, Field(max_length=MOST_CONDITIONS, description="label=cat, camera=2, year>=2020")
    ] = None
    emphasis: Annotated[Json[dict[str, Weight]] | None, Field(description='as JSON: {"kind": 1.0, "colour": 0.2}')] = (
        None
    )


class Query(BaseModel):
    """What is asked about: an item, words, a ready code, or values before the sign."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: Annotated[ItemId | None, Field(description="an item of this collection")] = None
    text: Annotated[
        str | None, Field(min_length=1, max_length=1_000, description="words, where the collection `takes_words`")
    ] = None
    code: Annotated[Base64 | None, Field(description="packed bits in base64, heaviest first")] = None
    relaxed: Annotated[
        list[Annotated[FiniteFloat, Field(ge=-1, le=1)]] | None,
        Field(min_length=1, max_length=MAX_BITS, description="a value in -1..1 for each bit"),
    ] = None
    model: Annotated[Fingerprint | None, Field(description="the model that gave code or relaxed")] = None

    @model_validator(mode="after")
    def _one_query(self) -> Self:
        if sum(one is not None for one in (self.id, self.text, self.code, self.relaxed)) != 1:
            raise ValueError("give exactly one of id, text, code and relaxed.")
        if self.id is None and self.text is None and self.model is None:
            raise ValueError("model must be given with code and relaxed: the fingerprint of the model they are of.")
        return self


class Search(Query, How):
    """What to search for, and how."""


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
    """What a search found."""

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
    """What a collection is."""

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
    """What items can be told apart by."""

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


class SignIn(Strict):
    """A key to be traded for a cookie."""

    key: Annotated[str, Field(max_length=200)]


class Session(Shown):
    """Who is signed in."""

    signed_in: bool
    role: Literal["read", "write"]
    collections: list[str]
    keys_required: bool


class NewCode(Strict):
    """A ready code and what is known of its item."""

    code: Base64
    labels: Annotated[list[Label], Field(max_length=MOST_LABELS)] = []
    metadata: dict[str, JsonValue] = {}


class NewCodes(Strict):
    """Ready codes to add."""

    model: Fingerprint
    items: Annotated[list[NewCode], Field(min_length=1, max_length=MOST_CODES)]


class About(BaseModel):
    """What is known of an uploaded picture, as parameters of an address."""

    model_config = ConfigDict(extra="forbid")

    label: Annotated[list[Label], Field(max_length=MOST_LABELS, description="a label; may repeat")] = []
    metadata: Annotated[Json[dict[str, JsonValue]] | None, Field(description='a table in JSON: {"camera": 2}')] = None


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
