"""Feedback: learn from results called right or wrong, keep such marks, list them and take them back."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import Field

from bitscale.collection import Collection
from bitscale.collection.store.marks import Mark
from bitscale.errors import InputError
from bitscale.feedback import Learned
from bitscale.server.answers import JsonAnswer, NotFound
from bitscale.server.documented import errors, success
from bitscale.server.homes import Home, HomeOf
from bitscale.server.routes.search import query_of
from bitscale.server.schemas.asked import Query
from bitscale.server.schemas.base import Bits, ItemId, Shown, Weight

router = APIRouter(tags=["feedback"])
AT = "/v1/collections/{collection}"
MOST_MARKED = 1_000
PICTURE = 24 << 20  # of base64


class Said(Query):
    """A query, and which of its results are right or wrong."""

    right: list[ItemId] = Field([], max_length=MOST_MARKED, description="items that are what was meant")
    wrong: list[ItemId] = Field([], max_length=MOST_MARKED, description="items that are not")
    bits: Annotated[Bits | None, Field(description="how many bits the searches compare; all unless said")] = None
    emphasis: Annotated[
        dict[str, Weight] | None, Field(description="how much each attribute of the model matters to the searches")
    ] = None


class NewMark(Said):
    """A query and its results called right or wrong, to be kept."""

    picture: Annotated[
        str | None, Field(max_length=PICTURE, description="the query's picture in base64, to be kept as well")
    ] = None


class LearnedTold(Shown):
    """The code and weights to search with, learned from marks."""

    model: str
    code: str
    weights: list[float]


class Kept(LearnedTold):
    """The same, and the number of the mark that was kept."""

    mark: int


class MarkTold(Shown):
    """A mark that is kept."""

    id: int
    made: int
    item: int | None
    bits: int
    right: list[int]
    wrong: list[int]
    has_picture: bool
    current: bool


class Marks(Shown):
    """All marks, oldest first."""

    marks: list[MarkTold]


@router.post(AT + "/learn", responses=success(LearnedTold) | errors(404, 413, 415, 422))
async def learn(home: HomeOf, body: Said) -> JsonAnswer:
    """Learn from results called right or wrong: a code and weights to search with. Nothing is kept."""
    return JsonAnswer(await home.read(lambda photos: learned_told(photos, learned(photos, home, body))))


@router.post(AT + "/marks", status_code=201, responses=success(Kept, 201) | errors(404, 413, 415, 422))
async def mark(home: HomeOf, body: NewMark) -> JsonAnswer:
    """Learn, and keep the mark: the query's values and the ids; its picture only where it is sent along."""
    return JsonAnswer(await home.write(lambda photos: keep(photos, home, body)), 201)


@router.get(AT + "/marks", responses=success(Marks) | errors(404))
async def marks(home: HomeOf) -> JsonAnswer:
    """The marks that are kept."""
    return JsonAnswer({"marks": await home.read(listed)})


@router.delete(AT + "/marks/{mark}", status_code=204, responses=errors(404, 422))
async def take_back(home: HomeOf, mark: Annotated[int, Path(ge=0, le=(1 << 63) - 1)]) -> Response:
    """Forget a mark."""
    if not await home.write(lambda photos: photos.take_back(mark)):
        raise NotFound(f"there is no mark {mark} here.")
    return Response(status_code=204)


def learned(photos: Collection, home: Home, body: Said) -> Learned:
    """The code and weights learned from the marks in a request."""
    query: Any = query_of(body, home, photos)
    weights = None if body.emphasis is None else photos.hasher.emphasise(body.emphasis)
    return photos.learn(query, body.right, body.wrong, bits=body.bits, weights=weights)


def keep(photos: Collection, home: Home, body: NewMark) -> dict[str, Any]:
    """Learn, and keep what was learned from."""
    learnt = learned(photos, home, body)
    query: Any = query_of(body, home, photos)
    mark = photos.mark(query, body.right, body.wrong, bits=body.bits, picture=unpacked(body.picture))
    return {**learned_told(photos, learnt), "mark": mark.id}


def unpacked(picture: str | None) -> bytes | None:
    """A picture from base64."""
    try:
        return None if picture is None else base64.b64decode(picture, validate=True)
    except (binascii.Error, ValueError):
        raise InputError("picture must be the file's bytes in base64.") from None


def learned_told(photos: Collection, learnt: Learned) -> dict[str, Any]:
    """Learned code and weights as plain data."""
    code = base64.b64encode(learnt.codes.packed[0].tobytes()).decode()
    return {"model": photos.model, "code": code, "weights": learnt.weights.tolist()}


def listed(photos: Collection) -> list[dict[str, Any]]:
    """The marks as plain data."""
    return [mark_told(mark, photos.model) for mark in photos.marks()]


def mark_told(mark: Mark, model: str) -> dict[str, Any]:
    """One mark; `current` tells whether its values are of the model that serves."""
    return {
        "id": mark.id,
        "made": mark.made,
        "item": mark.item,
        "bits": mark.bits,
        "right": list(mark.right),
        "wrong": list(mark.wrong),
        "has_picture": mark.picture is not None,
        "current": mark.model == model,
    }
