"""The shapes of requests: what does not fit is refused with 422 before anything is done."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, Json, JsonValue, model_validator

from bitscale.codes import MAX_BITS
from bitscale.collection.where import MOST_CONDITIONS
from bitscale.server.schemas.base import (
    MOST_CODES,
    MOST_LABELS,
    Base64,
    Bits,
    Condition,
    Fingerprint,
    ItemId,
    Label,
    Strict,
    Weight,
)


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
    """A query: an item, words, a ready code, or values before the sign."""

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
    """A query, and how to search for it."""


class SignIn(Strict):
    """A key to be traded for a cookie."""

    key: Annotated[str, Field(max_length=200)]


class NewCode(Strict):
    """A ready code and what is known of its item."""

    code: Base64
    labels: Annotated[list[Label], Field(max_length=MOST_LABELS)] = []  # noqa: RUF012  pydantic copies it
    metadata: dict[str, JsonValue] = {}  # noqa: RUF012


class NewCodes(Strict):
    """Ready codes to add."""

    model: Fingerprint
    items: Annotated[list[NewCode], Field(min_length=1, max_length=MOST_CODES)]


class About(BaseModel):
    """Labels and metadata of an uploaded picture, as parameters of an address."""

    model_config = ConfigDict(extra="forbid")

    label: Annotated[list[Label], Field(max_length=MOST_LABELS, description="a label; may repeat")] = []
    metadata: Annotated[Json[dict[str, JsonValue]] | None, Field(description='a table in JSON: {"camera": 2}')] = None
