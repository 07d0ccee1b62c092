"""The base of requests and answers: numbers within limits, texts of limited length."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from bitscale.codes import MAX_BITS
from bitscale.collection.where import LONGEST

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
